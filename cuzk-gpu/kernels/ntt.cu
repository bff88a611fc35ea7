// Transforms over Fr in place, and the quotient polynomial H as one sequence of passes (src/cuda/ntt/quotient.rs).
//
// Vectors hold max(2^n, 512) elements of 32 bytes in plain (not Montgomery) form. A block of 128 threads has a tile
// of 512 elements; a pass of P layers costs P/2 products by a constant an element, reads and writes 64 bytes an
// element, and reads 64 bytes of the table for every block of its lowest layer.
#include "ntt.cuh"
#include "planes.cuh"

#define NTT_KERNEL extern "C" __global__ void __launch_bounds__(NTT_THREADS, 5)

// A pass of a forward transform. Elements below FR_LOOSE in and out.
NTT_KERNEL ntt_forward(uint4* data, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_forward_first(pass, pass.coset));
    ntt_load_direct(v, data, pass, base, ntt_top(pass));
    ntt_forward_layers(v, t, tile, table, pass, pass.coset, 0);
    if (pass.canonical) {
        UNROLL for (int k = 0; k < 4; k++) v[k] = fr_canonical(v[k]);
    }
    if (pass.log_distance == 0) {
        ntt_store_contiguous(data, tile, v, base);
    } else {
        ntt_store_direct(data, v, pass, base, pass.column_bits);
    }
}

// A pass of an inverse transform. Elements below 2r in and out.
NTT_KERNEL ntt_inverse(uint4* data, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_inverse_first(pass, pass.coset));
    if (pass.log_distance == 0) {
        ntt_load_contiguous(v, tile, data, base);
    } else {
        ntt_load_direct(v, data, pass, base, pass.column_bits);
    }
    ntt_inverse_layers(v, t, tile, table, pass, pass.coset, 0);
    if (pass.canonical) {
        UNROLL for (int k = 0; k < 4; k++) v[k] = fr_reduce_once(v[k]);
    }
    ntt_store_direct(data, v, pass, base, ntt_top(pass));
}

// Values in planes: those of `natural` in bit-reversed order, and what the codes stand for. The same struct is in
// src/cuda/ntt/quotient.rs.
struct ntt_planes {
    const u32* low;
    const u32* high;
    const u32* exceptional;
    planes natural;      // its list is in plain form and canonical
    const uint4* values; // four canonical elements
};

// The first pass of an inverse transform on the domain, from planes. Reads less than a byte an element, and the list.
NTT_KERNEL ntt_inverse_planes(uint4* data, ntt_planes in, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_inverse_first(pass, 0));
    const u32 p = base + 4 * threadIdx.x;
    const u32 low = in.low[p >> 5] >> (p & 31), high = in.high[p >> 5] >> (p & 31);
    const u32 exceptional = in.exceptional[p >> 5] >> (p & 31);
    UNROLL for (u32 k = 0; k < 4; k++) {
        v[k] = fr_load(in.values, (high >> k & 1) * 2 + (low >> k & 1));
        if (exceptional >> k & 1) {
            const u32 i = __brev(p + k) >> (32 - pass.log_n);
            const u32 before = in.natural.exceptional[i >> 5] & ((1u << (i & 31)) - 1);
            const u32 at = in.natural.first[i >> 5] + __popc(before);
            if (at < in.natural.capacity) v[k] = fr_load(in.natural.list, at);
        }
    }
    ntt_inverse_layers(v, t, tile, table, pass, 0, 0);
    ntt_store_direct(data, v, pass, base, ntt_top(pass));
}

// The last pass of an inverse transform on the domain and the first of a forward one on the coset, on one tile.
NTT_KERNEL ntt_turn(uint4* data, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_inverse_first(pass, 0));
    ntt_load_direct(v, data, pass, base, pass.column_bits);
    ntt_inverse_layers(v, t, tile, table, pass, 0, ntt_forward_first(pass, 1));
    ntt_forward_layers(v, t, tile, table, pass, 1, 0);
    ntt_store_direct(data, v, pass, base, pass.column_bits);
}

// Drops v[0] and appends `last`: four of these in a loop that is not unrolled keep the code small.
FN void ntt_rotate(fr v[4], const fr& last)
{
    UNROLL for (int k = 0; k < 3; k++) v[k] = v[k + 1];
    v[3] = last;
}

// Thread's element k in the order in which ntt_factor leaves them for ntt_multiply.
FN u32 ntt_parked(u32 k) { return blockIdx.x * NTT_TILE + k * NTT_THREADS + threadIdx.x; }

// The last pass (contiguous) of a forward transform on the coset, canonical, the values in the order of the threads
// that computed them.
NTT_KERNEL ntt_park(uint4* data, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_forward_first(pass, 1));
    ntt_load_direct(v, data, pass, base, ntt_top(pass));
    ntt_forward_layers(v, t, tile, table, pass, 1, 0);
    // With few layers there was no barrier since the loads, and other threads' places are overwritten.
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < 4; k++) fr_store(data, ntt_parked(k), fr_canonical(v[k]));
}

// The last pass (contiguous) of a forward transform on the coset, the product with the parked values of another, and
// the first pass of the inverse transform of the product. The product is Montgomery's and leaves a factor 2^-256 in.
NTT_KERNEL ntt_multiply(uint4* data, const uint4* parked, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    ntt_load_factor(t, table, pass, ntt_forward_first(pass, 1));
    ntt_load_direct(v, data, pass, base, ntt_top(pass));
    ntt_forward_layers(v, t, tile, table, pass, 1, ntt_inverse_first(pass, 1));
    ROLLED for (u32 k = 0; k < 4; k++) {
        // Below 2r, since the parked values are canonical and the others may be any number.
        ntt_rotate(v, fr_mul_loose(fr_load(parked, ntt_parked(k)), v[0]));
    }
    ntt_inverse_layers(v, t, tile, table, pass, 1, 0);
    ntt_store_direct(data, v, pass, base, ntt_top(pass));
}

// The last pass of an inverse transform on the coset, whose result is taken from `minuend`: canonical.
NTT_KERNEL ntt_inverse_subtract(uint4* data, const uint4* minuend, const uint4* table, ntt_pass pass)
{
    __shared__ ntt_tile tile;
    const u32 base = ntt_base(pass);
    fr v[4];
    fr_constant t;
    const u32 x = ntt_top(pass);
    ntt_load_factor(t, table, pass, ntt_inverse_first(pass, 1));
    ntt_load_direct(v, data, pass, base, pass.column_bits);
    ntt_inverse_layers(v, t, tile, table, pass, 1, 0);
    const u32 p = ntt_position(pass, base, ntt_element(x));
    const u32 step = 1u << (x - pass.column_bits + pass.log_distance);
    UNROLL for (u32 k = 0; k < 4; k++) {
        const fr difference = fr_sub_loose(fr_load(minuend, p + k * step), v[k]);
        fr_store(data, p + k * step, fr_reduce_once(difference));
    }
}

// The table: factor j is the product of the powers low[j mod 2^low_bits] and high[j / 2^low_bits], both in Montgomery
// form, as a constant with its quotient. Three products an entry. A whole table is one of log_direct = log_factors.
extern "C" __global__ void __launch_bounds__(NTT_THREADS) ntt_table(uint4* table, const uint4* low, const uint4* high,
                                                                    u32 low_bits, u32 log_factors, u32 log_direct)
{
    const u32 entry = blockIdx.x * NTT_THREADS + threadIdx.x;
    const u32 upper = entry < 1u << log_direct ? 0 : entry - (1u << log_direct) + 1;
    if (upper > 1u << (log_factors - log_direct)) return;
    const u32 j = upper == 0 ? entry : upper << log_direct;
    fr m = fr_sub(fr_zero(), fr_one());
    if (j < 1u << log_factors) {
        m = fr_mul(fr_load(low, j & ((1u << low_bits) - 1)), fr_load(high, j >> low_bits));
    }
    const fr_constant t = fr_constant_from_montgomery(m);
    ntt_split(table[ntt_part(entry, 0)], table[ntt_part(entry, 1)], t.w);
    ntt_split(table[ntt_part(entry, 2)], table[ntt_part(entry, 3)], t.quotient);
}
