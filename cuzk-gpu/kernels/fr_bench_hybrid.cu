// As fr_bench.cu, for the hybrid form: a module of its own, for the assembler's level (see hybrid_fma).
#include "fr_hybrid.cuh"

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(128) bench_frh_mul(uint4* x, u32 rounds)
{
    const frh b = frh_from_fr(fr_load(x, THREAD));
    frh a = b;
    for (u32 i = 0; i < rounds; i++) a = hybrid_mul(a, b);
    fr_store(x, THREAD, hybrid_to(a));
}

extern "C" __global__ void __launch_bounds__(128) bench_frh_sqr(uint4* x, u32 rounds)
{
    frh a = frh_from_fr(fr_load(x, THREAD));
    for (u32 i = 0; i < rounds; i++) a = hybrid_sqr(a);
    fr_store(x, THREAD, hybrid_to(a));
}
