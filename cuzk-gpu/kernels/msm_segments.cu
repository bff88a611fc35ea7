// From sorted pairs to segments: the runs of pairs that one accumulator adds up.
//
// A bucket of l pairs is one segment, or, if that is longer than the cap, as many as needed, of even length. Segments are
// then sorted by length, longest first, so that the lanes of a warp work on equal lengths: the key is 255 - length.
#include "block.cuh"
#include "msm.cuh"
#include "sort.cuh"

// start[b] = position of the first pair whose key is at least b, for b in 0..=buckets; one thread a pair and one more.
// Gaps between keys are filled by a whole warp, so that few keys among many buckets cost no long loops.
extern "C" __global__ void __launch_bounds__(256) msm_bounds(const u32* keys, u32 n, u32 buckets, u32* start)
{
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

FN u32 segments_of(u32 length, u32 cap) { return max(1u, (length + cap - 1) / cap); }

// Segments of the buckets of each tile of 2048, and the length of the longest bucket of all.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    msm_count_segments(const u32* start, u32 buckets, u32 cap, u32* tile_sums, u32* longest)
{
    __shared__ u32 scratch[SCAN_THREADS / 32];
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x;
    u32 sum = 0, most = 0;
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        const u32 b = first + i * SCAN_THREADS;
        if (b < buckets) {
            const u32 length = start[b + 1] - start[b];
            sum += segments_of(length, cap);
            most = max(most, length);
        }
    }
    const u32 before = block_exclusive_sum<SCAN_THREADS>(sum, scratch);
    if (threadIdx.x == SCAN_THREADS - 1) tile_sums[blockIdx.x] = before + sum;
    most = __reduce_max_sync(0xffffffff, most);
    if (threadIdx.x % 32 == 0) atomicMax(longest, most);
}

// Exclusive sum of `n` words in place, and the whole sum. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) msm_scan_tiles(u32* sums, u32 n, u32* total)
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
    if (threadIdx.x == 0) *total = carry;
}

// first_segment[b] for b in 0..=buckets, from the sums of the tiles.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    msm_place_segments(const u32* start, u32 buckets, u32 cap, const u32* tile_sums, const u32* total, u32* first_segment)
{
    __shared__ u32 scratch[SCAN_THREADS / 32];
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_ITEMS;
    u32 counts[SCAN_ITEMS], sum = 0;
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        counts[i] = first + i < buckets ? segments_of(start[first + i + 1] - start[first + i], cap) : 0;
        sum += counts[i];
    }
    u32 place = tile_sums[blockIdx.x] + block_exclusive_sum<SCAN_THREADS>(sum, scratch);
    UNROLL for (int i = 0; i < SCAN_ITEMS; i++) {
        if (first + i < buckets) first_segment[first + i] = place;
        place += counts[i];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) first_segment[buckets] = *total;
}

// Start and sort key of each segment, and the count of each key. `first_segment` is null where each bucket is a segment.
extern "C" __global__ void __launch_bounds__(256)
    msm_cut_segments(const u32* start, u32 buckets, const u32* first_segment, u32 segments, u32* segment_start, u32* keys,
                     u32* values, u32* counts)
{
    __shared__ u32 bins[SORT_DIGITS];
    bins[threadIdx.x] = 0;
    __syncthreads();
    const u32 g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < segments) {
        u32 from, length;
        if (first_segment) {
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
    msm_order_starts(const u32* segment_start, const u32* order, u32 segments, u32* ordered)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < segments) ordered[i] = segment_start[order[i]];
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
