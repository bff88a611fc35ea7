// Fq in the hybrid form (hybrid.cuh): 10 signed limbs of 39 bits, Montgomery with R = 2^390. 200 limb products and 19
// splits a product, 155 and 19 a square. A packed element has 48 bytes; 64 times a number of blst's form is the form R
// = 2^390.
#pragma once
#include "fq.cuh"

#define FQH_LIMBS 10

// p and M in limbs, scaled. In constant memory: the units read such an operand without a port of the register file.
CONSTANT double FQH_P[FQH_LIMBS] = {
    -21845 * 0x1p-16,         -9175552 * 0x1p-16,      206158087504 * 0x1p-16, 229909799157 * 0x1p-16,
    -41019430385 * 0x1p-16,   -66061295016 * 0x1p-16,  -89290891821 * 0x1p-16, 59388928422 * 0x1p-16,
    246958955083 * 0x1p-16,   872555476 * 0x1p-16};
CONSTANT double FQH_M[FQH_LIMBS] = {
    154747013120 * 0x1p-16,  67379591199 * 0x1p-16,  -86334727040 * 0x1p-16,  -245224433186 * 0x1p-16,
    -186982857910 * 0x1p-16, 250740039427 * 0x1p-16, -190652481256 * 0x1p-16, 267872615262 * 0x1p-16,
    -18799078427 * 0x1p-16,  -20450831 * 0x1p-16};

// After those: a constant of its own then stands behind them in memory.
#include "hybrid_words.cuh"

// The sum of 2^(38 + 39 i), i < 9, divided by 2^6, and as it is.
CONSTANT u32 FQH_OFFSETS_64TH[FQ_WORDS] = {0, 0x1, 0x80, 0x4000, 0x200000, 0x10000000, 0, 0x8, 0x400, 0x20000, 0x1000000, 0};
CONSTANT u32 FQH_OFFSETS[FQ_WORDS] = {0, 0x40, 0x2000, 0x100000, 0x8000000, 0, 0x4, 0x200, 0x10000, 0x800000, 0x40000000, 0};

struct fq_hybrid : hybrid_shape<FQH_LIMBS, 39> {
    typedef fq element;
    static constexpr int WORDS = FQ_WORDS, SHIFT = 6;
    static constexpr u32 INVERSE_LOW = 0xfffcfffd, INVERSE_HIGH = 0x7c;
    static constexpr double P_TOP = 872555476;
    FN_MEMBER static double p(int j) { return FQH_P[j]; }
    FN_MEMBER static double m(int j) { return FQH_M[j]; }
    // Immediates, since every use is in an unrolled loop.
    FN_MEMBER static u32 p_low(int j)
    {
        const u32 words[LIMBS] = {0xffffaaab, 0xff73fe00, 0xfffac550, 0x87b120f5, 0x730d2a0f,
                                  0x9e70a258, 0x35d91dd3, 0xd3db21a6, 0x7fe69a4b, 0x340223d4};
        return words[j];
    }
    FN_MEMBER static u32 m_low(int j)
    {
        const u32 words[LIMBS] = {0x07a40800, 0xb022f81f, 0xe60c9c80, 0xe77c19de, 0x76f4034a,
                                  0x61455f03, 0x9c3a0118, 0x5e73bb5e, 0x9f7cd3e5, 0xfec7f1f1};
        return words[j];
    }
    FN_MEMBER static u32 offsets(int i) { return FQH_OFFSETS[i]; }
    FN_MEMBER static u32 offsets_shifted(int i) { return FQH_OFFSETS_64TH[i]; }
    FN_MEMBER static u32 modulus(int i) { return FQ_P[i]; }
    FN_MEMBER static u32 inverse() { return FQ_M0; }
    FN_MEMBER static fq reduce(const fq& a) { return fq_reduce_once(a); }
};

typedef hybrid<fq_hybrid> fqh;
typedef hybrid_columns<fq_hybrid> fqh_columns;
typedef hybrid_ref<fq_hybrid> fqh_ref;

FN fqh fqh_from_fq(const fq& a) { return hybrid_from<fq_hybrid>(a); }

// Whether a could be a multiple k p, |k| <= 128: false for all but 257 of 2^32 others.
FN bool fqh_maybe_zero(const fqh& a) { return a.l[0] * fq_hybrid::INVERSE_LOW + 128 <= 256; }

// t + 64 a, or t - 64 a if `negate`, normalised, for a packed t and an a in blst's form. The sum is made of whole
// numbers, before the digits are read: a difference of two elements costs little more than one of them.
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
        r.l[j] = hybrid_bits_at(sum, FQ_WORDS + 1, 39 * j);
        r.d[j] = hybrid_digit<fq_hybrid>(hybrid_bits_at(sum, FQ_WORDS + 1, 39 * j + 32), r.l[j]);
    }
    return r;
}

// One, in limbs: 2^390 mod p.
FN fqh fqh_one()
{
    const double d[FQH_LIMBS] = {13762350,      5780597760,    -137223049952, -257394416602, 3717889551,
                                 -162825995361, 178168830730,  -31629561374,  -3246372054,   45863725};
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) r.d[j] = d[j] * 0x1p-16, r.l[j] = hybrid_limb_word(r.d[j]);
    return r;
}
