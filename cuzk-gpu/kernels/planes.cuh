// Vectors of mostly small values: two planes of bits hold 0, 1, 2 or -1, a third says which values are exceptions to be
// found in a list. Natural order: value i is bit i mod 32 of word i / 32 of each plane. The same structs are in
// src/cuda/ntt/planes.rs.
#pragma once
#include "block.cuh"
#include "fr.cuh"

struct planes {
    u32* low;         // code bit 0
    u32* high;        // code bit 1: 0, 1, 2, 3 stand for 0, 1, 2, -1; exceptions have code 0
    u32* exceptional; // whether the value is in the list
    u32* first;       // list index of the first exception of each word
    uint4* list;      // exceptions, 32 bytes each, in any order of words
    u32* count;       // how many exceptions there are, also if they are more than `capacity`
    u32 capacity;     // how many the list can hold; those past it are lost, and the count tells
    u32 unused;
};

// Value i in Montgomery form.
FN fr planes_value(const planes& in, u32 i)
{
    const u32 word = i >> 5, bit = i & 31;
    const u32 exceptional = in.exceptional[word];
    if (exceptional >> bit & 1) {
        const u32 at = in.first[word] + __popc(exceptional & ((1u << bit) - 1));
        return at < in.capacity ? fr_load(in.list, at) : fr_zero();
    }
    const bool low = in.low[word] >> bit & 1, high = in.high[word] >> bit & 1;
    if (!low && !high) return fr_zero();
    if (!high) return fr_one();
    return low ? fr_sub(fr_zero(), fr_one()) : fr_add(fr_one(), fr_one());
}

// Reserves list places for the exceptions of a block of THREADS, `mine` of them this thread's, and returns the first
// of this thread's. One atomic addition a block.
template <int THREADS> FN u32 planes_reserve(u32* count, u32 mine)
{
    __shared__ u32 scratch[THREADS / 32];
    __shared__ u32 base;
    const u32 before = block_exclusive_sum<THREADS>(mine, scratch);
    const u32 all = before + mine;
    if (threadIdx.x == THREADS - 1) base = all == 0 ? 0 : atomicAdd(count, all);
    __syncthreads();
    return base + before;
}
