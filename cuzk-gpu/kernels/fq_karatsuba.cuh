// The product of Fq with one level of Karatsuba's method: 252 wide products instead of 288, for about 150 additions more, which
// run beside them on another pipe. A product of 12 words is three of 6: with a = a0 + a1 X, b = b0 + b1 X, X = 2^192,
// a b = a0 b0 + (a0 b0 + a1 b1 - (a0 - a1)(b0 - b1)) X + a1 b1 X^2. The reduction is that of the square.
#pragma once
#include "fq.cuh"

#define FQ_HALF (FQ_WORDS / 2)

// r[0..12) = a[0..6) * b[0..6). Products at even and at odd places in chains of their own; a chain's last carry goes to a word
// that is still zero, and the products that come next to it cannot overflow.
FN void fq_half_mul(u32* r, const u32* a, const u32* b)
{
    u32 even[FQ_WORDS], odd[FQ_WORDS]; // odd[j] is at place j + 1
    UNROLL for (int j = 0; j < FQ_WORDS; j++) even[j] = odd[j] = 0;
    UNROLL for (int j = 0; j < FQ_HALF; j += 2) {
        even[j] = mul_lo(a[j], b[0]), even[j + 1] = mul_hi(a[j], b[0]);
        odd[j] = mul_lo(a[j + 1], b[0]), odd[j + 1] = mul_hi(a[j + 1], b[0]);
    }
    UNROLL for (int i = 1; i < FQ_HALF; i++) {
        u32* whole = i % 2 ? odd + i - 1 : even + i;    // + (a_0, a_2, a_4) b_i, and a carry
        u32* fresh = i % 2 ? even + i + 1 : odd + i;    // + (a_1, a_3, a_5) b_i, whose last two words are new
        whole[0] = mad_lo_cc(a[0], b[i], whole[0]);
        whole[1] = madc_hi_cc(a[0], b[i], whole[1]);
        UNROLL for (int j = 2; j < FQ_HALF; j += 2) {
            whole[j] = madc_lo_cc(a[j], b[i], whole[j]);
            whole[j + 1] = madc_hi_cc(a[j], b[i], whole[j + 1]);
        }
        whole[FQ_HALF] = addc(0, 0);
        fresh[0] = mad_lo_cc(a[1], b[i], fresh[0]);
        fresh[1] = madc_hi_cc(a[1], b[i], fresh[1]);
        UNROLL for (int j = 2; j < FQ_HALF; j += 2) {
            fresh[j] = madc_lo_cc(a[j + 1], b[i], fresh[j]);
            fresh[j + 1] = j + 2 < FQ_HALF ? madc_hi_cc(a[j + 1], b[i], fresh[j + 1]) : madc_hi(a[j + 1], b[i], fresh[j + 1]);
        }
    }
    r[0] = even[0];
    r[1] = add_cc(even[1], odd[0]);
    UNROLL for (int j = 2; j < FQ_WORDS - 1; j++) r[j] = addc_cc(even[j], odd[j - 1]);
    r[FQ_WORDS - 1] = addc(even[FQ_WORDS - 1], odd[FQ_WORDS - 2]);
}

// d = |low half - high half|. Returns all ones if the high one is larger.
FN u32 fq_half_difference(u32* d, const u32* a)
{
    d[0] = sub_cc(a[0], a[FQ_HALF]);
    UNROLL for (int j = 1; j < FQ_HALF; j++) d[j] = subc_cc(a[j], a[FQ_HALF + j]);
    const u32 sign = subc(0, 0);
    add_cc(sign, 1);
    UNROLL for (int j = 0; j < FQ_HALF - 1; j++) d[j] = addc_cc(d[j] ^ sign, 0);
    d[FQ_HALF - 1] = addc(d[FQ_HALF - 1] ^ sign, 0);
    return sign;
}

// wide[0..24) / R, in 0..2p if that is below p R.
FN fq fq_reduce_wide(u32* wide)
{
    u32 other[FQ_WORDS];
    UNROLL for (int j = 0; j < FQ_WORDS; j++) other[j] = 0;
    fq_reduce_word(wide, other);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i += 2) {
        fq_shift_reduce(wide, other);
        fq_shift_reduce(other, wide);
    }
    fq_shift_reduce(wide, other);
    fq low = fq_join(other, wide);
    low.v[0] = add_cc(low.v[0], wide[FQ_WORDS]);
    UNROLL for (int j = 1; j < FQ_WORDS - 1; j++) low.v[j] = addc_cc(low.v[j], wide[FQ_WORDS + j]);
    low.v[FQ_WORDS - 1] = addc(low.v[FQ_WORDS - 1], wide[2 * FQ_WORDS - 1]);
    return low;
}

// a*b/R, in 0..2p for a*b < p*R, as fq_mul_lazy.
FN fq fq_mul_karatsuba(const fq& a, const fq& b)
{
    u32 wide[2 * FQ_WORDS], middle[FQ_WORDS + 1], product[FQ_WORDS], da[FQ_HALF], db[FQ_HALF];
    const u32 minus = ~(fq_half_difference(da, a.v) ^ fq_half_difference(db, b.v));
    fq_half_mul(product, da, db);
    fq_half_mul(wide, a.v, b.v);
    fq_half_mul(wide + FQ_WORDS, a.v + FQ_HALF, b.v + FQ_HALF);
    middle[0] = add_cc(wide[0], wide[FQ_WORDS]);
    UNROLL for (int j = 1; j < FQ_WORDS; j++) middle[j] = addc_cc(wide[j], wide[FQ_WORDS + j]);
    middle[FQ_WORDS] = addc(0, minus);
    add_cc(minus, 1);
    UNROLL for (int j = 0; j < FQ_WORDS; j++) middle[j] = addc_cc(middle[j], product[j] ^ minus);
    middle[FQ_WORDS] = addc(middle[FQ_WORDS], 0);
    wide[FQ_HALF] = add_cc(wide[FQ_HALF], middle[0]);
    UNROLL for (int j = 1; j <= FQ_WORDS; j++) wide[FQ_HALF + j] = addc_cc(wide[FQ_HALF + j], middle[j]);
    UNROLL for (int j = FQ_HALF + FQ_WORDS + 1; j < 2 * FQ_WORDS - 1; j++) wide[j] = addc_cc(wide[j], 0);
    wide[2 * FQ_WORDS - 1] = addc(wide[2 * FQ_WORDS - 1], 0);
    return fq_reduce_wide(wide);
}
