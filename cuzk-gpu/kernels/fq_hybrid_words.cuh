// Fq in the hybrid form (fq_hybrid.cuh) in memory: 48 bytes an element, and the way from and to blst's form.
//
// Packed, an element below 2^382 in absolute value is the number sum (a_i + 2^38) 2^(39 i) + a_9 2^351: the digits lie there
// without signs, and no arithmetic is needed to read them. blst's form is R = 2^384; 64 times that number is the same
// element in the form R = 2^390.
#pragma once
#include "fq_hybrid.cuh"

// 32 bits of a number of words, from bit `at` on; zeros above its end.
FN u32 fqh_bits_at(const u32* words, int count, int at)
{
    const int word = at >> 5, shift = at & 31;
    const u32 low = word < count ? words[word] : 0, high = word + 1 < count ? words[word + 1] : 0;
    return shift == 0 ? low : low >> shift | high << (32 - shift);
}

// Sum of 2^(32 + 39 i), i < 9: the offsets of the digits, 2^38 each, divided by 2^6.
CONSTANT u32 FQH_OFFSETS_64TH[FQ_WORDS] = {0, 0x1, 0x80, 0x4000, 0x200000, 0x10000000, 0, 0x8, 0x400, 0x20000, 0x1000000, 0};

// From the form R = 2^384, of which 64 a is the form R = 2^390: below 64 p, normalised, top limb below 2^36. A legal
// operand of one product; fqh_from_fq gives a small value.
FN fqh fqh_unpack64(const fq& a)
{
    u32 t[FQ_WORDS];
    t[0] = add_cc(a.v[0], FQH_OFFSETS_64TH[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) t[i] = addc_cc(a.v[i], FQH_OFFSETS_64TH[i]);
    t[FQ_WORDS - 1] = addc(a.v[FQ_WORDS - 1], FQH_OFFSETS_64TH[FQ_WORDS - 1]);
    fqh r;
    r.l[0] = t[0] << 6;
    r.d[0] = fqh_digit(t[1] << 6 | t[0] >> 26, r.l[0]);
    UNROLL for (int j = 1; j < FQH_LIMBS; j++) {
        const int at = 39 * j - 6;
        r.l[j] = fqh_bits_at(t, FQ_WORDS, at);
        const u32 high = fqh_bits_at(t, FQ_WORDS, at + 32);
        r.d[j] = j < FQH_LIMBS - 1 ? fqh_digit(high, r.l[j])
                                   : fqh_add2(fqh_bits((high & 0x7f) | FQH_EXPONENT, r.l[j]), -0x1p36);
    }
    return r;
}

// Packs what fqh_columns_end made.
FN void fqh_pack(u32* t, const fqh& a, const u32* high)
{
    u64 field[FQH_LIMBS + 1];
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) field[j] = (u64)(high[j] & 0x7f) << 32 | a.l[j];
    field[FQH_LIMBS - 1] = (u64)(i64)(i32)a.l[FQH_LIMBS - 1];
    field[FQH_LIMBS] = 0;
    UNROLL for (int w = 0; w < FQ_WORDS; w++) {
        const int j = 32 * w / 39, shift = 32 * w % 39;
        t[w] = (u32)(field[j] >> shift);
        if (shift > 7) t[w] |= (u32)(field[j + 1] << (39 - shift));
    }
}

// Packs a normalised element.
FN void fqh_pack(u32* t, const fqh& a)
{
    u32 high[FQH_LIMBS - 1];
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) high[j] = fqh_high(fqh_add2(a.d[j], FQH_DIGIT_OFFSET));
    fqh_pack(t, a, high);
}

FN fqh fqh_unpack(const u32* t)
{
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        r.l[j] = fqh_bits_at(t, FQ_WORDS, 39 * j);
        r.d[j] = fqh_digit(fqh_bits_at(t, FQ_WORDS, 39 * j + 32), r.l[j]);
    }
    r.l[FQH_LIMBS - 1] = fqh_bits_at(t, FQ_WORDS, 39 * (FQH_LIMBS - 1));
    r.d[FQH_LIMBS - 1] = fqh_top(r.l[FQH_LIMBS - 1]);
    return r;
}

// t + 64 a, or t - 64 a if `negate`, normalised, for a packed t and an a in blst's form. The sum is made of whole numbers,
// before the digits are read: a difference of two elements costs little more than one of them.
FN fqh fqh_unpack_sum(const u32* t, const fq& a, bool negate)
{
    const u32 mask = negate ? 0xffffffff : 0;
    u32 sum[FQ_WORDS + 1];
    add_cc(mask, mask & 1); // the carry that makes of a complement a negative
    sum[0] = addc_cc(t[0], a.v[0] << 6 ^ mask);
    UNROLL for (int i = 1; i < FQ_WORDS; i++) sum[i] = addc_cc(t[i], (a.v[i] << 6 | a.v[i - 1] >> 26) ^ mask);
    // The top digit gets its offset as well: bit 389.
    sum[FQ_WORDS] = addc((u32)((i32)t[FQ_WORDS - 1] >> 31) + 32, a.v[FQ_WORDS - 1] >> 26 ^ mask);
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) {
        r.l[j] = fqh_bits_at(sum, FQ_WORDS + 1, 39 * j);
        r.d[j] = fqh_digit(fqh_bits_at(sum, FQ_WORDS + 1, 39 * j + 32), r.l[j]);
    }
    return r;
}

// Sum of 2^(38 + 39 i), i < 9.
CONSTANT u32 FQH_OFFSETS[FQ_WORDS] = {0, 0x40, 0x2000, 0x100000, 0x8000000, 0, 0x4, 0x200, 0x10000, 0x800000, 0x40000000, 0};

// To blst's form, of a normalised a with |a| < p: (a + p + k p) / 64 with the k that makes it whole.
FN fq fqh_to_fq(const fqh& a)
{
    u32 t[FQ_WORDS];
    fqh_pack(t, a);
    // a + p, which is positive.
    t[0] = sub_cc(t[0], FQH_OFFSETS[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) t[i] = subc_cc(t[i], FQH_OFFSETS[i]);
    t[FQ_WORDS - 1] = subc(t[FQ_WORDS - 1], FQH_OFFSETS[FQ_WORDS - 1]);
    const u32 k = (t[0] + FQ_P[0]) * FQ_M0 & 63;
    u32 sum[FQ_WORDS + 1];
    u64 carry = 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) {
        // The top word of a negative number is read with its sign, and so is the carry that goes past it.
        carry += (u64)FQ_P[i] * (k + 1) + (i < FQ_WORDS - 1 ? (u64)t[i] : (u64)(i64)(i32)t[i]);
        sum[i] = (u32)carry;
        carry = (u64)((i64)carry >> 32);
    }
    sum[FQ_WORDS] = (u32)carry;
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = sum[i] >> 6 | sum[i + 1] << 26;
    return fq_reduce_once(r);
}

// sign a as a number within p / 2, for limbs below 2^44; also for fqh_pack. No product is needed.
FN fqh fqh_small(int sign, const fqh& a, u32* high)
{
    fqh_columns w = fqh_no_columns();
    fqh_columns_add(w, sign, a);
    fqh_columns_settle(w, -sign * a.d[FQH_LIMBS - 1]);
    return fqh_columns_end(w, high);
}
FN fqh fqh_small(int sign, const fqh& a)
{
    u32 high[FQH_LIMBS - 1];
    return fqh_small(sign, a, high);
}
FN fqh fqh_from_fq(const fq& a) { return fqh_small(1, fqh_unpack64(a)); }

// One, in limbs: 2^390 mod p.
FN fqh fqh_one()
{
    const double d[FQH_LIMBS] = {13762350,      5780597760,    -137223049952, -257394416602, 3717889551,
                                 -162825995361, 178168830730,  -31629561374,  -3246372054,   45863725};
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) r.d[j] = d[j] * FQH_SCALE, r.l[j] = fqh_limb_word(r.d[j]);
    return r;
}

// An element in memory (shared, on a device): its limbs as doubles, `stride` apart, so that the lanes of a warp read
// neighbouring words.
struct fqh_ref {
    double* limbs;
    int stride;
};

FN fqh fqh_get(const fqh_ref& from)
{
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) r.d[j] = from.limbs[j * from.stride], r.l[j] = fqh_limb_word(r.d[j]);
    return r;
}
FN void fqh_set(const fqh_ref& to, const fqh& a)
{
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) to.limbs[j * to.stride] = a.d[j];
}
