// Layers of a number-theoretic transform over Fr, on tiles of 512 elements that 128 threads hold in registers.
//
// The transform is that of polynomial trees: with c^2 = d, X^2m - d splits into X^m - c and X^m + c, and layer s of
// 2^n points has 2^s such blocks, one factor c a block. T[j], j < 2^n, is the product of w_(4 2^b) over the bits b of
// j, w_k a primitive k-th root of one: the factor of block k is T[k] for the domain of the n-th roots of one
// ("domain"), and T[2^s + k] for the coset psi * domain, psi a primitive 2^(n+1)-th root ("coset"). So the table
// serves all layers, both kinds, and all smaller sizes.
//   forward: natural order in, bit-reversed order out; (u, v) -> (u + T v, u - T v), distances falling to 1.
//   inverse: bit-reversed order in, natural order out, times 2^n; (u, v) -> (u + v, (u - v) / T), distances rising.
//            -1 / T[j] = T[j'], j' = j with the bits below its leading one complemented; for j = 0 an entry holds -1.
//
// A pass does `layers` layers, the lowest at distance 2^log_distance. Its tile is either strided (2^column_bits
// adjacent columns of 2^layers rows) or contiguous (log_distance = column_bits = 0: whole neighbouring
// sub-transforms). A stage does two layers on four elements a thread, radix 4: those whose tile index differs in bits
// x + 1 and x. Between stages the tile goes through shared memory, in place, so one barrier is enough. With an odd
// number of layers the stage at the lowest bits does its lower layer only. Elements past the end of a transform of
// less than 512 points are garbage, and harmless: buffers hold at least 512 elements.
#pragma once
#include "fr.cuh"

#define NTT_THREADS 128
#define NTT_TILE 512

// What a pass does; the host computes it. The same struct is in src/cuda/ntt/plan.rs.
struct ntt_pass {
    u32 log_n;        // of the transform
    u32 layers;       // done by this pass
    u32 log_distance; // of its lowest layer
    u32 column_bits;  // log2 of adjacent columns in a tile
    u32 tile_shift;   // tiles are numbered by columns first, then in steps of 2^tile_shift elements
    u32 coset;        // 1: on the coset, 0: on the domain
    u32 minus_one;    // index of the factor -1
    u32 canonical;    // 1: write numbers below r
    u32 log_direct;   // log2 of the factors that are one entry of the table
};

// ---- The table of factors. Whole, its entry j is factor j, and entry 2^n is -1. In two levels (NTT_TWO_LEVELS, a module
// of its own, for devices with little memory) entries below 2^log_direct are factors, and factor j is the product of the
// entries j mod 2^log_direct and, if h = j / 2^log_direct is not 0, 2^log_direct - 1 + h. The last entry is -1 again,
// that of h = 2^(n - log_direct).
//
// Entries are in groups of 32, first part 0 (16 bytes) of each, then part 1 of each, and so on, so that threads with
// neighbouring entries read neighbouring parts. Parts 0 and 1 are the constant, 2 and 3 its quotient. ----

#define NTT_NEXT_PART 32 // from a part of an entry to its next

FN u32 ntt_part(u32 j, u32 part) { return (j & ~31u) * 4 + (j & 31) + part * NTT_NEXT_PART; }

// Part 0 of entry j. Two shifts and an addition with carry instead of the wide product that the compiler would take:
// that pipe is the one that the transforms are bound by.
FN const uint4* ntt_entry(const uint4* table, u32 j)
{
    const u32 part = ntt_part(j, 0);
#ifdef __CUDA_ARCH__
    u32 low, high;
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(table));
    low = add_cc(low, part << 4);
    high = addc(high, part >> 28);
    u64 address;
    asm("mov.b64 %0, {%1, %2};" : "=l"(address) : "r"(low), "r"(high));
    return (const uint4*)address;
#else
    return table + part;
#endif
}

// Loads that stay where they are written: left to itself, the compiler moves them up and spills.
FN void ntt_load_half(fr& a, int half, const uint4* from)
{
#ifdef __CUDA_ARCH__
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.v[4 * half]), "=r"(a.v[4 * half + 1]), "=r"(a.v[4 * half + 2]), "=r"(a.v[4 * half + 3])
                 : "l"(from));
#else
    a.v[4 * half] = from->x, a.v[4 * half + 1] = from->y, a.v[4 * half + 2] = from->z, a.v[4 * half + 3] = from->w;
#endif
}

FN void ntt_load_w(fr_constant& t, const uint4* entry)
{
    ntt_load_half(t.w, 0, entry);
    ntt_load_half(t.w, 1, entry + NTT_NEXT_PART);
}

FN void ntt_load_quotient(fr_constant& t, const uint4* entry)
{
    ntt_load_half(t.quotient, 0, entry + 2 * NTT_NEXT_PART);
    ntt_load_half(t.quotient, 1, entry + 3 * NTT_NEXT_PART);
}

// The entry that the product by factor j begins with.
FN u32 ntt_first_entry(const ntt_pass& pass, u32 j)
{
#ifdef NTT_TWO_LEVELS
    return j & ((1u << pass.log_direct) - 1);
#else
    return j;
#endif
}

FN void ntt_load_factor(fr_constant& t, const uint4* table, const ntt_pass& pass, u32 j)
{
    const uint4* const entry = ntt_entry(table, ntt_first_entry(pass, j));
    ntt_load_quotient(t, entry);
    ntt_load_w(t, entry);
}

// a t, and then t becomes an entry: each half of it is loaded as soon as its registers are free.
FN fr ntt_mul_then_load_entry(const fr& a, fr_constant& t, const uint4* table, u32 next)
{
    const uint4* const entry = ntt_entry(table, next);
    const fr q = fr_high(a, t.quotient);
    ntt_load_quotient(t, entry);
    const fr product = fr_low(a, t.w, q);
    ntt_load_w(t, entry);
    return product;
}

// a times factor j, of which t holds the first entry, and then t becomes the first entry of factor `next`. In a loop
// rather than twice, to keep the code small.
FN fr ntt_mul_then_load(const fr& a, fr_constant& t, const uint4* table, const ntt_pass& pass, u32 j, u32 next)
{
#ifdef NTT_TWO_LEVELS
    fr product = a;
    ROLLED for (u32 upper = j >> pass.log_direct;; upper = 0) {
        const u32 entry = upper != 0 ? (1u << pass.log_direct) - 1 + upper : ntt_first_entry(pass, next);
        product = ntt_mul_then_load_entry(product, t, table, entry);
        if (upper == 0) return product;
    }
#else
    return ntt_mul_then_load_entry(a, t, table, next);
#endif
}

// a times factor j, of which t holds the first entry and keeps it.
FN fr ntt_mul_factor(const fr& a, fr_constant& t, const uint4* table, const ntt_pass& pass, u32 j)
{
#ifdef NTT_TWO_LEVELS
    return ntt_mul_then_load(a, t, table, pass, j, j);
#else
    return fr_mul_constant(a, t);
#endif
}

// Index of -1 / T[j].
FN u32 ntt_inverse_index(u32 j, u32 minus_one) { return j == 0 ? minus_one : j ^ ((0x80000000u >> __clz(j)) - 1); }

// The same for all blocks of a thread at once: j is bits x.. of its number, and for j other than 0 the bits below the
// leading one can be complemented before the shift. `inverse` is that of the number, shifted by x, and 0 only if j is.
FN u32 ntt_complement(u32 blocks) { return blocks == 0 ? 0 : ntt_inverse_index(blocks, 0); }
FN u32 ntt_inverse_upper(u32 inverse, u32 minus_one) { return inverse == 0 ? minus_one : inverse; }          // of j
FN u32 ntt_inverse_even(u32 inverse, u32 minus_one) { return inverse == 0 ? minus_one : 2 * inverse + 1; } // of 2j
FN u32 ntt_inverse_odd(u32 inverse) { return inverse == 0 ? 1 : 2 * inverse; }                              // of 2j + 1

// ---- Where elements are ----

FN void ntt_split(uint4& low, uint4& high, const fr& a)
{
    low = make_uint4(a.v[0], a.v[1], a.v[2], a.v[3]);
    high = make_uint4(a.v[4], a.v[5], a.v[6], a.v[7]);
}

FN fr ntt_join(const uint4& low, const uint4& high)
{
    return fr{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// The tile in shared memory: lower and upper halves of elements. Half an element e is at ntt_slot(e), a map that is
// linear over bits and puts any eight threads that read together, for every x, on different banks.
struct ntt_tile {
    uint4 half[2][NTT_TILE];
};

FN u32 ntt_slot(u32 e) { return e ^ (e >> 2 & 6) ^ (e >> 4 & 1); }

// Tile index of a thread's first element at stage x; the others are at + 2^x, 2 2^x, 3 2^x.
FN u32 ntt_element(u32 x) { return threadIdx.x + (threadIdx.x >> x << x) * 3; }

FN void ntt_to_tile(ntt_tile& tile, const fr v[4], u32 x)
{
    const u32 slot = ntt_slot(ntt_element(x));
    UNROLL for (u32 k = 0; k < 4; k++) {
        const u32 s = slot ^ ntt_slot(k << x);
        ntt_split(tile.half[0][s], tile.half[1][s], v[k]);
    }
}

FN void ntt_from_tile(fr v[4], const ntt_tile& tile, u32 x)
{
    const u32 slot = ntt_slot(ntt_element(x));
    UNROLL for (u32 k = 0; k < 4; k++) {
        const u32 s = slot ^ ntt_slot(k << x);
        v[k] = ntt_join(tile.half[0][s], tile.half[1][s]);
    }
}

// Which group of tiles that share all factors a tile is in.
FN u32 ntt_group(const ntt_pass& pass) { return blockIdx.x >> (pass.log_distance - pass.column_bits); }

// Position in the vector of the tile's first element.
FN u32 ntt_base(const ntt_pass& pass)
{
    const u32 bits = pass.log_distance - pass.column_bits;
    const u32 high = ntt_group(pass);
    return (high << pass.tile_shift) + ((blockIdx.x - (high << bits)) << pass.column_bits);
}

// Position in the vector of tile index e.
FN u32 ntt_position(const ntt_pass& pass, u32 base, u32 e)
{
    const u32 row = e >> pass.column_bits;
    return base + (row << pass.log_distance) + (e - (row << pass.column_bits));
}

FN void ntt_load_direct(fr v[4], const uint4* data, const ntt_pass& pass, u32 base, u32 x)
{
    const u32 p = ntt_position(pass, base, ntt_element(x));
    const u32 step = 1u << (x - pass.column_bits + pass.log_distance);
    UNROLL for (u32 k = 0; k < 4; k++) v[k] = fr_load(data, p + k * step);
}

FN void ntt_store_direct(uint4* data, const fr v[4], const ntt_pass& pass, u32 base, u32 x)
{
    const u32 p = ntt_position(pass, base, ntt_element(x));
    const u32 step = 1u << (x - pass.column_bits + pass.log_distance);
    UNROLL for (u32 k = 0; k < 4; k++) fr_store(data, p + k * step, v[k]);
}

// A contiguous tile, 16 bytes a thread and step, so that a warp touches whole lines.
FN void ntt_load_contiguous(fr v[4], ntt_tile& tile, const uint4* data, u32 base)
{
    UNROLL for (u32 k = 0; k < 8; k++) {
        const u32 part = threadIdx.x + NTT_THREADS * k;
        tile.half[part & 1][ntt_slot(part >> 1)] = data[2 * (u64)base + part];
    }
    __syncthreads();
    ntt_from_tile(v, tile, 0);
}

FN void ntt_store_contiguous(uint4* data, ntt_tile& tile, const fr v[4], u32 base)
{
    ntt_to_tile(tile, v, 0);
    __syncthreads();
    UNROLL for (u32 k = 0; k < 8; k++) {
        const u32 part = threadIdx.x + NTT_THREADS * k;
        data[2 * (u64)base + part] = tile.half[part & 1][ntt_slot(part >> 1)];
    }
}

// ---- Layers ----

// The factors of a stage. Tiles have 2^9 elements, of which a thread's four at stage x differ in bits x and x + 1:
// their block in the stage's upper layer is bits x.. of the thread's number behind the group's. On the coset a
// leading one is added. So the factor of the upper layer is ntt_blocks >> x, those of the lower one are twice that,
// for elements 0 and 1, and one more for 2 and 3. (With two points on the coset, the only layer has factor 1.)
FN u32 ntt_blocks(const ntt_pass& pass, u32 coset)
{
    const u32 points = pass.log_n + pass.column_bits - pass.log_distance;
    return ntt_group(pass) * NTT_THREADS + threadIdx.x + (points < 2 ? 0 : coset << (points - 2));
}

FN u32 ntt_lower(const ntt_pass& pass, u32 coset, u32 j) { return 2 * j + (pass.log_n == 1 ? coset : 0); }

FN u32 ntt_top(const ntt_pass& pass) { return pass.column_bits + (pass.layers < 2 ? 0 : pass.layers - 2); }

// Index of the first factor that ntt_forward_layers wants in t.
FN u32 ntt_forward_first(const ntt_pass& pass, u32 coset)
{
    const u32 j = ntt_blocks(pass, coset) >> ntt_top(pass);
    return pass.layers < 2 ? ntt_lower(pass, coset, j) : j;
}

// Puts the elements of stage `from` into the tile and takes those of stage `to`. One barrier is enough: a thread writes
// where it read.
FN void ntt_exchange(fr v[4], ntt_tile& tile, u32 from, u32 to)
{
    ntt_to_tile(tile, v, from);
    __syncthreads();
    ntt_from_tile(v, tile, to);
}

// (u, v) -> (u + p, u - p) for a product p.
FN void ntt_butterfly(fr& u, fr& v, const fr& p)
{
    v = fr_sub_loose(u, p);
    u = fr_add_loose(u, p);
}

// Forward layers on v, which holds the elements of stage ntt_top, and at the end those of stage column_bits; all below
// FR_LOOSE. t must hold factor ntt_forward_first, and is then factor `after`. Half a product an element and layer.
FN void ntt_forward_layers(fr v[4], fr_constant& t, ntt_tile& tile, const uint4* table, const ntt_pass& pass,
                           u32 coset, u32 after)
{
    const u32 blocks = ntt_blocks(pass, coset);
    const u32 bottom = pass.column_bits;
    u32 x = ntt_top(pass);
    if (pass.layers >= 2) {
        while (true) {
            const u32 j = blocks >> x;
            ntt_butterfly(v[0], v[2], ntt_mul_factor(v[2], t, table, pass, j));
            ntt_butterfly(v[1], v[3], ntt_mul_then_load(v[3], t, table, pass, j, 2 * j));
            ntt_butterfly(v[0], v[1], ntt_mul_then_load(v[1], t, table, pass, 2 * j, 2 * j + 1));
            const u32 next = x >= bottom + 2 ? blocks >> (x - 2) : x == bottom ? after : 2 * (blocks >> bottom);
            ntt_butterfly(v[2], v[3], ntt_mul_then_load(v[3], t, table, pass, 2 * j + 1, next));
            if (x < bottom + 2) break;
            ntt_exchange(v, tile, x, x - 2);
            x -= 2;
        }
        if (x != bottom) ntt_exchange(v, tile, x, bottom);
    }
    if ((pass.layers & 1) != 0) {
        const u32 j = ntt_lower(pass, coset, blocks >> bottom);
        ntt_butterfly(v[0], v[1], ntt_mul_then_load(v[1], t, table, pass, j, j | 1));
        ntt_butterfly(v[2], v[3], ntt_mul_then_load(v[3], t, table, pass, j | 1, after));
    }
}

// Whether an inverse pass ends with the very last stage of a transform on the domain, whose factors are 1 but for
// one, the square root of -1.
FN bool ntt_trivial_end(const ntt_pass& pass, u32 coset)
{
    return coset == 0 && pass.layers >= 2 && pass.log_distance + pass.layers == pass.log_n;
}

// Index of the first factor that full stage x of an inverse pass wants in t; `complement` is that of the blocks.
FN u32 ntt_inverse_next(const ntt_pass& pass, bool trivial_end, u32 complement, u32 x)
{
    return trivial_end && x == ntt_top(pass) ? 1 : ntt_inverse_even(complement >> x, pass.minus_one);
}

// Index of the first factor that ntt_inverse_layers wants in t.
FN u32 ntt_inverse_first(const ntt_pass& pass, u32 coset)
{
    const u32 blocks = ntt_blocks(pass, coset), x = pass.column_bits;
    if ((pass.layers & 1) == 0) return ntt_inverse_next(pass, ntt_trivial_end(pass, coset), ntt_complement(blocks), x);
    return ntt_inverse_index(ntt_lower(pass, coset, blocks >> x), pass.minus_one);
}

// (u, v) -> (u + v, v - u), exact.
FN void ntt_sum_and_difference(fr& u, fr& v)
{
    const fr difference = fr_sub_loose(v, u);
    u = fr_add_exact(u, v);
    v = difference;
}

// (u, v) -> (u + v, u - v), exact.
FN void ntt_plain_butterfly(fr& u, fr& v)
{
    const fr difference = fr_sub_loose(u, v);
    u = fr_add_exact(u, v);
    v = difference;
}

// Inverse layers on v, which holds the elements of stage column_bits, and at the end those of stage ntt_top; all
// below 2r. t must hold factor ntt_inverse_first, and is then factor `after`.
FN void ntt_inverse_layers(fr v[4], fr_constant& t, ntt_tile& tile, const uint4* table, const ntt_pass& pass,
                           u32 coset, u32 after)
{
    const u32 blocks = ntt_blocks(pass, coset), complement = ntt_complement(blocks);
    const u32 top = ntt_top(pass);
    const bool trivial_end = ntt_trivial_end(pass, coset);
    u32 x = pass.column_bits;
    if ((pass.layers & 1) != 0) {
        const u32 j = ntt_lower(pass, coset, blocks >> x);
        const u32 even = ntt_inverse_index(j, pass.minus_one), odd = ntt_inverse_index(j | 1, pass.minus_one);
        const u32 next = pass.layers == 1 ? after : ntt_inverse_next(pass, trivial_end, complement, x + 1);
        ntt_sum_and_difference(v[0], v[1]);
        v[1] = ntt_mul_then_load(v[1], t, table, pass, even, odd);
        ntt_sum_and_difference(v[2], v[3]);
        v[3] = ntt_mul_then_load(v[3], t, table, pass, odd, next);
        if (pass.layers > 1) ntt_exchange(v, tile, x, x + 1);
        x++;
    }
    if (pass.layers < 2) return;
    while (x != top || !trivial_end) {
        const u32 inverse = complement >> x;
        const u32 even = ntt_inverse_even(inverse, pass.minus_one), odd = ntt_inverse_odd(inverse);
        const u32 upper = ntt_inverse_upper(inverse, pass.minus_one);
        ntt_sum_and_difference(v[0], v[1]);
        v[1] = ntt_mul_then_load(v[1], t, table, pass, even, odd);
        ntt_sum_and_difference(v[2], v[3]);
        v[3] = ntt_mul_then_load(v[3], t, table, pass, odd, upper);
        ntt_sum_and_difference(v[0], v[2]);
        v[2] = ntt_mul_factor(v[2], t, table, pass, upper);
        ntt_sum_and_difference(v[1], v[3]);
        const u32 next = x == top ? after : ntt_inverse_next(pass, trivial_end, complement, x + 2);
        v[3] = ntt_mul_then_load(v[3], t, table, pass, upper, next);
        if (x == top) return;
        ntt_exchange(v, tile, x, x + 2);
        x += 2;
    }
    ntt_sum_and_difference(v[2], v[3]);
    v[3] = ntt_mul_then_load(v[3], t, table, pass, 1, after);
    ntt_plain_butterfly(v[0], v[1]);
    ntt_plain_butterfly(v[0], v[2]);
    ntt_plain_butterfly(v[1], v[3]);
}
