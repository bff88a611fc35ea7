// Fr, the 255-bit scalar field of BLS12-381: 8 words of 32 bits, little-endian.
//
// Two forms of a number x live side by side:
//   Montgomery form  x 2^256 mod r: what blst keeps. fr_mul multiplies two variables (112 wide products).
//   plain form       x itself: what a product by a constant keeps. fr_mul_constant takes a constant w together with its
//                    quotient floor(w 2^256 / r), an idea of Shoup's (86 wide products and 14 low ones).
//
// Ranges. r < 2^255, so 2r fits with a tenth to spare: 2r = 0.9058 * 2^256. Transforms keep numbers "loose":
//   below 2r             what fr_mul_constant, fr_sub_loose, fr_add_exact return;
//   below FR_LOOSE       (top word of 2r, plus one) 2^224, a hair above 2r: what fr_add_loose returns.
#pragma once
#include "carry.cuh"

#define FR_WORDS 8

struct fr {
    u32 v[FR_WORDS];
};

// A constant w of a product and floor(w 2^256 / r).
struct fr_constant {
    fr w;
    fr quotient;
};

// r = 0x73eda753 299d7d48 3339d808 09a1d805 53bda402 fffe5bfe ffffffff 00000001, 2r, and 2^256 - r.
#define FR_R0 0x00000001u
#define FR_R1 0xffffffffu
#define FR_R2 0xfffe5bfeu
#define FR_R3 0x53bda402u
#define FR_R4 0x09a1d805u
#define FR_R5 0x3339d808u
#define FR_R6 0x299d7d48u
#define FR_R7 0x73eda753u
#define FR_TWO_R_TOP 0xe7db4ea6u
// In constant memory and not `const`: as immediates the carry chains would be taken apart by the assembler.
CONSTANT u32 FR_R[FR_WORDS] = {FR_R0, FR_R1, FR_R2, FR_R3, FR_R4, FR_R5, FR_R6, FR_R7};
CONSTANT u32 FR_COMPLEMENT[FR_WORDS] = {0xffffffff, 0x00000000, 0x0001a401, 0xac425bfd,
                                        0xf65e27fa, 0xccc627f7, 0xd66282b7, 0x8c1258ac};
// -r^-1 mod 2^256.
CONSTANT u32 FR_NEGATIVE_INVERSE[FR_WORDS] = {0xffffffff, 0xfffffffe, 0xfffe5bfd, 0x53ba5bff,
                                              0x0004ec06, 0x181b2c17, 0xd7bf2839, 0x3d443ab0};
// 2^256 mod r: one in Montgomery form.
CONSTANT u32 FR_ONE[FR_WORDS] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                                 0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
// -r^-1 mod 2^32. In memory, so that the assembler does not turn the product into a negation that it then merges.
CONSTANT u32 FR_M0 = 0xffffffff;

FN fr fr_zero()
{
    fr a;
    UNROLL for (int i = 0; i < FR_WORDS; i++) a.v[i] = 0;
    return a;
}

FN fr fr_one()
{
    fr a;
    UNROLL for (int i = 0; i < FR_WORDS; i++) a.v[i] = FR_ONE[i];
    return a;
}

FN bool fr_equal(const fr& a, const fr& b)
{
    u32 different = 0;
    UNROLL for (int i = 0; i < FR_WORDS; i++) different |= a.v[i] ^ b.v[i];
    return different == 0;
}

// Elements in an array of 16-byte aligned memory.
FN fr fr_load(const uint4* from, u32 i)
{
    const uint4 low = from[2 * (u64)i], high = from[2 * (u64)i + 1];
    return fr{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}
FN void fr_store(uint4* to, u32 i, const fr& a)
{
    uint4 half;
    half.x = a.v[0], half.y = a.v[1], half.z = a.v[2], half.w = a.v[3];
    to[2 * (u64)i] = half;
    half.x = a.v[4], half.y = a.v[5], half.z = a.v[6], half.w = a.v[7];
    to[2 * (u64)i + 1] = half;
}

// ---- Additions. The constants under a predicate must be immediates: from constant memory they become loads. ----

#ifdef __CUDA_ARCH__
#define FR_WORDS_IN_OUT(a)                                                                                             \
    "+r"((a).v[0]), "+r"((a).v[1]), "+r"((a).v[2]), "+r"((a).v[3]), "+r"((a).v[4]), "+r"((a).v[5]), "+r"((a).v[6]),    \
        "+r"((a).v[7])
#define FR_PREDICATED_SUB(x0, x1, x2, x3, x4, x5, x6, x7)                                                              \
    "@p sub.cc.u32 %0, %0, " x0 ";\n\t@p subc.cc.u32 %1, %1, " x1 ";\n\t@p subc.cc.u32 %2, %2, " x2                    \
    ";\n\t@p subc.cc.u32 %3, %3, " x3 ";\n\t@p subc.cc.u32 %4, %4, " x4 ";\n\t@p subc.cc.u32 %5, %5, " x5              \
    ";\n\t@p subc.cc.u32 %6, %6, " x6 ";\n\t@p subc.u32 %7, %7, " x7 ";\n\t"
#define FR_PREDICATED_ADD(x0, x1, x2, x3, x4, x5, x6, x7)                                                              \
    "@p add.cc.u32 %0, %0, " x0 ";\n\t@p addc.cc.u32 %1, %1, " x1 ";\n\t@p addc.cc.u32 %2, %2, " x2                    \
    ";\n\t@p addc.cc.u32 %3, %3, " x3 ";\n\t@p addc.cc.u32 %4, %4, " x4 ";\n\t@p addc.cc.u32 %5, %5, " x5              \
    ";\n\t@p addc.cc.u32 %6, %6, " x6 ";\n\t@p addc.u32 %7, %7, " x7 ";\n\t"
#define FR_TWO_R_IMMEDIATES                                                                                            \
    "0x00000002", "0xfffffffe", "0xfffcb7fd", "0xa77b4805", "0x1343b00a", "0x6673b010", "0x533afa90", "0xe7db4ea6"
#define FR_R_IMMEDIATES                                                                                                \
    "0x00000001", "0xffffffff", "0xfffe5bfe", "0x53bda402", "0x09a1d805", "0x3339d808", "0x299d7d48", "0x73eda753"
#define FR_APPLY(macro, ...) macro(__VA_ARGS__)
// a - 2r if carry or the top word of a is above that of 2r; else a.
FN void fr_take_two_r(fr& a, u32 carry)
{
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "setp.gt.u32 p, %7, 0xe7db4ea6;\n\t"
                 "setp.ne.or.u32 p, %8, 0, p;\n\t" FR_APPLY(FR_PREDICATED_SUB, FR_TWO_R_IMMEDIATES) "}"
                 : FR_WORDS_IN_OUT(a)
                 : "r"(carry));
}
// a + 2r modulo 2^256 if borrow is not zero; else a.
FN void fr_give_two_r(fr& a, u32 borrow)
{
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "setp.ne.u32 p, %8, 0;\n\t" FR_APPLY(FR_PREDICATED_ADD, FR_TWO_R_IMMEDIATES) "}"
                 : FR_WORDS_IN_OUT(a)
                 : "r"(borrow));
}
// a + r modulo 2^256 if borrow is not zero; else a.
FN void fr_give_r(fr& a, u32 borrow)
{
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "setp.ne.u32 p, %8, 0;\n\t" FR_APPLY(FR_PREDICATED_ADD, FR_R_IMMEDIATES) "}"
                 : FR_WORDS_IN_OUT(a)
                 : "r"(borrow));
}
#else
FN void fr_give(fr& a, u32 times)
{
    const u32 r[FR_WORDS] = {FR_R0, FR_R1, FR_R2, FR_R3, FR_R4, FR_R5, FR_R6, FR_R7};
    for (u32 n = 0; n < times; n++) {
        a.v[0] = add_cc(a.v[0], r[0]);
        for (int i = 1; i < FR_WORDS; i++) a.v[i] = addc_cc(a.v[i], r[i]);
    }
}
FN void fr_take_two_r(fr& a, u32 carry)
{
    if (carry == 0 && a.v[7] <= FR_TWO_R_TOP) return;
    for (int n = 0; n < 2; n++) {
        a.v[0] = sub_cc(a.v[0], FR_R0);
        for (int i = 1; i < FR_WORDS; i++) a.v[i] = subc_cc(a.v[i], FR_R[i]);
    }
}
FN void fr_give_two_r(fr& a, u32 borrow) { fr_give(a, borrow ? 2 : 0); }
FN void fr_give_r(fr& a, u32 borrow) { fr_give(a, borrow ? 1 : 0); }
#endif

// a + b modulo 2^256; *carry gets what is left out.
FN fr fr_sum(const fr& a, const fr& b, u32* carry)
{
    fr s;
    s.v[0] = add_cc(a.v[0], b.v[0]);
    UNROLL for (int i = 1; i < FR_WORDS; i++) s.v[i] = addc_cc(a.v[i], b.v[i]);
    *carry = addc(0, 0);
    return s;
}

// a - b modulo 2^256; *borrow gets something other than zero if a < b.
FN fr fr_difference(const fr& a, const fr& b, u32* borrow)
{
    fr d;
    d.v[0] = sub_cc(a.v[0], b.v[0]);
    UNROLL for (int i = 1; i < FR_WORDS; i++) d.v[i] = subc_cc(a.v[i], b.v[i]);
    *borrow = subc(0, 0);
    return d;
}

// a + t below FR_LOOSE, for a below FR_LOOSE and a product t (fr_mul_constant's results are below 1.9058 r + 1). Only
// the top words are compared: what is kept has no top word above that of 2r, and FR_LOOSE + 1.9058 r - 2r < FR_LOOSE.
FN fr fr_add_loose(const fr& a, const fr& t)
{
    u32 carry;
    fr s = fr_sum(a, t, &carry);
    fr_take_two_r(s, carry);
    return s;
}

// a - b, plus 2r if that is negative. For a below FR_LOOSE and b below 2r: below FR_LOOSE; for a below 2r: below 2r.
FN fr fr_sub_loose(const fr& a, const fr& b)
{
    u32 borrow;
    fr d = fr_difference(a, b, &borrow);
    fr_give_two_r(d, borrow);
    return d;
}

// a + b below 2r, for a and b below 2r. Two sums under FR_LOOSE would let the excess grow, so this one is exact.
FN fr fr_add_exact(const fr& a, const fr& b)
{
    u32 carry;
    fr s = fr_sum(a, b, &carry);
    s.v[0] = sub_cc(s.v[0], 0x00000002u);
    s.v[1] = subc_cc(s.v[1], 0xfffffffeu);
    s.v[2] = subc_cc(s.v[2], 0xfffcb7fdu);
    s.v[3] = subc_cc(s.v[3], 0xa77b4805u);
    s.v[4] = subc_cc(s.v[4], 0x1343b00au);
    s.v[5] = subc_cc(s.v[5], 0x6673b010u);
    s.v[6] = subc_cc(s.v[6], 0x533afa90u);
    s.v[7] = subc_cc(s.v[7], FR_TWO_R_TOP);
    // All ones if a + b < 2r, else 0 (a carry of the sum and a borrow of the difference cancel).
    fr_give_two_r(s, subc(carry, 0));
    return s;
}

// a - r if that is not negative, else a: below r for a below 2r.
FN fr fr_reduce_once(const fr& a)
{
    fr d;
    d.v[0] = sub_cc(a.v[0], FR_R0);
    d.v[1] = subc_cc(a.v[1], FR_R1);
    d.v[2] = subc_cc(a.v[2], FR_R2);
    d.v[3] = subc_cc(a.v[3], FR_R3);
    d.v[4] = subc_cc(a.v[4], FR_R4);
    d.v[5] = subc_cc(a.v[5], FR_R5);
    d.v[6] = subc_cc(a.v[6], FR_R6);
    d.v[7] = subc_cc(a.v[7], FR_R7);
    fr_give_r(d, subc(0, 0));
    return d;
}

// The canonical number below r, for a below FR_LOOSE.
FN fr fr_canonical(const fr& a) { return fr_reduce_once(fr_reduce_once(a)); }

// a + b of canonical numbers, canonical.
FN fr fr_add(const fr& a, const fr& b)
{
    u32 carry;
    return fr_reduce_once(fr_sum(a, b, &carry));
}

// a - b of canonical numbers, canonical.
FN fr fr_sub(const fr& a, const fr& b)
{
    u32 borrow;
    fr d = fr_difference(a, b, &borrow);
    fr_give_r(d, borrow);
    return d;
}

// ---- The product by a constant ----

// About floor(a b / 2^256), never above it and less than 1 + 2^-28 below it: the columns i + j < 6 of the product are
// left out. 43 wide products. Even columns are summed in e (e[k] is word 6 + k), odd ones in o (o[k] is word 7 + k),
// so that the two words of a product are neighbours and the carry runs along. The first product of a column, that by
// b[7], ends the chain of the row before, whose carry it takes: a carry kept for it would need a zero beside it, which
// the assembler makes in the pipe of the products.
FN fr fr_high(const fr& a, const fr& b)
{
    u32 e[10], o[9];
    UNROLL for (int i = 0; i < FR_WORDS; i++) {
        UNROLL for (int odd = 0; odd < 2; odd++) {
            u32* sum = odd ? o : e;
            const int first = 6 + odd;
            // Columns of this row and parity from `low` to `high`, but for that of b[7].
            const int low = i > first ? i + ((i + odd) & 1) : first;
            const int high = i + 5 + ((i + 1 + odd) & 1);
            const bool behind_b7 = high == i + 5;
            UNROLL for (int c = low; c <= high; c += 2) {
                const int k = c - first;
                if (i == 0) {
                    sum[k] = mul_lo(a.v[0], b.v[c]);
                    sum[k + 1] = mul_hi(a.v[0], b.v[c]);
                } else {
                    sum[k] = c == low ? mad_lo_cc(a.v[i], b.v[c - i], sum[k]) : madc_lo_cc(a.v[i], b.v[c - i], sum[k]);
                    sum[k + 1] = madc_hi_cc(a.v[i], b.v[c - i], sum[k + 1]);
                }
            }
            const int k = high + 2 - first;
            if (i == 0) {
                // Row 0 has no carry: its b[7], and that of row 1.
                const int row = odd ? 0 : 1;
                sum[k] = mul_lo(a.v[row], b.v[7]);
                sum[k + 1] = mul_hi(a.v[row], b.v[7]);
            } else if (behind_b7) {
                sum[k] = addc_cc(sum[k], 0);
                sum[k + 1] = addc(sum[k + 1], 0);
            } else if (i < FR_WORDS - 1) {
                sum[k] = madc_lo_cc(a.v[i + 1], b.v[7], 0);
                sum[k + 1] = madc_hi(a.v[i + 1], b.v[7], 0);
            } else {
                sum[k] = addc(0, 0);
            }
        }
    }
    fr q;
    add_cc(e[1], o[0]);
    UNROLL for (int k = 0; k < FR_WORDS - 1; k++) q.v[k] = addc_cc(e[2 + k], o[1 + k]);
    q.v[7] = addc(e[9], o[8]);
    return q;
}

// a w - q r modulo 2^256. 43 wide products and 14 low ones, the latter in the last column.
FN fr fr_low(const fr& a, const fr& w, const fr& q)
{
    // e[k] is word k, o[k] is word 1 + k.
    u32 e[8], o[7];
    UNROLL for (int k = 0; k < 8; k++) e[k] = 0;
    UNROLL for (int k = 0; k < 7; k++) o[k] = 0;
    // Rows of a w, then rows of q (2^256 - r) without the two lowest words of the latter.
    UNROLL for (int row = 0; row < 14; row++) {
        const int i = row < 8 ? row : row - 8;
        const int skip = row < 8 ? 0 : 2;
        const u32 x = row < 8 ? a.v[i] : q.v[i];
        UNROLL for (int odd = 0; odd < 2; odd++) {
            const int low = i + skip + ((i + skip + odd) & 1);
            UNROLL for (int c = low; c < FR_WORDS; c += 2) {
                const u32 y = row < 8 ? w.v[c - i] : FR_COMPLEMENT[c - i];
                u32* sum = odd ? o : e;
                const int k = c - odd;
                sum[k] = c == low ? mad_lo_cc(x, y, sum[k]) : madc_lo_cc(x, y, sum[k]);
                if (c == 6) sum[k + 1] = madc_hi(x, y, sum[k + 1]);
                if (c < 6) sum[k + 1] = madc_hi_cc(x, y, sum[k + 1]);
            }
        }
    }
    // The lowest words of 2^256 - r are 2^32 - 1: plus q 2^32, minus q.
    fr d;
    d.v[0] = e[0];
    d.v[1] = add_cc(e[1], o[0]);
    UNROLL for (int k = 2; k < FR_WORDS - 1; k++) d.v[k] = addc_cc(e[k], o[k - 1]);
    d.v[7] = addc(e[7], o[6]);
    d.v[1] = add_cc(d.v[1], q.v[0]);
    UNROLL for (int k = 2; k < FR_WORDS - 1; k++) d.v[k] = addc_cc(d.v[k], q.v[k - 1]);
    d.v[7] = addc(d.v[7], q.v[6]);
    d.v[0] = sub_cc(d.v[0], q.v[0]);
    UNROLL for (int k = 1; k < FR_WORDS - 1; k++) d.v[k] = subc_cc(d.v[k], q.v[k]);
    d.v[7] = subc(d.v[7], q.v[7]);
    return d;
}

// a w modulo r, below r (1 + a / 2^256) + 1, so below 2r, for any a below FR_LOOSE. In the form that a has.
FN fr fr_mul_constant(const fr& a, const fr_constant& c) { return fr_low(a, c.w, fr_high(a, c.quotient)); }

// ---- The product of two variables ----

// a b 2^-256 modulo r, below a + r (as integers), for a + r < 2^256 and any b. Word by word, each time adding the
// multiple m of r that clears the lowest word. r = ... 2^64 + 2^64 - 2^32 + 1: the products m r_0 and m r_1 are
// additions, which leaves 14 wide products a row.
FN fr fr_mul_loose(const fr& a, const fr& b)
{
    // Before row i the value is e[0..8] + 2^32 o[0..8].
    u32 e[8], o[8];
    UNROLL for (int k = 0; k < 8; k++) e[k] = o[k] = 0;
    UNROLL for (int i = 0; i < FR_WORDS; i++) {
        if (i > 0) {
            // Shift by a word: e and o change places, and word 1 of the old e belongs to both.
            u32 last[8];
            UNROLL for (int k = 0; k < 8; k++) last[k] = e[k];
            UNROLL for (int k = 0; k < 8; k++) e[k] = o[k];
            e[0] = add_cc(e[0], last[1]);
            UNROLL for (int k = 0; k < 6; k += 2) {
                o[k] = madc_lo_cc(a.v[k + 1], b.v[i], last[k + 2]);
                o[k + 1] = madc_hi_cc(a.v[k + 1], b.v[i], last[k + 3]);
            }
            o[6] = madc_lo_cc(a.v[7], b.v[i], 0);
            o[7] = madc_hi(a.v[7], b.v[i], 0);
            e[0] = mad_lo_cc(a.v[0], b.v[i], e[0]);
            e[1] = madc_hi_cc(a.v[0], b.v[i], e[1]);
            UNROLL for (int k = 2; k < 8; k += 2) {
                e[k] = madc_lo_cc(a.v[k], b.v[i], e[k]);
                e[k + 1] = madc_hi_cc(a.v[k], b.v[i], e[k + 1]);
            }
            o[7] = addc(o[7], 0);
        } else {
            UNROLL for (int k = 0; k < 8; k += 2) {
                e[k] = mul_lo(a.v[k], b.v[0]);
                e[k + 1] = mul_hi(a.v[k], b.v[0]);
                o[k] = mul_lo(a.v[k + 1], b.v[0]);
                o[k + 1] = mul_hi(a.v[k + 1], b.v[0]);
            }
        }
        const u32 m = mul_lo(e[0], FR_M0);
        // m r_1 = m 2^32 - m, then r_3, r_5, r_7.
        const u32 product_low = sub_cc(0, m);
        const u32 product_high = subc(m, 0);
        o[0] = add_cc(o[0], product_low);
        o[1] = addc_cc(o[1], product_high);
        UNROLL for (int k = 2; k < 8; k += 2) {
            o[k] = madc_lo_cc(m, FR_R[k + 1], o[k]);
            o[k + 1] = k == 6 ? madc_hi(m, FR_R[k + 1], o[k + 1]) : madc_hi_cc(m, FR_R[k + 1], o[k + 1]);
        }
        // m r_0 = m, then r_2, r_4, r_6.
        e[0] = add_cc(e[0], m);
        e[1] = addc_cc(e[1], 0);
        UNROLL for (int k = 2; k < 8; k += 2) {
            e[k] = madc_lo_cc(m, FR_R[k], e[k]);
            e[k + 1] = madc_hi_cc(m, FR_R[k], e[k + 1]);
        }
        o[7] = addc(o[7], 0);
    }
    fr c;
    c.v[0] = add_cc(o[0], e[1]);
    UNROLL for (int k = 1; k < 7; k++) c.v[k] = addc_cc(o[k], e[k + 1]);
    c.v[7] = addc(o[7], 0);
    return c;
}

// a b 2^-256 modulo r, canonical, of canonical numbers.
FN fr fr_mul(const fr& a, const fr& b) { return fr_reduce_once(fr_mul_loose(a, b)); }

// The canonical plain form of a number in canonical Montgomery form.
FN fr fr_from_montgomery(const fr& a)
{
    fr one = fr_zero();
    one.v[0] = 1;
    return fr_mul(a, one);
}

// The constant w in plain form, with its quotient, from canonical Montgomery form: w 2^256 = quotient r + m.
FN fr_constant fr_constant_from_montgomery(const fr& m)
{
    fr_constant c;
    c.w = fr_from_montgomery(m);
    // quotient = -m / r modulo 2^256.
    u32 e[8], o[7];
    UNROLL for (int k = 0; k < 8; k++) e[k] = 0;
    UNROLL for (int k = 0; k < 7; k++) o[k] = 0;
    UNROLL for (int i = 0; i < FR_WORDS; i++) {
        UNROLL for (int odd = 0; odd < 2; odd++) {
            const int low = i + ((i + odd) & 1);
            UNROLL for (int j = low; j < FR_WORDS; j += 2) {
                u32* sum = odd ? o : e;
                const int k = j - odd;
                const u32 y = FR_NEGATIVE_INVERSE[j - i];
                sum[k] = j == low ? mad_lo_cc(m.v[i], y, sum[k]) : madc_lo_cc(m.v[i], y, sum[k]);
                if (j == 6) sum[k + 1] = madc_hi(m.v[i], y, sum[k + 1]);
                if (j < 6) sum[k + 1] = madc_hi_cc(m.v[i], y, sum[k + 1]);
            }
        }
    }
    c.quotient.v[0] = e[0];
    c.quotient.v[1] = add_cc(e[1], o[0]);
    UNROLL for (int k = 2; k < FR_WORDS - 1; k++) c.quotient.v[k] = addc_cc(e[k], o[k - 1]);
    c.quotient.v[7] = addc(e[7], o[6]);
    return c;
}
