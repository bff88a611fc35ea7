// Sums over the threads of a warp and of a block.
#pragma once
#include "carry.cuh"

// Sum over the lanes before this one and itself.
FN u32 warp_inclusive_sum(u32 value)
{
    const u32 lane = threadIdx.x % 32;
    UNROLL for (int d = 1; d < 32; d *= 2) {
        const u32 other = __shfl_up_sync(0xffffffff, value, d);
        if (lane >= d) value += other;
    }
    return value;
}

// Sum over the threads before this one in a block of THREADS. `scratch` has a word a warp. Ends with a barrier passed by
// all, after which `scratch` holds the sums of the warps before each.
template <int THREADS>
FN u32 block_exclusive_sum(u32 value, u32* scratch)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 inclusive = warp_inclusive_sum(value);
    if (lane == 31) scratch[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        const u32 sum = lane < THREADS / 32 ? scratch[lane] : 0;
        const u32 before = warp_inclusive_sum(sum) - sum;
        if (lane < THREADS / 32) scratch[lane] = before;
    }
    __syncthreads();
    return inclusive - value + scratch[warp];
}
