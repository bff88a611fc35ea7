// Points of G1 in the hybrid form, whose coordinates lie in shared memory (see g1.cuh for formulas and coordinates).
#pragma once
#include "fq_hybrid.cuh"
#include "g1.cuh"
#include "warp.cuh"

// A point in XYZZ coordinates and room for two more numbers, one after the other, limbs `stride` apart.
struct g1h {
    double* limbs;
    int stride;
};
enum { G1H_X, G1H_Y, G1H_ZZ, G1H_ZZZ, G1H_H, G1H_R, G1H_ELEMENTS };

FN fqh_ref g1h_at(const g1h& p, int element)
{
    fqh_ref r;
    r.limbs = p.limbs + element * FQH_LIMBS * p.stride, r.stride = p.stride;
    return r;
}

FN void g1h_set(const g1h& p, const xyzz<g1>& q)
{
    hybrid_set(g1h_at(p, G1H_X), fqh_from_fq(q.x)), hybrid_set(g1h_at(p, G1H_Y), fqh_from_fq(q.y));
    hybrid_set(g1h_at(p, G1H_ZZ), fqh_from_fq(q.zz)), hybrid_set(g1h_at(p, G1H_ZZZ), fqh_from_fq(q.zzz));
}

// X and Y may be several p.
FN fq g1h_get_element(const g1h& p, int element) { return hybrid_to(hybrid_small(1, hybrid_get(g1h_at(p, element)))); }
FN xyzz<g1> g1h_get(const g1h& p)
{
    xyzz<g1> q;
    q.x = g1h_get_element(p, G1H_X), q.y = g1h_get_element(p, G1H_Y);
    q.zz = g1h_get_element(p, G1H_ZZ), q.zzz = g1h_get_element(p, G1H_ZZZ);
    return q;
}

FN affine<g1> g1h_load(const u32* q, bool negate)
{
    affine<g1> r;
    point_load(r, q);
    r.y = fq_cneg(r.y, negate);
    return r;
}

// g1h_add in the integer form, exact in every case; nothing if not `needed`. Its arguments are addresses, so that the
// caller's numbers stay in registers.
RARE void g1h_add_exact(g1h p, const u32* q, bool negate, bool needed)
{
    if (!needed) return;
    xyzz<g1> sum = g1h_get(p);
    point_add(sum, g1h_load(q, negate));
    g1h_set(p, sum);
}

// p += q, or -= if `negate`, for the affine q that is in memory in blst's form: 8 products, 2 squares. Whatever
// could be an identity, or a sum of equal or opposite points, is seen by single words and left to g1h_add_exact.
//
// |X| < 2.3 p, |Y| < 0.7 p, ZZ and ZZZ below 0.6 p, all normalised; a coordinate in the form 64 x is an operand only.
//
// 90 KB of code. Warps that run through it apart from each other do not find it in the instruction cache: let a multiprocessor's
// warps be one block that passes a barrier between additions (3.71 instead of 2.98 G additions/s on an H200).
FN void g1h_add(const g1h& p, const u32* q, bool negate)
{
    const fqh_ref x = g1h_at(p, G1H_X), y = g1h_at(p, G1H_Y), zz = g1h_at(p, G1H_ZZ), zzz = g1h_at(p, G1H_ZZZ);
    const fqh_ref th = g1h_at(p, G1H_H), tr = g1h_at(p, G1H_R);
    const fq xq = fq_load(q);
    fqh_columns w = hybrid_columns_mul(hybrid_unpack_shifted<fq_hybrid>(xq), hybrid_get(zz));
    hybrid_columns_add(w, -1, hybrid_get(x));
    const fqh h = hybrid_columns_end(w);
    const bool special = fqh_maybe_zero(h) || zz.limbs[0] == 0 || xq.v[0] == 0;
    if (warp_any(special)) g1h_add_exact(p, q, negate, special);
    if (special) return;
    hybrid_set(th, h);
    const fqh yq = hybrid_unpack_shifted<fq_hybrid>(fq_load(q + FQ_WORDS));
    w = hybrid_columns_mul(hybrid_cneg(yq, negate), hybrid_get(zzz));
    hybrid_columns_add(w, -1, hybrid_get(y));
    hybrid_set(tr, hybrid_columns_end(w));
    const fqh hh = hybrid_sqr(hybrid_get(th));
    hybrid_set(th, hybrid_mul(hh, hybrid_get(th))); // h^3 from here on
    hybrid_set(zz, hybrid_mul(hh, hybrid_get(zz)));
    hybrid_set(x, hybrid_mul(hh, hybrid_get(x))); // X h^2
    hybrid_set(zzz, hybrid_mul(hybrid_get(th), hybrid_get(zzz)));
    // X = r^2 - h^3 - 2 X h^2
    w = hybrid_columns_sqr(hybrid_get(tr), false);
    hybrid_columns_add(w, -1, hybrid_get(th));
    hybrid_columns_add(w, -2, hybrid_get(x));
    const fqh sum = hybrid_columns_end(w), difference = hybrid_half_normalise(hybrid_sub(hybrid_get(x), sum));
    // Y = r (X h^2 - X') - Y h^3
    w = hybrid_columns_mul2(difference, hybrid_get(tr), hybrid_cneg(hybrid_get(y), true), hybrid_get(th));
    hybrid_set(x, sum);
    hybrid_set(y, hybrid_columns_end(w));
}
