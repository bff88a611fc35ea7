// Sizes of the radix sort, and what kernels that make keys need to count digits on the way.
#pragma once
#include "block.cuh"

#define SORT_DIGITS 256
#define SORT_MAX_PASSES 4
#ifndef SORT_THREADS
#define SORT_THREADS 512
#define SORT_ITEMS 16
#define SORT_BLOCKS 2
#endif
#define SORT_TILE (SORT_THREADS * SORT_ITEMS)

// Counts the digits of one key in shared memory.
FN void sort_count_key(u32* bins, u32 key, u32 passes)
{
    for (u32 pass = 0; pass < passes; pass++) atomicAdd(&bins[pass * SORT_DIGITS + (key >> 8 * pass & 0xff)], 1);
}

// Adds a block's counts to the counts of all.
FN void sort_flush_counts(const u32* bins, u32* counts, u32 passes)
{
    for (u32 i = threadIdx.x; i < passes * SORT_DIGITS; i += blockDim.x)
        if (bins[i]) atomicAdd(&counts[i], bins[i]);
}
