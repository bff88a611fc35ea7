// The witness as a query sees it: from bitmaps to lists of points.
//
// A query holds a point for each variable in its mask, in order (all variables, without a mask). Of the variables that are
// 1 the points' numbers are listed; of those that are neither 0 nor 1 also the places of their values among the packed
// values. Two readings of the bitmaps, 4 or 8 bytes written a variable listed.
#include "block.cuh"
#include "msm.cuh"

#define SELECT_THREADS 256
#define SELECT_ITEMS 8
#define SELECT_TILE (SELECT_THREADS * SELECT_ITEMS) // words of 32 variables

struct select_word {
    u32 mask, set;
};

FN select_word select_load(const u32* mask, const u32* set, u32 word, u32 words)
{
    select_word w = {0, 0};
    if (word < words) w.mask = mask ? mask[word] : 0xffffffff, w.set = set[word];
    return w;
}

// Of each tile: variables in the mask, variables in the set, and in both.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS)
    msm_select_count(const u32* mask, const u32* set, u32 words, u32* in_mask, u32* in_set, u32* in_both)
{
    __shared__ u32 sums[3];
    if (threadIdx.x < 3) sums[threadIdx.x] = 0;
    __syncthreads();
    u32 masks = 0, sets = 0, both = 0;
    UNROLL for (int i = 0; i < SELECT_ITEMS; i++) {
        const select_word w = select_load(mask, set, blockIdx.x * SELECT_TILE + i * SELECT_THREADS + threadIdx.x, words);
        masks += __popc(w.mask), sets += __popc(w.set), both += __popc(w.mask & w.set);
    }
    masks = __reduce_add_sync(0xffffffff, masks), sets = __reduce_add_sync(0xffffffff, sets);
    both = __reduce_add_sync(0xffffffff, both);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], masks), atomicAdd(&sums[1], sets), atomicAdd(&sums[2], both);
    __syncthreads();
    if (threadIdx.x == 0) in_mask[blockIdx.x] = sums[0], in_set[blockIdx.x] = sums[1], in_both[blockIdx.x] = sums[2];
}

// Lists the variables in both, from the sums of the tiles before each. Point numbers begin at `first_point` and places of
// values at `first_value` (the query's public inputs come before its other variables); `value_list` may be null. Nothing is
// written past `most` places.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS)
    msm_select_list(const u32* mask, const u32* set, u32 words, const u32* in_mask, const u32* in_set, const u32* in_both,
                    u32 first_point, u32 first_value, u32 most, u32* point_list, u32* value_list)
{
    __shared__ u32 scratch[3][SELECT_THREADS / 32];
    // Points are listed through shared memory, so that neighbouring lanes write neighbouring words.
    __shared__ u32 stage[32 * SELECT_THREADS];
    u32 point = first_point + in_mask[blockIdx.x], value = first_value + in_set[blockIdx.x], place = in_both[blockIdx.x];
    for (u32 i = 0; i < SELECT_ITEMS; i++) {
        const select_word w = select_load(mask, set, blockIdx.x * SELECT_TILE + i * SELECT_THREADS + threadIdx.x, words);
        const u32 masks = __popc(w.mask), sets = __popc(w.set);
        u32 both = w.mask & w.set;
        const u32 pairs = __popc(both);
        const u32 point_before = block_exclusive_sum<SELECT_THREADS>(masks, scratch[0]);
        const u32 value_before = block_exclusive_sum<SELECT_THREADS>(sets, scratch[1]);
        u32 at = block_exclusive_sum<SELECT_THREADS>(pairs, scratch[2]);
        while (both) {
            const u32 below = (both & -both) - 1;
            both &= both - 1;
            stage[at] = point + point_before + __popc(w.mask & below);
            if (value_list && place + at < most) value_list[place + at] = value + value_before + __popc(w.set & below);
            at++;
        }
        __shared__ u32 tile[3];
        if (threadIdx.x == SELECT_THREADS - 1)
            tile[0] = point_before + masks, tile[1] = value_before + sets, tile[2] = at;
        __syncthreads();
        const u32 room = most - min(place, most);
        for (u32 j = threadIdx.x; j < min(tile[2], room); j += SELECT_THREADS) point_list[place + j] = stage[j];
        point += tile[0], value += tile[1], place += tile[2];
        __syncthreads();
    }
}
