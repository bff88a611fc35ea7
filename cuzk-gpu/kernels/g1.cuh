// Points of G1 (y^2 = x^3 + 4) and, with the same formulas over Fq2, of G2. Neither needs the curve's constant.
//
// Affine points are x, y; the identity is (0, 0). XYZZ points are X, Y, ZZ, ZZZ with x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2; the
// identity has ZZ = ZZZ = 0. Formulas: Explicit-Formulas Database, "XYZZ coordinates" (madd-2008-s, add-2008-s,
// dbl-2008-s-1, mdbl-2008-s-1). Every function is exact for all inputs: identities, equal and opposite points.
#pragma once
#include "fq2.cuh"
#include "warp.cuh"

// The field operations by overload, so that the formulas are written once.
struct g1 {
    typedef fq field;
};
struct g2 {
    typedef fq2 field;
};
FN fq f_mul(const fq& a, const fq& b) { return fq_mul(a, b); }
FN fq f_sqr(const fq& a) { return fq_sqr(a); }
FN fq f_add(const fq& a, const fq& b) { return fq_add(a, b); }
FN fq f_sub(const fq& a, const fq& b) { return fq_sub(a, b); }
FN fq f_cneg(const fq& a, bool negate) { return fq_cneg(a, negate); }
FN fq f_inv(const fq& a) { return fq_inv(a); }
FN bool f_is_zero(const fq& a) { return fq_is_zero(a); }
FN void f_load(fq& a, const void* from) { a = fq_load(from); }
FN void f_store(void* to, const fq& a) { fq_store(to, a); }
FN void f_set_one(fq& a) { a = fq_one(); }
FN void f_set_zero(fq& a) { a = fq_zero(); }
FN fq2 f_mul(const fq2& a, const fq2& b) { return fq2_mul(a, b); }
FN fq2 f_sqr(const fq2& a) { return fq2_sqr(a); }
FN fq2 f_add(const fq2& a, const fq2& b) { return fq2_add(a, b); }
FN fq2 f_sub(const fq2& a, const fq2& b) { return fq2_sub(a, b); }
FN fq2 f_cneg(const fq2& a, bool negate) { return fq2_cneg(a, negate); }
FN fq2 f_inv(const fq2& a) { return fq2_inv(a); }
FN bool f_is_zero(const fq2& a) { return fq2_is_zero(a); }
FN void f_load(fq2& a, const void* from) { a = fq2_load(from); }
FN void f_store(void* to, const fq2& a) { fq2_store(to, a); }
FN void f_set_one(fq2& a) { a = fq2_make(fq_one(), fq_zero()); }
FN void f_set_zero(fq2& a) { a = fq2_make(fq_zero(), fq_zero()); }

template <class F>
struct affine_point {
    F x, y;
};

template <class F>
struct xyzz_point {
    F x, y, zz, zzz;
};

// The points of a group G of {g1, g2}.
template <class G>
using affine = affine_point<typename G::field>;
template <class G>
using xyzz = xyzz_point<typename G::field>;

template <class F>
FN bool is_identity(const affine_point<F>& p)
{
    return f_is_zero(p.x) && f_is_zero(p.y);
}

template <class F>
FN bool is_identity(const xyzz_point<F>& p)
{
    return f_is_zero(p.zz);
}

template <class F>
FN void set_identity(xyzz_point<F>& p)
{
    f_set_zero(p.x), f_set_zero(p.y), f_set_zero(p.zz), f_set_zero(p.zzz);
}

template <class F>
FN void set_identity(affine_point<F>& p)
{
    f_set_zero(p.x), f_set_zero(p.y);
}

template <class F>
FN void set_affine(xyzz_point<F>& p, const affine_point<F>& q)
{
    if (is_identity(q)) return set_identity(p);
    p.x = q.x, p.y = q.y;
    f_set_one(p.zz), f_set_one(p.zzz);
}

// 2p: 6 products and 3 squares. There is no point of order 2, and the identity comes out as itself.
template <class F>
FN void point_double(xyzz_point<F>& p)
{
    const F u = f_add(p.y, p.y);
    const F v = f_sqr(u), w = f_mul(u, v), s = f_mul(p.x, v);
    const F xx = f_sqr(p.x), m = f_add(f_add(xx, xx), xx);
    p.x = f_sub(f_sub(f_sqr(m), s), s);
    p.y = f_sub(f_mul(m, f_sub(s, p.x)), f_mul(w, p.y));
    p.zz = f_mul(v, p.zz);
    p.zzz = f_mul(w, p.zzz);
}

// The end that both additions share: p = (u1, s1) + (u1 + h, s1 + r), all over p's zz and zzz.
template <class F>
FN void point_add_slope(xyzz_point<F>& p, const F& u1, const F& s1, const F& h, const F& r)
{
    const F hh = f_sqr(h), hhh = f_mul(h, hh), q = f_mul(u1, hh);
    p.x = f_sub(f_sub(f_sub(f_sqr(r), hhh), q), q);
    p.y = f_sub(f_mul(r, f_sub(q, p.x)), f_mul(s1, hhh));
    p.zz = f_mul(p.zz, hh);
    p.zzz = f_mul(p.zzz, hhh);
}

// The end of an addition that may have been special: `sum` is the formula's result, of equal points if `same`. All lanes of a
// warp come here together, so that functions of Fq2, which may be calls, are never called by a part of it (see warp_any).
// Opposite points need nothing: their h = 0 makes the identity.
template <class F>
FN void point_add_same(xyzz_point<F>& sum, const xyzz_point<F>& p, bool same)
{
    if (!warp_any(same)) return;
    xyzz_point<F> twice = p;
    point_double(twice);
    if (same) sum = twice;
}

// p += q: 8 products and 2 squares.
template <class F>
FN void point_add(xyzz_point<F>& p, const affine_point<F>& q)
{
    const F h = f_sub(f_mul(q.x, p.zz), p.x), r = f_sub(f_mul(q.y, p.zzz), p.y);
    xyzz_point<F> sum = p;
    point_add_slope(sum, p.x, p.y, h, r);
    const bool first = is_identity(p), nothing = is_identity(q);
    point_add_same(sum, p, f_is_zero(h) && f_is_zero(r) && !first && !nothing);
    if (first) set_affine(sum, q);
    if (!nothing) p = sum;
}

// p += q: 12 products and 2 squares.
template <class F>
FN void point_add(xyzz_point<F>& p, const xyzz_point<F>& q)
{
    const F u1 = f_mul(p.x, q.zz), s1 = f_mul(p.y, q.zzz);
    const F h = f_sub(f_mul(q.x, p.zz), u1), r = f_sub(f_mul(q.y, p.zzz), s1);
    xyzz_point<F> sum;
    sum.zz = f_mul(p.zz, q.zz), sum.zzz = f_mul(p.zzz, q.zzz);
    point_add_slope(sum, u1, s1, h, r);
    const bool first = is_identity(p), nothing = is_identity(q);
    point_add_same(sum, p, f_is_zero(h) && f_is_zero(r) && !first && !nothing);
    if (first) sum = q;
    if (!nothing) p = sum;
}

// q = p, by one reciprocal: 1/ZZZ times ZZ is 1/Z, the square of that 1/ZZ. The identity's is 0, which gives (0, 0).
template <class F>
FN void make_affine(affine_point<F>& q, const xyzz_point<F>& p)
{
    const F zzz = f_inv(p.zzz), z = f_mul(p.zz, zzz);
    q.x = f_mul(p.x, f_sqr(z));
    q.y = f_mul(p.y, zzz);
}

template <class F>
FN void point_load(affine_point<F>& p, const void* from)
{
    f_load(p.x, from), f_load(p.y, (const char*)from + sizeof(F));
}

template <class F>
FN void point_store(void* to, const affine_point<F>& p)
{
    f_store(to, p.x), f_store((char*)to + sizeof(F), p.y);
}

template <class F>
FN void point_load(xyzz_point<F>& p, const void* from)
{
    const char* bytes = (const char*)from;
    f_load(p.x, bytes), f_load(p.y, bytes + sizeof(F));
    f_load(p.zz, bytes + 2 * sizeof(F)), f_load(p.zzz, bytes + 3 * sizeof(F));
}

template <class F>
FN void point_store(void* to, const xyzz_point<F>& p)
{
    char* bytes = (char*)to;
    f_store(bytes, p.x), f_store(bytes + sizeof(F), p.y);
    f_store(bytes + 2 * sizeof(F), p.zz), f_store(bytes + 3 * sizeof(F), p.zzz);
}
