// Scalars to signed digits: the (bucket, point) pairs of a multi-scalar multiplication.
//
// A scalar above r/2 is replaced by r - k and its point by the negative one, so that k < 2^254 and the top window's carry
// stays inside it. Window j of width c: its bits plus the carry; above 2^(c-1) the digit is that less 2^c, and 1 is
// carried. key = first bucket of the window's set + |digit| - 1, value = entry of the window's table | sign << 31. A zero
// digit has the value NONE and a key that depends on the position only, so that zeros never pile up in one bucket.
// 32 bytes read, 8 written a window; the digits of the keys are counted for the sort on the way.
#include "msm.cuh"

CONSTANT u32 FR_R[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};

struct msm_windows {
    u32 count;
    u32 width[MSM_MAX_WINDOWS];
    u32 first_bucket[MSM_MAX_WINDOWS];
    u32 first_point[MSM_MAX_WINDOWS]; // of the table
};

// k/2^256 mod r, the number behind a scalar in Montgomery form, in 0..r.
FN void fr_plain(u32* k)
{
    UNROLL for (int i = 0; i < 8; i++) {
        const u32 m = 0 - k[0]; // -1/r = -1 mod 2^32
        u64 carry = ((u64)m * FR_R[0] + k[0]) >> 32;
        UNROLL for (int j = 1; j < 8; j++) {
            carry += (u64)m * FR_R[j] + k[j];
            k[j - 1] = (u32)carry;
            carry >>= 32;
        }
        k[7] = (u32)carry;
    }
    u32 less[8];
    less[0] = sub_cc(k[0], FR_R[0]);
    UNROLL for (int j = 1; j < 8; j++) less[j] = subc_cc(k[j], FR_R[j]);
    const bool below = subc(0, 0) != 0;
    UNROLL for (int j = 0; j < 8; j++) k[j] = below ? k[j] : less[j];
}

// r - k if that is smaller. Returns whether it was.
FN bool fr_halve(u32* k)
{
    u32 other[8];
    other[0] = sub_cc(FR_R[0], k[0]);
    UNROLL for (int j = 1; j < 7; j++) other[j] = subc_cc(FR_R[j], k[j]);
    other[7] = subc(FR_R[7], k[7]);
    sub_cc(other[0], k[0]);
    UNROLL for (int j = 1; j < 8; j++) subc_cc(other[j], k[j]);
    const bool smaller = subc(0, 0) != 0;
    UNROLL for (int j = 0; j < 8; j++) k[j] = smaller ? other[j] : k[j];
    return smaller;
}

// Pairs of a query's n scalars, behind those of the queries before it; pair j*n + i is for window j. Scalar i is
// scalars[scalar_index[i]] and belongs to the point point_index[i] of each table; without an index, to i.
extern "C" __global__ void __launch_bounds__(256)
    msm_digits(const uint4* scalars, u32 query, u32 montgomery, const u32* scalar_index, const u32* point_index,
               const msm_windows windows, u32 passes, u32* keys, u32* values, u32* counts, msm_state* state)
{
    const u32 n = state->listed[query];
    u32 before = 0;
    for (u32 q = 0; q < query; q++) before += state->listed[q];
    keys += (u64)before * windows.count, values += (u64)before * windows.count;
    if (blockIdx.x == 0 && threadIdx.x == 0) state->pairs = (before + n) * windows.count; // the last query's stays
    __shared__ u32 bins[SORT_MAX_PASSES * SORT_DIGITS];
    for (u32 i = threadIdx.x; i < passes * SORT_DIGITS; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const u64 from = scalar_index ? scalar_index[i] : i;
        const u32 point = point_index ? point_index[i] : i;
        const uint4 low = scalars[2 * from], high = scalars[2 * from + 1];
        u32 k[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        if (montgomery) fr_plain(k);
        const u32 negative = fr_halve(k) ? 1 : 0;
        u32 carry = 0;
        for (u32 j = 0; j < windows.count; j++) {
            const u32 c = windows.width[j], half = 1u << (c - 1);
            const u32 raw = (k[0] & (2 * half - 1)) + carry;
            UNROLL for (int w = 0; w < 7; w++) k[w] = __funnelshift_r(k[w], k[w + 1], c);
            k[7] >>= c;
            carry = raw > half;
            const u32 magnitude = carry ? 2 * half - raw : raw;
            const u32 key = windows.first_bucket[j] + (magnitude ? magnitude - 1 : i & (half - 1));
            const u32 value = (windows.first_point[j] + point) | (carry ^ negative) << 31;
            const u64 at = (u64)j * n + i;
            keys[at] = key;
            values[at] = magnitude ? value : MSM_NONE;
            sort_count_key(bins, key, passes);
        }
    }
    __syncthreads();
    sort_flush_counts(bins, counts, passes);
}
