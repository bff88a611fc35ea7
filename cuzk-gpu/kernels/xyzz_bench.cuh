// Mixed additions: each thread adds `rounds` points of a pool of 512 to one point, in XYZZ coordinates. The pool stays
// in the caches, so that this is the rate of the arithmetic. The sums go to `out`.
#pragma once
#include "g1.cuh"

#define POOL 512
#define THREADS 128
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

template <class G>
FN affine<G> pool_point(const u32* pool, u32 i)
{
    affine<G> q;
    point_load(q, pool + sizeof(q) / 4 * (i % POOL));
    return q;
}

template <class G>
FN void add_pool(const u32* pool, u32* out, u32 rounds)
{
    xyzz<G> sum;
    set_affine(sum, pool_point<G>(pool, THREAD));
    for (u32 i = 1; i <= rounds; i++) point_add(sum, pool_point<G>(pool, THREAD + i * 37));
    point_store(out + sizeof(sum) / 4 * THREAD, sum);
}
