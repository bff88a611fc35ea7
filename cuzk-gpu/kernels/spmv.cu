// The compact witness on the device, and the products of the constraint matrices with it.
#include "planes.cuh"

// The compact witness as the matrices' columns look it up: for each 32 columns which of them are 1, which are full
// values, and how many full values come before: 16 bytes, one load. `full` holds the full values in order of columns.
struct witness {
    const uint4* groups;
    const uint4* full;
};

// Word of 32 bits of a bitmap that begins at position `begin`, which may be negative; positions outside are zero.
FN u32 bitmap_word(const u32* bits, u32 words, i64 begin)
{
    const i64 index = begin >> 5;
    const u32 shift = (u32)begin & 31;
    const u32 low = index >= 0 && index < words ? bits[index] : 0;
    const u32 high = index + 1 >= 0 && index + 1 < words ? bits[index + 1] : 0;
    return __funnelshift_r(low, high, shift);
}

// Groups of columns from the bitmaps of auxiliary variables, `words` words each. The columns before them are the
// public inputs: the first is 1, the others are taken as full values. The third word of a group counts from the
// beginning of its block of 1,024 groups, whose totals go to `totals`.
extern "C" __global__ void __launch_bounds__(1024) witness_groups(const u32* ones, const u32* full, u32 words,
                                                                  u32 inputs, u32 groups, uint4* out, u32* totals)
{
    __shared__ u32 scratch[32];
    const u32 group = blockIdx.x * 1024 + threadIdx.x;
    const i64 begin = (i64)group * 32 - inputs;
    u32 one = 0, rest = 0;
    if (group < groups) {
        one = bitmap_word(ones, words, begin) | (group == 0 ? 1 : 0);
        rest = bitmap_word(full, words, begin);
        const u32 inside = begin < 0 ? (begin <= -32 ? 32 : (u32)-begin) : 0;
        rest |= inside == 32 ? 0xffffffffu : (1u << inside) - 1;
        rest &= ~(group == 0 ? 1u : 0u);
    }
    const u32 before = block_exclusive_sum<1024>(__popc(rest), scratch);
    if (group < groups) out[group] = make_uint4(one, rest, before, 0);
    if (threadIdx.x == 1023) totals[blockIdx.x] = before + __popc(rest);
}

// Replaces each total by the sum of those before it. One block.
extern "C" __global__ void __launch_bounds__(1024) witness_totals(u32* totals, u32 len)
{
    __shared__ u32 scratch[32];
    __shared__ u32 sum;
    if (threadIdx.x == 0) sum = 0;
    for (u32 begin = 0; begin < len; begin += 1024) {
        const u32 i = begin + threadIdx.x;
        const u32 mine = i < len ? totals[i] : 0;
        const u32 before = block_exclusive_sum<1024>(mine, scratch) + sum;
        if (i < len) totals[i] = before;
        __syncthreads();
        if (threadIdx.x == 1023) sum = before + mine;
    }
}

// Makes the counts of groups those from the very beginning.
extern "C" __global__ void __launch_bounds__(1024) witness_ranks(uint4* groups, const u32* totals, u32 len)
{
    const u32 group = blockIdx.x * 1024 + threadIdx.x;
    if (group < len) groups[group].z += totals[blockIdx.x];
}

// A sparse matrix in compressed rows; coefficients in Montgomery form, the first of them is one.
struct matrix {
    const u32* starts;
    const u32* columns;
    const unsigned short* values;
    const uint4* coefficients;
    u32 rows;
    u32 unused;
};

// sum + the entry's coefficient times its variable, in Montgomery form.
FN fr spmv_add_entry(const fr& sum, const matrix& m, const witness& w, u32 entry)
{
    const u32 column = m.columns[entry], bit = column & 31;
    const uint4 group = w.groups[column >> 5];
    const bool one = group.x >> bit & 1, full = group.y >> bit & 1;
    if (!one && !full) return sum;
    const u32 index = m.values[entry];
    fr term = fr_load(m.coefficients, index);
    if (full) {
        const fr value = fr_load(w.full, group.z + __popc(group.y & ((1u << bit) - 1)));
        term = index == 0 ? value : fr_mul(value, term);
    }
    return fr_add(sum, term);
}

// Rows of more entries than this are summed by a whole warp.
#define SPMV_SHORT 32

// out = matrix * witness, rows in natural order, as planes; *out.count must be 0. A thread a row, a warp a word of the
// planes. Reads 4 bytes a row and 6 an entry, and looks up 16 bytes of witness an entry; a product for each entry with
// neither variable nor coefficient small.
extern "C" __global__ void __launch_bounds__(256) spmv(matrix m, witness w, planes out)
{
    const u32 row = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31;
    u32 begin = 0, end = 0;
    if (row < m.rows) {
        begin = m.starts[row];
        end = m.starts[row + 1];
    }
    const bool is_long = end - begin > SPMV_SHORT;
    fr sum = fr_zero();
    if (!is_long) {
        for (u32 entry = begin; entry < end; entry++) sum = spmv_add_entry(sum, m, w, entry);
    }
    for (u32 waiting = __ballot_sync(0xffffffffu, is_long); waiting != 0; waiting &= waiting - 1) {
        const int owner = __ffs(waiting) - 1;
        const u32 first = __shfl_sync(0xffffffffu, begin, owner), last = __shfl_sync(0xffffffffu, end, owner);
        fr part = fr_zero();
        for (u32 entry = first + lane; entry < last; entry += 32) part = spmv_add_entry(part, m, w, entry);
#pragma unroll 1
        for (int step = 16; step > 0; step /= 2) {
            fr other;
#pragma unroll
            for (int k = 0; k < FR_WORDS; k++) other.v[k] = __shfl_xor_sync(0xffffffffu, part.v[k], step);
            part = fr_add(part, other);
        }
        if (lane == owner) sum = part;
    }
    const bool one = fr_equal(sum, fr_one()), two = fr_equal(sum, fr_add(fr_one(), fr_one()));
    const bool minus_one = fr_equal(sum, fr_sub(fr_zero(), fr_one()));
    const bool exceptional = !(one || two || minus_one || fr_equal(sum, fr_zero()));
    const u32 low = __ballot_sync(0xffffffffu, one || minus_one), high = __ballot_sync(0xffffffffu, two || minus_one);
    const u32 exceptions = __ballot_sync(0xffffffffu, exceptional);
    const u32 place = planes_reserve<256>(out.count, exceptional ? 1 : 0);
    if (lane == 0) {
        const u32 word = row >> 5;
        out.low[word] = low;
        out.high[word] = high;
        out.exceptional[word] = exceptions;
        out.first[word] = place;
    }
    if (exceptional && place < out.capacity) fr_store(out.list, place, sum);
}
