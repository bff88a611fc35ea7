// Reciprocals in Fq by division steps: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion"
// (2019), in the variant that starts at delta = 1/2 (Wuille), whose bound for 381 bits is
// (45907*381 + 26313) / 19929 < 879 steps. Here 30 rounds of 30 steps: every lane of a warp does the same, so that 32
// unrelated reciprocals cost one lane's time, about 35 products.
//
// Numbers are in 13 signed limbs of 30 bits. A round finds the 2x2 matrix of 30 steps from the lowest words of f and g,
// then applies it to (f, g) exactly and to (d, e) mod p, where d*x = f and e*x = g mod p up to the power of two that is
// divided out.
#pragma once
#include "fq.cuh"

#define FQ_LIMBS 13
#define FQ_LIMB_MASK 0x3fffffff

// p in limbs of 30 bits.
CONSTANT i32 FQ_P30[FQ_LIMBS] = {0x3fffaaab, 0x27fbffff, 0x153ffffb, 0x2affffac, 0x30f6241e, 0x034a83da, 0x112bf673,
                                 0x12e13ce1, 0x2cd76477, 0x1ed90d2e, 0x29a4b1ba, 0x3a8e5ff9, 0x001a0111};
// p^-1 mod 2^30.
CONSTANT u32 FQ_P30_INVERSE = 0x30003;
// 2^768 mod p in limbs: with it as the first e, the reciprocal of aR comes out as R/a.
CONSTANT i32 FQ_R2_30[FQ_LIMBS] = {0x1c341746, 0x137c7cd0, 0x1d104f1f, 0x1db9a982, 0x15b6d50a, 0x151db132, 0x183c08de,
                                   0x222a64e7, 0x152d67eb, 0x3a16d466, 0x3aa9a793, 0x3964b2b8, 0x0011988f};

struct fq_steps {
    i32 u, v, q, r;
};

// Fifteen steps on the lowest words of f and g. For the first fourteen a row of the matrix is one word, u + 2^16 v: every
// operation is linear, and the entries are at most 2^14 in absolute value. (After fifteen, 2^15 would read as -2^15.)
FN fq_steps fq_fifteen_steps(i32& zeta, u32& f, u32& g)
{
    i32 uv = 1, qr = 1 << 16;
    UNROLL for (int i = 0; i < 14; i++) {
        const bool odd = g & 1, swap = odd && zeta < 0;
        // If swap: (f, g) = (g, g - f). Else if odd: g = g + f.
        if (swap) f = 0 - f, uv = -uv, zeta = ~zeta;
        if (odd) g += f, qr += uv;
        if (swap) f = g - f, uv = qr - uv;
        zeta -= 1;
        g >>= 1;
        uv *= 2;
    }
    fq_steps t;
    t.u = (i32)((u32)uv << 16) >> 16, t.v = (uv - t.u) >> 16;
    t.q = (i32)((u32)qr << 16) >> 16, t.r = (qr - t.q) >> 16;
    const bool odd = g & 1, swap = odd && zeta < 0;
    if (swap) f = 0 - f, t.u = -t.u, t.v = -t.v, zeta = ~zeta;
    if (odd) g += f, t.q += t.u, t.r += t.v;
    if (swap) f = g - f, t.u = t.q - t.u, t.v = t.r - t.v;
    zeta -= 1;
    g >>= 1;
    t.u *= 2, t.v *= 2;
    return t;
}

// Thirty steps: the product of two matrices of fifteen.
FN fq_steps fq_thirty_steps(i32& zeta, u32 f, u32 g)
{
    const fq_steps a = fq_fifteen_steps(zeta, f, g);
    const fq_steps b = fq_fifteen_steps(zeta, f, g);
    fq_steps t;
    t.u = b.u * a.u + b.v * a.q, t.v = b.u * a.v + b.v * a.r;
    t.q = b.q * a.u + b.r * a.q, t.r = b.q * a.v + b.r * a.r;
    return t;
}

// (f, g) = t (f, g) / 2^30, exact.
FN void fq_apply_exact(i32* f, i32* g, const fq_steps& t)
{
    i64 cf = (i64)t.u * f[0] + (i64)t.v * g[0];
    i64 cg = (i64)t.q * f[0] + (i64)t.r * g[0];
    cf >>= 30, cg >>= 30;
    UNROLL for (int i = 1; i < FQ_LIMBS; i++) {
        cf += (i64)t.u * f[i] + (i64)t.v * g[i];
        cg += (i64)t.q * f[i] + (i64)t.r * g[i];
        f[i - 1] = (i32)cf & FQ_LIMB_MASK, g[i - 1] = (i32)cg & FQ_LIMB_MASK;
        cf >>= 30, cg >>= 30;
    }
    f[FQ_LIMBS - 1] = (i32)cf, g[FQ_LIMBS - 1] = (i32)cg;
}

// (d, e) = t (d, e) / 2^30 mod p. Both are in (-2p, p) before and after: a negative one counts as one p more, and the
// multiple of p that makes the lowest limb vanish is taken from -2^30 < m <= 0.
FN void fq_apply_mod(i32* d, i32* e, const fq_steps& t)
{
    const i32 sd = d[FQ_LIMBS - 1] >> 31, se = e[FQ_LIMBS - 1] >> 31;
    i32 md = (t.u & sd) + (t.v & se), me = (t.q & sd) + (t.r & se);
    i64 cd = (i64)t.u * d[0] + (i64)t.v * e[0];
    i64 ce = (i64)t.q * d[0] + (i64)t.r * e[0];
    md -= (i32)((FQ_P30_INVERSE * (u32)cd + (u32)md) & FQ_LIMB_MASK);
    me -= (i32)((FQ_P30_INVERSE * (u32)ce + (u32)me) & FQ_LIMB_MASK);
    cd += (i64)FQ_P30[0] * md, ce += (i64)FQ_P30[0] * me;
    cd >>= 30, ce >>= 30;
    UNROLL for (int i = 1; i < FQ_LIMBS; i++) {
        cd += (i64)t.u * d[i] + (i64)t.v * e[i];
        ce += (i64)t.q * d[i] + (i64)t.r * e[i];
        cd += (i64)FQ_P30[i] * md, ce += (i64)FQ_P30[i] * me;
        d[i - 1] = (i32)cd & FQ_LIMB_MASK, e[i - 1] = (i32)ce & FQ_LIMB_MASK;
        cd >>= 30, ce >>= 30;
    }
    d[FQ_LIMBS - 1] = (i32)cd, e[FQ_LIMBS - 1] = (i32)ce;
}

// d += k*p for k in {0, 1}, then each limb into 0..2^30 with the sign in the last.
FN void fq_add_p(i32* d, i32 mask)
{
    i32 carry = 0;
    UNROLL for (int i = 0; i < FQ_LIMBS - 1; i++) {
        const i32 x = d[i] + (FQ_P30[i] & mask) + carry;
        d[i] = x & FQ_LIMB_MASK;
        carry = x >> 30;
    }
    d[FQ_LIMBS - 1] += (FQ_P30[FQ_LIMBS - 1] & mask) + carry;
}

// 1/a in Montgomery form (R^2/a of the words), 0 for 0.
FN fq fq_inv(const fq& a)
{
    i32 f[FQ_LIMBS], g[FQ_LIMBS], d[FQ_LIMBS], e[FQ_LIMBS];
    UNROLL for (int i = 0; i < FQ_LIMBS; i++) {
        const int word = 30 * i / 32, shift = 30 * i % 32;
        const u32 above = word + 1 < FQ_WORDS ? a.v[word + 1] : 0;
        const u64 both = (u64)above << 32 | a.v[word];
        f[i] = FQ_P30[i], g[i] = (i32)(both >> shift) & FQ_LIMB_MASK;
        d[i] = 0, e[i] = FQ_R2_30[i];
    }
    i32 zeta = -1;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int round = 0; round < 30; round++) {
        const u32 f0 = (u32)f[0] | (u32)f[1] << 30, g0 = (u32)g[0] | (u32)g[1] << 30;
        const fq_steps t = fq_thirty_steps(zeta, f0, g0);
        fq_apply_mod(d, e, t);
        fq_apply_exact(f, g, t);
    }
    // Now g = 0 and f = 1 or -1 (or p, when a = 0 and d = 0). d is in (-2p, p): +p if negative, negate by f, +p again.
    fq_add_p(d, d[FQ_LIMBS - 1] >> 31);
    const i32 negative = f[FQ_LIMBS - 1] >> 31;
    UNROLL for (int i = 0; i < FQ_LIMBS; i++) d[i] = (d[i] ^ negative) - negative;
    fq_add_p(d, 0);
    fq_add_p(d, d[FQ_LIMBS - 1] >> 31);
    fq r;
    UNROLL for (int w = 0; w < FQ_WORDS; w++) {
        const int limb = 32 * w / 30, shift = 32 * w % 30;
        const u64 both = (u64)(u32)d[limb] | (limb + 1 < FQ_LIMBS ? (u64)(u32)d[limb + 1] << 30 : 0);
        const u64 more = limb + 2 < FQ_LIMBS ? (u64)(u32)d[limb + 2] << 60 : 0;
        r.v[w] = (u32)((both | more) >> shift);
    }
    return r;
}
