// What the kernels of the multi-scalar multiplication share.
#pragma once
#include "types.cuh"

#define MSM_MAX_WINDOWS 64
// No point: the value of a pair that counts nothing.
#define MSM_NONE 0xffffffffu
// The longest segment; lengths are sorted by one digit of the radix sort.
#define MSM_MAX_LENGTH 255u
// Segment starts carry a bit that chooses between two strides.
#define MSM_SECOND_STRIDE 0x80000000u

// Arguments of the accumulation kernels. Segment g begins at the position starts[g] and takes every stride-th position from there (the second stride
// if its start says so); a position is a number in `index`, or without an index that of a point. `longer` tells how many
// segments are longer than s: longer[255 - s]. Its sum goes to sums[order[g]], or to sums[g] without an order.
struct msm_accumulate_args {
    const char* points;
    const u32* index;
    const u32* starts;
    const u32* order;
    const u32* longer;
    char* scratch;
    char* sums;
    u32 segments;
    u32 per_lane; // K
    u32 stride;
    u32 second_stride;
};
