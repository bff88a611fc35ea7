// Fq2 in the hybrid form (fq_hybrid.cuh). A product is four of Fq and two reductions, row by row: one operand in registers, the
// other one's limbs read from memory (shared, on a device), a row each of both parts, in a loop. A limb that is read serves
// two rows. 400 + 200 limb products, 38 splits; a square is two products, 200 + 200.
#pragma once
#include "fq_hybrid.cuh"

struct fqh2 {
    fqh c0, c1;
};

struct fqh2_ref {
    fqh_ref c0, c1;
};

FN fqh2 fqh2_get(const fqh2_ref& from)
{
    fqh2 r;
    r.c0 = hybrid_get(from.c0), r.c1 = hybrid_get(from.c1);
    return r;
}
FN void fqh2_set(const fqh2_ref& to, const fqh2& a) { hybrid_set(to.c0, a.c0), hybrid_set(to.c1, a.c1); }

// A window of ten columns, that moves up by one with each row: at the end the upper columns of the result. Products of a
// second kind have doubles of their own, `other`: all in one, the error could pass the bound.
struct fqh_window {
    double f[FQH_LIMBS], other[FQH_LIMBS];
    u32 l[FQH_LIMBS];
};

FN fqh_window fqh_no_window()
{
    fqh_window w;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = w.other[j] = 0, w.l[j] = 0;
    return w;
}

// + a b, b a limb and its word.
FN void fqh_window_row(fqh_window& w, const fqh& a, double b, u32 word)
{
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = hybrid_fma(a.d[j], b, w.f[j]);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[j] = hybrid_mad(a.l[j], word, w.l[j]);
}

// The same in the other doubles, which move with it.
FN void fqh_window_other_row(fqh_window& w, const fqh& a, double b, u32 word)
{
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) w.other[j] = hybrid_fma(a.d[j], b, w.other[j + 1]);
    w.other[FQH_LIMBS - 1] = hybrid_mul2(a.d[FQH_LIMBS - 1], b);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[j] = hybrid_mad(a.l[j], word, w.l[j]);
}

// Splits the lowest column, whose double is `f`, and moves the window.
FN void fqh_window_eliminate(fqh_window& w, double f)
{
    u32 carry, high;
    const u32 word = w.l[0];
    const double m = hybrid_split<fq_hybrid>(f, word, carry, high);
    w.f[0] = hybrid_fma(m, FQH_M[0], hybrid_fma(f, fq_hybrid::BELOW, w.f[1]));
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.f[j] = hybrid_fma(m, FQH_M[j], w.f[j + 1]);
    w.f[FQH_LIMBS - 1] = hybrid_mul2(m, FQH_M[FQH_LIMBS - 1]);
    w.l[0] = hybrid_mad(word, fq_hybrid::m_low(0), w.l[1] + carry);
    UNROLL for (int j = 1; j < FQH_LIMBS - 1; j++) w.l[j] = hybrid_mad(word, fq_hybrid::m_low(j), w.l[j + 1]);
    w.l[FQH_LIMBS - 1] = word * fq_hybrid::m_low(FQH_LIMBS - 1);
}

// The same for the last row, a Montgomery step. Returns the upper columns; `other` are those of the other doubles.
FN fqh_columns fqh_window_end(fqh_window& w, double f)
{
    fqh_columns c = hybrid_no_columns<fq_hybrid>();
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) c.f[FQH_LIMBS - 1 + j] = w.f[j], c.l[FQH_LIMBS - 1 + j] = w.l[j];
    hybrid_eliminate(c, FQH_LIMBS - 1, f);
    return c;
}

// The columns of a b / R, one part each.
struct fqh2_columns {
    fqh_columns c0, c1;
};

FN fqh2 fqh2_columns_end(fqh2_columns& w)
{
    fqh2 r;
    r.c0 = hybrid_columns_end(w.c0), r.c1 = hybrid_columns_end(w.c1);
    return r;
}

FN fqh2_columns fqh2_columns_mul(const fqh2& a, const fqh2_ref& b)
{
    fqh_window w0 = fqh_no_window(), w1 = w0;
    fqh2_columns r;
    ROLLED for (int i = 0;; i++) {
        const double b0 = b.c0.limbs[i * b.c0.stride], b1 = b.c1.limbs[i * b.c1.stride];
        const u32 word0 = hybrid_limb_word(b0), word1 = hybrid_limb_word(b1);
        fqh_window_row(w0, a.c0, b0, word0), fqh_window_row(w1, a.c1, b0, word0);
        fqh_window_other_row(w1, a.c0, b1, word1), fqh_window_other_row(w0, a.c1, -b1, 0 - word1);
        const double f0 = hybrid_add2(w0.f[0], w0.other[0]), f1 = hybrid_add2(w1.f[0], w1.other[0]);
        if (i == FQH_LIMBS - 1) {
            r.c0 = fqh_window_end(w0, f0), r.c1 = fqh_window_end(w1, f1);
            break;
        }
        fqh_window_eliminate(w0, f0), fqh_window_eliminate(w1, f1);
    }
    UNROLL for (int j = 1; j < FQH_LIMBS; j++) {
        double &f0 = r.c0.f[FQH_LIMBS - 1 + j], &f1 = r.c1.f[FQH_LIMBS - 1 + j];
        f0 = hybrid_add2(f0, w0.other[j]), f1 = hybrid_add2(f1, w1.other[j]);
    }
    return r;
}

// a b / R, both parts normalised and below 0.6 p.
FN fqh2 fqh2_mul(const fqh2& a, const fqh2_ref& b)
{
    fqh2_columns w = fqh2_columns_mul(a, b);
    return fqh2_columns_end(w);
}

// a^2 / R = (a0 + a1)(a0 - a1) + 2 a0 a1 u, for normalised parts: a limb of a is in memory, all of it twice used.
FN fqh2 fqh2_sqr(const fqh2_ref& a)
{
    const fqh a0 = hybrid_get(a.c0), a1 = hybrid_get(a.c1);
    const fqh sum = hybrid_half_normalise(hybrid_sub(a0, hybrid_cneg(a1, true)));
    fqh_window w0 = fqh_no_window(), w1 = w0;
    fqh2_columns r;
    ROLLED for (int i = 0;; i++) {
        const double b0 = a.c0.limbs[i * a.c0.stride], b1 = a.c1.limbs[i * a.c1.stride];
        const double difference = hybrid_add2(b0, -b1), twice = hybrid_add2(b0, b0);
        fqh_window_row(w0, sum, difference, hybrid_limb_word(difference));
        fqh_window_row(w1, a1, twice, hybrid_limb_word(twice));
        if (i == FQH_LIMBS - 1) {
            r.c0 = fqh_window_end(w0, w0.f[0]), r.c1 = fqh_window_end(w1, w1.f[0]);
            break;
        }
        fqh_window_eliminate(w0, w0.f[0]), fqh_window_eliminate(w1, w1.f[0]);
    }
    return fqh2_columns_end(r);
}
