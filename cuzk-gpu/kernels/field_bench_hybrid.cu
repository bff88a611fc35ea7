// As field_bench.cu, for the hybrid form: a module of its own, since it wants another level of the assembler, which keeps
// the source's order (see hybrid_fma).
#include "fq_hybrid.cuh"

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(128) bench_fqh_mul(u32* x, u32 rounds)
{
    x += FQ_WORDS * THREAD;
    const fqh b = fqh_from_fq(fq_load(x));
    fqh a = b;
    for (u32 i = 0; i < rounds; i++) a = hybrid_mul(a, b);
    fq_store(x, hybrid_to(a));
}

extern "C" __global__ void __launch_bounds__(128) bench_fqh_sqr(u32* x, u32 rounds)
{
    x += FQ_WORDS * THREAD;
    fqh a = fqh_from_fq(fq_load(x));
    for (u32 i = 0; i < rounds; i++) a = hybrid_sqr(a);
    fq_store(x, hybrid_to(a));
}
