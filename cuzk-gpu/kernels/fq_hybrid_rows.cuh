// Products in the hybrid form, row by row: one operand in registers, the other one's limbs read from memory, a row each, in a
// loop. A fifth of the code and two thirds of the registers of fqh_mul, at nearly its rate: what point formulas are made
// of. Columns of row i and of its reduction come in turn; see fq_hybrid.cuh for the numbers, and the test `bounds` for the
// shapes that are safe: at most one of the operands may be a difference that is not normalised.
#pragma once
#include "fq_hybrid.cuh"

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

// A window of ten columns, that moves up by one with each row. At the end: the nine columns of the result.
struct fqh_rows {
    double f[FQH_LIMBS];
    u32 l[FQH_LIMBS];
    u32 top;
};

// Adds a b_i to the window.
FN void fqh_row(fqh_rows& w, const fqh& a, double b)
{
    const u32 word = fqh_limb_word(b);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = fqh_fma(a.d[j], b, w.f[j]);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[j] = fqh_mad(a.l[j], word, w.l[j]);
}

// Splits the lowest column, whose double is `f`, and moves the window.
FN void fqh_row_reduce(fqh_rows& w, double f)
{
    u32 carry;
    const u32 word = w.l[0];
    const double m = fqh_split(f, word, carry);
    w.f[0] = fqh_fma(m, FQH_M[0], fqh_fma(f, 0x1p-39, w.f[1]));
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.f[j] = fqh_fma(m, FQH_M[j], w.f[j + 1]);
    w.f[FQH_LIMBS - 1] = fqh_mul2(m, FQH_M[FQH_LIMBS - 1]);
    w.l[0] = fqh_mad(word, fqh_m_low(0), w.l[1] + carry);
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.l[j] = fqh_mad(word, fqh_m_low(j), w.l[j + 1]);
    w.l[FQH_LIMBS - 1] = word * fqh_m_low(FQH_LIMBS - 1);
}

// The same for the last row: a Montgomery step.
FN void fqh_row_last(fqh_rows& w, double f)
{
    u32 word;
    const double q = fqh_montgomery_digit(f, w.l[0], word);
    const double g = fqh_fma(q, FQH_P[0], f);
    w.f[0] = fqh_fma(q, FQH_P[1], fqh_fma(g, 0x1p-39, w.f[1]));
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.f[j] = fqh_fma(q, FQH_P[j + 1], w.f[j + 1]);
    w.l[0] = fqh_mad(word, fqh_p_low(1), w.l[1] + fqh_low(fqh_fma(g, 0x1p-7, 1.5 * 0x1p52)));
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.l[j] = fqh_mad(word, fqh_p_low(j + 1), w.l[j + 1]);
}

#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

// The columns of a b / R.
FN fqh_rows fqh_rows_mul(const fqh& a, const fqh_ref& b)
{
    fqh_rows w;
    w.top = 0;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = 0, w.l[j] = 0;
    ROLLED for (int i = 0; i < FQH_LIMBS - 1; i++) {
        fqh_row(w, a, b.limbs[i * b.stride]);
        fqh_row_reduce(w, w.f[0]);
    }
    fqh_row(w, a, b.limbs[(FQH_LIMBS - 1) * b.stride]);
    fqh_row_last(w, w.f[0]);
    return w;
}

// The columns of (a b + c d) / R. The second product has doubles of its own: in one, the error could pass the bound.
FN fqh_rows fqh_rows_mul2(const fqh& a, const fqh_ref& b, const fqh& c, const fqh_ref& d)
{
    fqh_rows w;
    double g[FQH_LIMBS];
    w.top = 0;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = 0, w.l[j] = 0, g[j] = 0;
    ROLLED for (int i = 0; i < FQH_LIMBS; i++) {
        fqh_row(w, a, b.limbs[i * b.stride]);
        const double factor = d.limbs[i * d.stride];
        const u32 word = fqh_limb_word(factor);
        UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) g[j] = fqh_fma(c.d[j], factor, g[j + 1]);
        g[FQH_LIMBS - 1] = fqh_mul2(c.d[FQH_LIMBS - 1], factor);
        UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[j] = fqh_mad(c.l[j], word, w.l[j]);
        if (i == FQH_LIMBS - 1) break;
        fqh_row_reduce(w, fqh_add2(w.f[0], g[0]));
    }
    fqh_row_last(w, fqh_add2(w.f[0], g[0]));
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) w.f[j] = fqh_add2(w.f[j], g[j + 1]);
    return w;
}

// + k s, for a small k.
FN void fqh_rows_add(fqh_rows& w, int k, const fqh& s)
{
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[j] = fqh_fma(s.d[j], k * FQH_SCALE, w.f[j]);
        w.l[j] += (u32)k * s.l[j];
    }
    w.top += (u32)k * s.l[FQH_LIMBS - 1];
}

FN fqh fqh_rows_end(fqh_rows& w) { return fqh_upper(w.f, w.l, w.top); }

// a b / R.
FN fqh fqh_mul_rows(const fqh& a, const fqh_ref& b)
{
    fqh_rows w = fqh_rows_mul(a, b);
    return fqh_rows_end(w);
}
