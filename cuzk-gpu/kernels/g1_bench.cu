#include "g1.cuh"

// Mixed additions: each thread adds `rounds` points of a pool of 512 to one point, in XYZZ coordinates. The pool stays in
// the caches, so that this is the rate of the arithmetic. The sums go to `out`.
#define POOL 512
#define THREADS 128
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

FN affine<g1> pool_point(const u32* pool, u32 i)
{
    affine<g1> q;
    point_load(q, pool + 2 * FQ_WORDS * (i % POOL));
    return q;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) bench_g1_xyzz(const u32* pool, u32* out, u32 rounds)
{
    xyzz<g1> sum;
    set_affine(sum, pool_point(pool, THREAD));
    for (u32 i = 1; i <= rounds; i++) point_add(sum, pool_point(pool, THREAD + i * 37));
    point_store(out + 4 * FQ_WORDS * THREAD, sum);
}
