// Stable radix sort of (u32 key, u32 value) pairs by 8-bit digits, lowest first. One reading of the keys counts all digits
// (unless whoever made the keys has counted them already); then each digit is one pass that reads and writes every pair
// once: a tile learns where its digits go by looking back at the tiles before it (Adinets and Merrill, "Onesweep: a faster
// least significant digit radix sort for GPUs", 2022). Bytes: 4 a pair to count, 16 a pair and pass.
#include "sort.cuh"

// Adds the counts of `passes` digits of the keys, from bit 0, to counts[pass][digit].
extern "C" __global__ void __launch_bounds__(256) sort_count(const u32* keys, u32 n, u32 passes, u32* counts)
{
    __shared__ u32 bins[SORT_MAX_PASSES * SORT_DIGITS];
    for (u32 i = threadIdx.x; i < passes * SORT_DIGITS; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        sort_count_key(bins, keys[i], passes);
    __syncthreads();
    sort_flush_counts(bins, counts, passes);
}

// Counts to first places: an exclusive sum over the digits of each pass, in place. One block of 256 threads a pass.
extern "C" __global__ void __launch_bounds__(SORT_DIGITS) sort_scan(u32* counts)
{
    __shared__ u32 scratch[SORT_DIGITS / 32];
    u32* bins = counts + blockIdx.x * SORT_DIGITS;
    bins[threadIdx.x] = block_exclusive_sum<SORT_DIGITS>(bins[threadIdx.x], scratch);
}

// What a tile tells the tiles after it, a word a digit: the count of the tile alone, or of all tiles up to it.
#define STATUS_TILE (1ull << 62)
#define STATUS_PREFIX (2ull << 62)
#define STATUS_COUNT 0xffffffffull

FN u64 status_load(const u64* word)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word));
    return value;
}

FN void status_store(u64* word, u64 value) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value)); }

// Lanes of the warp that have the same digit.
FN u32 same_digit(u32 digit)
{
    u32 lanes = 0xffffffff;
    UNROLL for (int bit = 0; bit < 8; bit++) {
        const bool set = digit >> bit & 1;
        const u32 ballot = __ballot_sync(0xffffffff, set);
        lanes &= set ? ballot : ~ballot;
    }
    return lanes;
}

// One pass over the digit at `shift`. `first` is where each digit begins in the output, `status` holds SORT_DIGITS cleared
// words a tile, `ticket` is a cleared counter: tiles are taken in order, so that those before a tile have begun. There may
// be more blocks than tiles.
// Shared memory: SORT_TILE pairs and a counter for each warp and digit.
extern "C" __global__ void __launch_bounds__(SORT_THREADS, SORT_BLOCKS)
    sort_pass(const u32* keys_in, const u32* values_in, u32* keys_out, u32* values_out, const u32* count_of_pairs, u32 shift,
              const u32* first, u64* status, u32* ticket)
{
    extern __shared__ u32 shared[];
    u32* stage_keys = shared;
    u32* stage_values = shared + SORT_TILE;
    u32(*counters)[SORT_DIGITS] = (u32(*)[SORT_DIGITS])(shared + 2 * SORT_TILE);
    __shared__ u32 place[SORT_DIGITS], scratch[SORT_THREADS / 32], tile_of_block;

    const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    if (thread == 0) tile_of_block = atomicAdd(ticket, 1);
    u32* mine = counters[warp];
    UNROLL for (int i = 0; i < SORT_DIGITS / 32; i++) mine[32 * i + lane] = 0;
    __syncthreads();
    const u32 tile = tile_of_block, n = *count_of_pairs;
    if ((u64)tile * SORT_TILE >= n) return;
    const u32 begin = tile * SORT_TILE;
    const u32 valid = min(n - begin, (u32)SORT_TILE);
    const u32 own = warp * (32 * SORT_ITEMS) + lane;

    u32 keys[SORT_ITEMS];
    UNROLL for (int i = 0; i < SORT_ITEMS; i++) {
        // Past the end: the largest digit, so that they come out last, at places that are not written.
        keys[i] = own + 32 * i < valid ? __ldcs(keys_in + begin + own + 32 * i) : 0xffffffff;
    }
    UNROLL for (int i = 0; i < SORT_ITEMS; i++) atomicAdd(&mine[keys[i] >> shift & 0xff], 1);
    __syncthreads();

    // The tile's count of each digit is told as early as possible; counters become first places in the tile.
    u32 count = 0;
    u64* row = status + (u64)tile * SORT_DIGITS + thread;
    if (thread < SORT_DIGITS) {
        UNROLL for (int w = 0; w < SORT_THREADS / 32; w++) {
            const u32 c = counters[w][thread];
            counters[w][thread] = count;
            count += c;
        }
        status_store(row, (tile == 0 ? STATUS_PREFIX : STATUS_TILE) | count);
    }
    const u32 local = block_exclusive_sum<SORT_THREADS>(count, scratch);
    if (thread < SORT_DIGITS) {
        UNROLL for (int w = 0; w < SORT_THREADS / 32; w++) counters[w][thread] += local;
    }
    u32 values[SORT_ITEMS];
    UNROLL for (int i = 0; i < SORT_ITEMS; i++)
        values[i] = own + 32 * i < valid ? __ldcs(values_in + begin + own + 32 * i) : 0;
    __syncthreads();

    UNROLL for (int i = 0; i < SORT_ITEMS; i++) {
        const u32 digit = keys[i] >> shift & 0xff;
        const u32 lanes = same_digit(digit);
        const u32 before = __popc(lanes & ((1u << lane) - 1));
        const u32 base = mine[digit];
        __syncwarp();
        if (before == 0) mine[digit] = base + __popc(lanes);
        __syncwarp();
        stage_keys[base + before] = keys[i];
        stage_values[base + before] = values[i];
    }

    if (thread < SORT_DIGITS) {
        u32 before = 0;
        if (tile > 0) {
            const u64* previous = row - SORT_DIGITS;
            while (true) {
                const u64 word = status_load(previous);
                if (word == 0) continue;
                before += (u32)(word & STATUS_COUNT);
                if (word & STATUS_PREFIX) break;
                previous -= SORT_DIGITS;
            }
            status_store(row, STATUS_PREFIX | (before + count));
        }
        place[thread] = first[thread] + before - local;
    }
    __syncthreads();

    UNROLL for (int i = 0; i < SORT_ITEMS; i++) {
        const u32 at = thread + i * SORT_THREADS;
        if (at < valid) {
            const u32 key = stage_keys[at];
            const u32 to = place[key >> shift & 0xff] + at;
            keys_out[to] = key;
            values_out[to] = stage_values[at];
        }
    }
}
