// What the transforms of the quotient read: planes in bit-reversed order, their products, and lists of exceptions
// scaled by constants. A few bytes a value, against the thousands of operations of the transforms. See
// src/cuda/ntt/quotient.rs for the constants.
#include "planes.cuh"

// Three planes from natural into bit-reversed order, 2^log_n bits each, one a value of blockIdx.y. A warp transposes
// 32 words: those that differ in the top five bits of a row's number give those that differ in the top five bits of a
// position.
extern "C" __global__ void __launch_bounds__(256) planes_reverse(planes in, u32* low, u32* high, u32* exceptional,
                                                                 u32 log_n)
{
    const u32* from = blockIdx.y == 0 ? in.low : blockIdx.y == 1 ? in.high : in.exceptional;
    u32* to = blockIdx.y == 0 ? low : blockIdx.y == 1 ? high : exceptional;
    const u32 thread = blockIdx.x * 256 + threadIdx.x;
    if (log_n < 10) {
        // At most 16 words: a thread gathers each.
        if (thread >= 16) return;
        u32 word = 0;
        for (u32 bit = 0; bit < 32; bit++) {
            const u32 p = thread * 32 + bit;
            const u32 i = log_n == 0 ? 0 : __brev(p) >> (32 - log_n);
            if (p >> log_n == 0) word |= (from[i >> 5] >> (i & 31) & 1) << bit;
        }
        to[thread] = word;
        return;
    }
    const u32 lane = threadIdx.x & 31, middle = thread >> 5, bits = log_n - 10;
    if (middle >> bits != 0) return;
    const u32 top = __brev(lane) >> 27;
    const u32 middle_reversed = bits == 0 ? 0 : __brev(middle) >> (32 - bits);
    const u32 word = from[(top << bits) + middle];
    u32 mine = 0;
#pragma unroll
    for (u32 bit = 0; bit < 32; bit++) {
        const u32 column = __ballot_sync(0xffffffffu, word >> bit & 1);
        if (lane == bit) mine = column;
    }
    to[(top << bits) + middle_reversed] = mine;
}

// c = a b value by value, as planes; `rows` gets the numbers of c's exceptions in the order of its list. A thread a
// word. *c.count must be 0.
extern "C" __global__ void __launch_bounds__(256) planes_multiply(planes a, planes b, planes c, u32* rows, u32 words)
{
    const u32 word = blockIdx.x * 256 + threadIdx.x;
    u32 exceptional = 0, low = 0, high = 0;
    if (word < words) {
        const u32 al = a.low[word], ah = a.high[word], ax = a.exceptional[word];
        const u32 bl = b.low[word], bh = b.high[word], bx = b.exceptional[word];
        const u32 a_one = al & ~ah, a_two = ah & ~al, a_minus = al & ah;
        const u32 b_one = bl & ~bh, b_two = bh & ~bl, b_minus = bl & bh;
        const u32 not_zero = (al | ah | ax) & (bl | bh | bx);
        exceptional = not_zero & (ax | bx | (a_two & (b_two | b_minus)) | (a_minus & b_two));
        low = ((a_one & bl) | (b_one & al) | (a_minus & b_minus)) & ~exceptional;
        high = ((a_one & bh) | (b_one & ah)) & ~exceptional;
    }
    u32 place = planes_reserve<256>(c.count, __popc(exceptional));
    if (word >= words) return;
    c.low[word] = low;
    c.high[word] = high;
    c.exceptional[word] = exceptional;
    c.first[word] = place;
    for (; exceptional != 0; exceptional &= exceptional - 1, place++) {
        if (place < c.capacity) rows[place] = word * 32 + (__ffs(exceptional) - 1);
    }
}

// The exceptions of c = a b, times a constant in plain form: Montgomery form of a and b in, plain form out. Two
// products each.
extern "C" __global__ void __launch_bounds__(128) planes_multiply_list(planes a, planes b, planes c, const u32* rows,
                                                                       const uint4* factor)
{
    const fr f = fr_load(factor, 0);
    const u32 count = min(*c.count, c.capacity);
    for (u32 i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
        const u32 row = rows[i];
        fr_store(c.list, i, fr_mul(fr_mul(planes_value(a, row), planes_value(b, row)), f));
    }
}

// The exceptions of a vector times a constant in plain form, in place: Montgomery form in, plain form out.
extern "C" __global__ void __launch_bounds__(128) planes_scale_list(planes in, const uint4* factor)
{
    const fr f = fr_load(factor, 0);
    const u32 count = min(*in.count, in.capacity);
    for (u32 i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
        fr_store(in.list, i, fr_mul(fr_load(in.list, i), f));
    }
}
