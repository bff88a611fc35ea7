// Sums of points in the hybrid form: a module of its own, as field_bench_hybrid.cu is.
#include "g1_hybrid.cuh"

#define POOL 512
#define THREADS 384 // all warps of a multiprocessor are one block, see g1h_add
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

FN affine<g1> plain_point(const u32* points, u32 i)
{
    affine<g1> q;
    point_load(q, points + 2 * FQ_WORDS * i);
    return q;
}

// As bench_g1_xyzz.
extern "C" __global__ void __launch_bounds__(THREADS, 1) bench_g1_xyzz_hybrid(const u32* pool, u32* out, u32 rounds)
{
    extern __shared__ double limbs[];
    const g1h sum = {limbs + threadIdx.x, THREADS};
    xyzz<g1> first;
    set_affine(first, plain_point(pool, THREAD % POOL));
    g1h_set(sum, first);
    for (u32 i = 1; i <= rounds; i++) {
        __syncthreads();
        g1h_add(sum, pool + 2 * FQ_WORDS * ((THREAD + i * 37) % POOL), false);
    }
    point_store(out + 4 * FQ_WORDS * THREAD, g1h_get(sum));
}
