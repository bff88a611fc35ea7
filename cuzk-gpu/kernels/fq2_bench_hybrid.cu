// As field_bench.cu, for Fq2 in the hybrid form.
#include "fq2_hybrid.cuh"

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

// Elements that are read limb by limb are in shared memory, 160 bytes a thread.
FN fqh2_ref shared_element()
{
    extern __shared__ double limbs[];
    fqh2_ref r;
    r.c0.limbs = limbs + threadIdx.x, r.c1.limbs = r.c0.limbs + FQH_LIMBS * blockDim.x;
    r.c0.stride = r.c1.stride = blockDim.x;
    return r;
}
FN fqh2 fqh2_load(const u32* x)
{
    fqh2 r;
    r.c0 = fqh_from_fq(fq_load(x)), r.c1 = fqh_from_fq(fq_load(x + FQ_WORDS));
    return r;
}
FN void fqh2_store(u32* x, const fqh2& a) { fq_store(x, hybrid_to(a.c0)), fq_store(x + FQ_WORDS, hybrid_to(a.c1)); }

extern "C" __global__ void __launch_bounds__(128, 2) bench_fqh2_mul(u32* x, u32 rounds)
{
    x += 2 * FQ_WORDS * THREAD;
    const fqh2_ref b = shared_element();
    fqh2 a = fqh2_load(x);
    fqh2_set(b, a);
    for (u32 i = 0; i < rounds; i++) a = fqh2_mul(a, b);
    fqh2_store(x, a);
}

extern "C" __global__ void __launch_bounds__(128, 2) bench_fqh2_sqr(u32* x, u32 rounds)
{
    x += 2 * FQ_WORDS * THREAD;
    const fqh2_ref a = shared_element();
    fqh2_set(a, fqh2_load(x));
    for (u32 i = 0; i < rounds; i++) fqh2_set(a, fqh2_sqr(a));
    fqh2_store(x, fqh2_get(a));
}
