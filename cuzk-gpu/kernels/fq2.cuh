// Fq2 = Fq[u]/(u^2 + 1) in the integer form of fq.cuh.
#pragma once
#include "fq_inv.cuh"

// How the large functions are compiled. A module with point formulas over Fq2 may define it as a call before it includes
// this: all inlined, those take the compiler minutes.
#ifndef FQ2_FN
#define FQ2_FN FN
#endif

struct fq2 {
    fq c0, c1;
};

FN fq2 fq2_make(const fq& c0, const fq& c1)
{
    fq2 r;
    r.c0 = c0, r.c1 = c1;
    return r;
}

FN bool fq2_is_zero(const fq2& a) { return fq_is_zero(a.c0) && fq_is_zero(a.c1); }
FN fq2 fq2_add(const fq2& a, const fq2& b) { return fq2_make(fq_add(a.c0, b.c0), fq_add(a.c1, b.c1)); }
FN fq2 fq2_sub(const fq2& a, const fq2& b) { return fq2_make(fq_sub(a.c0, b.c0), fq_sub(a.c1, b.c1)); }
FN fq2 fq2_cneg(const fq2& a, bool negate) { return fq2_make(fq_cneg(a.c0, negate), fq_cneg(a.c1, negate)); }

// Karatsuba: three products of Fq.
FQ2_FN fq2 fq2_mul(const fq2& a, const fq2& b)
{
    const fq aa = fq_mul(a.c0, b.c0), bb = fq_mul(a.c1, b.c1);
    const fq cross = fq_mul(fq_add(a.c0, a.c1), fq_add(b.c0, b.c1));
    return fq2_make(fq_sub(aa, bb), fq_sub(fq_sub(cross, aa), bb));
}

// (a0 + a1)(a0 - a1) + 2 a0 a1 u: two products.
FQ2_FN fq2 fq2_sqr(const fq2& a)
{
    const fq c0 = fq_mul(fq_add(a.c0, a.c1), fq_sub(a.c0, a.c1));
    return fq2_make(c0, fq_double(fq_mul(a.c0, a.c1)));
}

// (a0 - a1 u) / (a0^2 + a1^2).
FQ2_FN fq2 fq2_inv(const fq2& a)
{
    const fq norm = fq_inv(fq_add(fq_sqr(a.c0), fq_sqr(a.c1)));
    return fq2_make(fq_mul(a.c0, norm), fq_neg(fq_mul(a.c1, norm)));
}

FN fq2 fq2_load(const void* from) { return fq2_make(fq_load(from), fq_load((const char*)from + 48)); }
FN void fq2_store(void* to, const fq2& a)
{
    fq_store(to, a.c0);
    fq_store((char*)to + 48, a.c1);
}
