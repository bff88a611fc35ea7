// What the kernels of the multi-scalar multiplication share.
#pragma once
#include "sort.cuh"

#define MSM_MAX_WINDOWS 64
// No point: the value of a pair that counts nothing.
#define MSM_NONE 0xffffffffu
// The longest segment; lengths are sorted by one digit of the radix sort.
#define MSM_MAX_LENGTH 255u
// Segment starts carry a bit that chooses between two strides.
#define MSM_SECOND_STRIDE 0x80000000u

#define MSM_MAX_QUERIES 4
#define MSM_MAX_LEVELS 8

// How a level of sums stands: buckets that are longer than its cap are cut into segments, and the sums of these added up
// on the next level. The level after one that did not cut has no segments.
struct msm_level {
    u32 longest;
    u32 segments;
    u32 cut;
};

// What the kernels of a call tell each other, so that the host need not wait in between. `msm_begin` sets it.
struct msm_state {
    u32 pairs;
    u32 passed; // sums that nobody needs
    u32 listed[MSM_MAX_QUERIES]; // full scalars of each query
    u32 ones[MSM_MAX_QUERIES]; // points that count once
    u32 tickets[SORT_MAX_PASSES + MSM_MAX_LEVELS]; // of the passes of the sort, and of the levels' sorts of segments
    msm_level before_levels; // cuts: the first level has segments
    msm_level levels[MSM_MAX_LEVELS];
};
static_assert(sizeof(msm_state) == 4 * 49, "its words have numbers in workspace.rs");

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
    u32 stride;
    u32 second_stride;
    // If not null, `segments` is the level's, and sums go to `part_sums` if it cuts.
    const msm_level* level;
    char* part_sums;
};

FN u32 segments_of(const msm_accumulate_args& a) { return a.level ? a.level->segments : a.segments; }
FN char* sums_of(const msm_accumulate_args& a) { return a.level && a.level->cut ? a.part_sums : a.sums; }
