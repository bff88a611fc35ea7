// From sorted pairs to segments: the runs of pairs that one accumulator adds up. How many there are is told by one kernel
// to the next (msm_state), not to the host.
//
// A bucket of l pairs is one segment, or, if that is longer than the cap, as many as needed, of even length. Segments are
// then sorted by length, longest first, so that the lanes of a warp work on equal lengths: the key is 255 - length.
#include "block.cuh"
#include "msm.cuh"

// Before the kernels of a call: nothing is counted yet. `listed` is what the host knows of the full scalars.
extern "C" __global__ void __launch_bounds__(256)
    msm_begin(msm_state* state, u32* counts, const uint4 listed)
{
    for (u32 i = threadIdx.x; i < sizeof(*state) / 4; i += blockDim.x) ((u32*)state)[i] = 0;
    for (u32 i = threadIdx.x; i < (SORT_MAX_PASSES + MSM_MAX_LEVELS) * SORT_DIGITS; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        state->listed[0] = listed.x, state->listed[1] = listed.y;
        state->listed[2] = listed.z, state->listed[3] = listed.w;
        state->before_levels.cut = 1;
    }
}

// start[b] = position of the first pair whose key is at least b, for b in 0..=buckets; one thread a pair and one more.
// Gaps between keys are filled by a whole warp, so that few keys among many buckets cost no long loops.
extern "C" __global__ void __launch_bounds__(256) msm_bounds(const u32* keys, const u32* pairs, u32 buckets, u32* start)
{
    const u32 n = *pairs;
    const u64 p = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 from = 0, count = 0;
    if (p <= n) {
        from = p == 0 ? 0 : keys[p - 1] + 1;
        count = (p == n ? buckets : keys[p]) + 1 - from;
    }
    if (count <= 32) {
        for (u32 b = 0; b < count; b++) start[from + b] = (u32)p;
        count = 0;
    }
    u32 lanes = __ballot_sync(0xffffffff, count != 0);
    while (lanes) {
        const int lane = __ffs(lanes) - 1;
        lanes &= lanes - 1;
        const u32 gap_from = __shfl_sync(0xffffffff, from, lane), gap = __shfl_sync(0xffffffff, count, lane);
        const u32 position = __shfl_sync(0xffffffff, (u32)p, lane);
        for (u32 b = threadIdx.x % 32; b < gap; b += 32) start[gap_from + b] = position;
    }
}

#define SCAN_THREADS 256
#define SCAN_ITEMS 8
#define SCAN_TILE (SCAN_THREADS * SCAN_ITEMS)

FN u32 cut_into(u32 length, u32 cap) { return max(1u, (length + cap - 1) / cap); }

// Segments of the buckets of each tile of 2048, and the length of the longest bucket of all, if the level before did cut.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    msm_count_segments(const u32* start, u32 buckets, u32 cap, u32* tile_sums, msm_level* level)
{
    if (!level[-1].cut) return;
    __shared__ u32 scratch[SCAN_THREADS / 32];
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x;
    u32 sum = 0, most = 0;
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        const u32 b = first + i * SCAN_THREADS;
        if (b < buckets) {
            const u32 length = start[b + 1] - start[b];
            sum += cut_into(length, cap);
            most = max(most, length);
        }
    }
    const u32 before = block_exclusive_sum<SCAN_THREADS>(sum, scratch);
    if (threadIdx.x == SCAN_THREADS - 1) tile_sums[blockIdx.x] = before + sum;
    most = __reduce_max_sync(0xffffffff, most);
    if (threadIdx.x % 32 == 0) atomicMax(&level->longest, most);
}

// Exclusive sum of `n` words in place. Returns the whole sum. One block of 1024 threads.
FN u32 scan_in_place(u32* sums, u32 n)
{
    __shared__ u32 scratch[32];
    u32 carry = 0;
    for (u32 tile = 0; tile < n; tile += 1024) {
        const u32 i = tile + threadIdx.x;
        const u32 value = i < n ? sums[i] : 0;
        const u32 before = block_exclusive_sum<1024>(value, scratch);
        if (i < n) sums[i] = carry + before;
        __shared__ u32 all;
        if (threadIdx.x == 1023) all = before + value;
        __syncthreads();
        carry += all;
        __syncthreads();
    }
    return carry;
}

// The same as a kernel; the total is the whole sum, at most `most`, and `more`.
extern "C" __global__ void __launch_bounds__(1024) msm_scan_tiles(u32* sums, u32 n, u32 most, u32 more, u32* total)
{
    const u32 sum = scan_in_place(sums, n);
    if (threadIdx.x == 0) *total = min(sum, most) + more;
}

// First segments of the tiles, and the level's decision.
extern "C" __global__ void __launch_bounds__(1024)
    msm_scan_segments(u32* sums, u32 n, u32 buckets, u32 cap, msm_level* level)
{
    if (!level[-1].cut) return;
    const u32 sum = scan_in_place(sums, n);
    if (threadIdx.x == 0) {
        level->cut = level->longest > cap;
        level->segments = level->cut ? sum : buckets;
    }
}

// first_segment[b] for b in 0..=buckets, from the sums of the tiles, if the level cuts.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    msm_place_segments(const u32* start, u32 buckets, u32 cap, const u32* tile_sums, const msm_level* level,
                       u32* first_segment)
{
    if (!level->cut) return;
    __shared__ u32 scratch[SCAN_THREADS / 32];
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_ITEMS;
    u32 counts[SCAN_ITEMS], sum = 0;
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        counts[i] = first + i < buckets ? cut_into(start[first + i + 1] - start[first + i], cap) : 0;
        sum += counts[i];
    }
    u32 place = tile_sums[blockIdx.x] + block_exclusive_sum<SCAN_THREADS>(sum, scratch);
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        if (first + i < buckets) first_segment[first + i] = place;
        place += counts[i];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) first_segment[buckets] = level->segments;
}

// Start and sort key of each segment, and the count of each key. If the level does not cut, each bucket is a segment.
extern "C" __global__ void __launch_bounds__(256)
    msm_cut_segments(const u32* start, u32 buckets, const u32* first_segment, const msm_level* level, u32* segment_start,
                     u32* keys, u32* values, u32* counts)
{
    const u32 segments = level->segments;
    __shared__ u32 bins[SORT_DIGITS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (u32 g = blockIdx.x * blockDim.x + threadIdx.x; g < segments; g += gridDim.x * blockDim.x) {
        u32 from, length;
        if (level->cut) {
            // The last bucket that begins at g or before: every bucket has a segment, so it is the one of g.
            u32 low = 0, high = buckets;
            while (high - low > 1) {
                const u32 middle = low + (high - low) / 2;
                if (first_segment[middle] <= g) low = middle;
                else high = middle;
            }
            const u32 parts = first_segment[low + 1] - first_segment[low], part = g - first_segment[low];
            const u32 begin = start[low];
            const u64 whole = start[low + 1] - begin;
            from = begin + (u32)(whole * part / parts);
            length = begin + (u32)(whole * (part + 1) / parts) - from;
        } else {
            from = start[g];
            length = start[g + 1] - from;
        }
        segment_start[g] = from;
        const u32 key = MSM_MAX_LENGTH - length;
        keys[g] = key;
        values[g] = g;
        atomicAdd(&bins[key], 1);
    }
    __syncthreads();
    if (bins[threadIdx.x]) atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}

// ordered[i] = segment_start[order[i]].
extern "C" __global__ void __launch_bounds__(256)
    msm_order_starts(const u32* segment_start, const u32* order, const u32* segments, u32* ordered)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < *segments; i += gridDim.x * blockDim.x)
        ordered[i] = segment_start[order[i]];
}

// Segments of a regular shape: the i-th of a job begins at source + i * segment_stride.
struct msm_job {
    u32 first_segment;
    u32 source;
    u32 segment_stride;
    u32 second_stride; // whether its elements are the second stride apart
};

// Starts of the segments of `jobs` jobs, which are in the order of their first segments.
extern "C" __global__ void __launch_bounds__(256) msm_job_starts(const msm_job* jobs, u32 count, u32 segments, u32* ordered)
{
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= segments) return;
    u32 low = 0, high = count;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (jobs[middle].first_segment <= g) low = middle;
        else high = middle;
    }
    const msm_job job = jobs[low];
    const u32 start = job.source + (g - job.first_segment) * job.segment_stride;
    ordered[g] = start | (job.second_stride ? MSM_SECOND_STRIDE : 0);
}

// Where segment g of `segments` takes every segments-th of `*points` points from number g on: how many are longer than s.
extern "C" __global__ void __launch_bounds__(SORT_DIGITS) msm_dealt_lengths(const u32* points, u32 segments, u32* longer)
{
    const u64 dealt = (u64)(MSM_MAX_LENGTH - threadIdx.x) * segments;
    longer[threadIdx.x] = dealt < *points ? (u32)min((u64)segments, *points - dealt) : 0;
}
