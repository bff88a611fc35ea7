// Fq, the 381-bit base field of BLS12-381, in the integer form: 12 words of 32 bits, little-endian, Montgomery with
// R = 2^384, always below p. These are the bytes that blst keeps, so points need no conversion.
//
// A product is word by word: for each word of b a row a*b_i and a row m*p, each in two chains of multiply-adds, one that
// starts at an even word and one at an odd word, so that the two halves of every 64-bit product fall on neighbouring
// words of one chain and the carries run along it. 288 wide products (276 on the multiply-add pipe with carry, 12 of them
// start a row), 12 low ones for m. The ceiling of that pipe on an H200 is 27.9 G products/s.
#pragma once
#include "carry.cuh"

#define FQ_WORDS 12

struct fq {
    u32 v[FQ_WORDS];
};

// p. In constant memory and not `const`: as immediates the carry chains would be taken apart by the assembler.
CONSTANT u32 FQ_P[FQ_WORDS] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                               0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
// -p^-1 mod 2^32.
CONSTANT u32 FQ_M0 = 0xfffcfffd;
// 2^384 mod p, the one of the field.
CONSTANT u32 FQ_ONE[FQ_WORDS] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                                 0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};

FN fq fq_zero()
{
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = 0;
    return r;
}

FN fq fq_one()
{
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = FQ_ONE[i];
    return r;
}

// Whether a = 0.
FN bool fq_is_zero(const fq& a)
{
    u32 any = a.v[0];
    UNROLL for (int i = 1; i < FQ_WORDS; i++) any |= a.v[i];
    return any == 0;
}

// Whether a = b.
FN bool fq_eq(const fq& a, const fq& b)
{
    u32 any = a.v[0] ^ b.v[0];
    UNROLL for (int i = 1; i < FQ_WORDS; i++) any |= a.v[i] ^ b.v[i];
    return any == 0;
}

// a for 0 <= a < 2p, less p if that is not negative.
FN fq fq_reduce_once(const fq& a)
{
    fq r;
    r.v[0] = sub_cc(a.v[0], FQ_P[0]);
    UNROLL for (int i = 1; i < FQ_WORDS; i++) r.v[i] = subc_cc(a.v[i], FQ_P[i]);
    const bool below = subc(0, 0) != 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = below ? a.v[i] : r.v[i];
    return r;
}

// a + b. 2p < 2^384: no carry leaves the top word.
FN fq fq_add(const fq& a, const fq& b)
{
    fq r;
    r.v[0] = add_cc(a.v[0], b.v[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) r.v[i] = addc_cc(a.v[i], b.v[i]);
    r.v[FQ_WORDS - 1] = addc(a.v[FQ_WORDS - 1], b.v[FQ_WORDS - 1]);
    return fq_reduce_once(r);
}

// a - b.
FN fq fq_sub(const fq& a, const fq& b)
{
    fq r;
    r.v[0] = sub_cc(a.v[0], b.v[0]);
    UNROLL for (int i = 1; i < FQ_WORDS; i++) r.v[i] = subc_cc(a.v[i], b.v[i]);
    const u32 borrow = subc(0, 0);
    r.v[0] = add_cc(r.v[0], FQ_P[0] & borrow);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) r.v[i] = addc_cc(r.v[i], FQ_P[i] & borrow);
    r.v[FQ_WORDS - 1] = addc(r.v[FQ_WORDS - 1], FQ_P[FQ_WORDS - 1] & borrow);
    return r;
}

// 2a.
FN fq fq_double(const fq& a) { return fq_add(a, a); }

// -a, or a if not `negate`.
FN fq fq_cneg(const fq& a, bool negate)
{
    fq r;
    r.v[0] = sub_cc(FQ_P[0], a.v[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) r.v[i] = subc_cc(FQ_P[i], a.v[i]);
    r.v[FQ_WORDS - 1] = subc(FQ_P[FQ_WORDS - 1], a.v[FQ_WORDS - 1]);
    const bool take = negate && !fq_is_zero(a);
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = take ? r.v[i] : a.v[i];
    return r;
}

// -a.
FN fq fq_neg(const fq& a) { return fq_cneg(a, true); }

// chain[0..12) += (a[0], a[2], .., a[10]) * b, as six 64-bit products end to end. Returns with the carry set.
FN void fq_chain(u32* chain, const u32* a, u32 b)
{
    chain[0] = mad_lo_cc(a[0], b, chain[0]);
    chain[1] = madc_hi_cc(a[0], b, chain[1]);
    UNROLL for (int j = 2; j < FQ_WORDS; j += 2) {
        chain[j] = madc_lo_cc(a[j], b, chain[j]);
        chain[j + 1] = madc_hi_cc(a[j], b, chain[j + 1]);
    }
}

// Adds m*p with the m that clears the word at even[0]. No carry leaves the odd chain, since the whole is below
// 2^32 * 2p and all its parts are positive.
FN void fq_reduce_word(u32* even, u32* odd)
{
    const u32 m = mul_lo(even[0], FQ_M0);
    fq_chain(odd, FQ_P + 1, m);
    fq_chain(even, FQ_P, m);
    odd[FQ_WORDS - 1] = addc(odd[FQ_WORDS - 1], 0);
}

// One word down, then + a*b. The words of `even` are at places 0.. and even[0] = 0, those of `odd` at places 1..; after
// the division by 2^32 their roles are exchanged: `odd` starts at place 0, and `even`, moved by two words, at place 1.
// even[1], which has no place in that, is added to odd[0], whose carry goes where the moved chain starts.
FN void fq_shift_row(u32* even, u32* odd, const u32* a, u32 b)
{
    odd[0] = add_cc(odd[0], even[1]);
    UNROLL for (int j = 0; j < FQ_WORDS - 2; j += 2) {
        even[j] = madc_lo_cc(a[j + 1], b, even[j + 2]);
        even[j + 1] = madc_hi_cc(a[j + 1], b, even[j + 3]);
    }
    even[FQ_WORDS - 2] = madc_lo_cc(a[FQ_WORDS - 1], b, 0);
    even[FQ_WORDS - 1] = madc_hi(a[FQ_WORDS - 1], b, 0);
    fq_chain(odd, a, b);
    even[FQ_WORDS - 1] = addc(even[FQ_WORDS - 1], 0);
}

// The same with nothing but the m*p of the next word added.
FN void fq_shift_reduce(u32* even, u32* odd)
{
    odd[0] = add_cc(odd[0], even[1]);
    const u32 m = mul_lo(odd[0], FQ_M0);
    UNROLL for (int j = 0; j < FQ_WORDS - 2; j += 2) {
        even[j] = madc_lo_cc(FQ_P[j + 1], m, even[j + 2]);
        even[j + 1] = madc_hi_cc(FQ_P[j + 1], m, even[j + 3]);
    }
    even[FQ_WORDS - 2] = madc_lo_cc(FQ_P[FQ_WORDS - 1], m, 0);
    even[FQ_WORDS - 1] = madc_hi(FQ_P[FQ_WORDS - 1], m, 0);
    fq_chain(odd, FQ_P, m);
    even[FQ_WORDS - 1] = addc(even[FQ_WORDS - 1], 0);
}

// The two chains after the last word: even[0] = 0, even[1] at place 0, even[2..] and odd at places 1.. and 0...
FN fq fq_join(const u32* even, const u32* odd)
{
    fq r;
    r.v[0] = add_cc(odd[0], even[1]);
    UNROLL for (int j = 1; j < FQ_WORDS - 1; j++) r.v[j] = addc_cc(odd[j], even[j + 1]);
    r.v[FQ_WORDS - 1] = addc(odd[FQ_WORDS - 1], 0);
    return r;
}

// a*b/R, in 0..2p for a*b < p*R: the product that leaves the last subtraction out.
FN fq fq_mul_lazy(const fq& a, const fq& b)
{
    u32 even[FQ_WORDS], odd[FQ_WORDS];
    UNROLL for (int j = 0; j < FQ_WORDS; j += 2) {
        even[j] = mul_lo(a.v[j], b.v[0]);
        even[j + 1] = mul_hi(a.v[j], b.v[0]);
        odd[j] = mul_lo(a.v[j + 1], b.v[0]);
        odd[j + 1] = mul_hi(a.v[j + 1], b.v[0]);
    }
    fq_reduce_word(even, odd);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i += 2) {
        fq_shift_row(even, odd, a.v, b.v[i]);
        fq_reduce_word(odd, even);
        fq_shift_row(odd, even, a.v, b.v[i + 1]);
        fq_reduce_word(even, odd);
    }
    fq_shift_row(even, odd, a.v, b.v[FQ_WORDS - 1]);
    fq_reduce_word(odd, even);
    return fq_join(odd, even);
}

// a*b/R.
FN fq fq_mul(const fq& a, const fq& b) { return fq_reduce_once(fq_mul_lazy(a, b)); }

// a^2/R. Each product a_i*a_j, i < j, is taken once, with the words above a_i doubled: 78 wide products instead of 144.
// Then twelve words of reduction, and the upper half is added.
FN fq fq_sqr(const fq& a)
{
    u32 even[2 * FQ_WORDS], odd[2 * FQ_WORDS]; // products at even and at odd places
    UNROLL for (int j = 0; j < 2 * FQ_WORDS; j++) even[j] = odd[j] = 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) {
        const u32 x = a.v[i];
        even[2 * i] = mad_lo_cc(x, x, even[2 * i]);
        even[2 * i + 1] = madc_hi_cc(x, x, even[2 * i + 1]);
        UNROLL for (int j = i + 2; j < FQ_WORDS; j += 2) {
            const u32 doubled = a.v[j] << 1 | a.v[j - 1] >> 31;
            even[i + j] = madc_lo_cc(x, doubled, even[i + j]);
            even[i + j + 1] = madc_hi_cc(x, doubled, even[i + j + 1]);
        }
        // The chain ends at a_10 or a_11. In the first case a carry may come, to a word that is still zero.
        if (i % 2 == 0) even[i + FQ_WORDS] = addc(even[i + FQ_WORDS], 0);
        if (i + 1 < FQ_WORDS) {
            const u32 doubled = a.v[i + 1] << 1;
            odd[2 * i + 1] = mad_lo_cc(x, doubled, odd[2 * i + 1]);
            odd[2 * i + 2] = madc_hi_cc(x, doubled, odd[2 * i + 2]);
            UNROLL for (int j = i + 3; j < FQ_WORDS; j += 2) {
                const u32 doubled = a.v[j] << 1 | a.v[j - 1] >> 31;
                odd[i + j] = madc_lo_cc(x, doubled, odd[i + j]);
                odd[i + j + 1] = madc_hi_cc(x, doubled, odd[i + j + 1]);
            }
            if (i % 2 == 1) odd[i + FQ_WORDS] = addc(odd[i + FQ_WORDS], 0);
        }
    }
    even[1] = add_cc(even[1], odd[1]);
    UNROLL for (int j = 2; j < 2 * FQ_WORDS - 1; j++) even[j] = addc_cc(even[j], odd[j]);
    even[2 * FQ_WORDS - 1] = addc(even[2 * FQ_WORDS - 1], odd[2 * FQ_WORDS - 1]);

    u32 other[FQ_WORDS];
    UNROLL for (int j = 0; j < FQ_WORDS; j++) other[j] = 0;
    fq_reduce_word(even, other);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i += 2) {
        fq_shift_reduce(even, other);
        fq_shift_reduce(other, even);
    }
    fq_shift_reduce(even, other);
    fq low = fq_join(other, even);
    low.v[0] = add_cc(low.v[0], even[FQ_WORDS]);
    UNROLL for (int j = 1; j < FQ_WORDS - 1; j++) low.v[j] = addc_cc(low.v[j], even[FQ_WORDS + j]);
    low.v[FQ_WORDS - 1] = addc(low.v[FQ_WORDS - 1], even[2 * FQ_WORDS - 1]);
    return fq_reduce_once(low);
}

// Reads an element from 16-byte aligned memory.
FN fq fq_load(const void* from)
{
    fq r;
    const uint4* words = (const uint4*)from;
    UNROLL for (int i = 0; i < 3; i++) {
        const uint4 w = words[i];
        r.v[4 * i] = w.x, r.v[4 * i + 1] = w.y, r.v[4 * i + 2] = w.z, r.v[4 * i + 3] = w.w;
    }
    return r;
}

// Writes an element to 16-byte aligned memory.
FN void fq_store(void* to, const fq& a)
{
    uint4* words = (uint4*)to;
    UNROLL for (int i = 0; i < 3; i++) {
        uint4 w;
        w.x = a.v[4 * i], w.y = a.v[4 * i + 1], w.z = a.v[4 * i + 2], w.w = a.v[4 * i + 3];
        words[i] = w;
    }
}
