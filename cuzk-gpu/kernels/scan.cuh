// Sums over the threads of a warp and of a block.
#pragma once
#include "types.cuh"

#define FULL_WARP 0xffffffffu

// Sum of `value` over the threads before this one in a block of `WARPS` full warps; *total gets the sum over all. `sums` is
// shared memory of the block; threads may use it again after a barrier.
template <int WARPS> FN u32 block_sum_before(u32 value, u32 sums[WARPS], u32* total)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 sum = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const u32 below = __shfl_up_sync(FULL_WARP, sum, step);
        if (lane >= step) sum += below;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    u32 before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) before = all;
        all += sums[w];
    }
    *total = all;
    return before + sum - value;
}
