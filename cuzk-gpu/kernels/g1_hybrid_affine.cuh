// Batches of affine additions on G1 in the hybrid form, one reciprocal a batch (Montgomery's trick): 5 products and a square
// an addition, and a share of the reciprocal's 40 products or so.
//
// Points in memory are packed (fqh_pack): x and y in 48 bytes each, the identity all zero. Points of the base come from
// blst's form by g1h_pack and are below 0.52 p; sums are kept below 1.1 p.
#pragma once
#include "g1_hybrid.cuh"

struct g1h_packed {
    u32 x[FQ_WORDS], y[FQ_WORDS];
};

FN bool g1h_is_identity(const g1h_packed& p)
{
    u32 any = 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) any |= p.x[i] | p.y[i];
    return any == 0;
}

FN void g1h_set_identity(g1h_packed& p) { UNROLL for (int i = 0; i < FQ_WORDS; i++) p.x[i] = p.y[i] = 0; }

// From blst's form.
FN g1h_packed g1h_pack(const affine<g1>& q)
{
    g1h_packed p;
    fqh_pack(p.x, fqh_from_fq(q.x)), fqh_pack(p.y, fqh_from_fq(q.y));
    if (is_identity(q)) g1h_set_identity(p);
    return p;
}

// To blst's form.
FN affine<g1> g1h_unpack(const g1h_packed& p)
{
    affine<g1> q;
    q.x = q.y = fq_zero();
    if (g1h_is_identity(p)) return q;
    q.x = fqh_to_fq(fqh_mul(fqh_unpack(p.x), fqh_one())), q.y = fqh_to_fq(fqh_mul(fqh_unpack(p.y), fqh_one()));
    return q;
}

// Where a lane's sums, points and prefix products are. `B` has, by value and cheap to copy:
//   void sum_x(k, words), sum_y, point_x, point_y, prefix    to read 12 words of number k,
//   void set_sum_x(k, words), set_sum_y, set_prefix          to write them.
// What is read again is read from memory again: the caches have it, and registers are short.
template <class B>
FN g1h_packed g1h_sum(const B& memory, u32 k)
{
    g1h_packed p;
    memory.sum_x(k, p.x), memory.sum_y(k, p.y);
    return p;
}
template <class B>
FN g1h_packed g1h_point(const B& memory, u32 k)
{
    g1h_packed p;
    memory.point_x(k, p.x), memory.point_y(k, p.y);
    return p;
}
template <class B>
FN void g1h_set_sum(const B& memory, u32 k, const g1h_packed& p)
{
    memory.set_sum_x(k, p.x), memory.set_sum_y(k, p.y);
}

// What the sum of two points asks for.
enum g1h_pair { G1H_ADD, G1H_DOUBLE, G1H_FIRST, G1H_SECOND, G1H_NOTHING };

// G1H_ADD if not `needed`.
template <class B>
RARE g1h_pair g1h_pair_exact(B memory, u32 k, bool needed)
{
    if (!needed) return G1H_ADD;
    const g1h_packed p = g1h_sum(memory, k), q = g1h_point(memory, k);
    if (g1h_is_identity(q)) return G1H_FIRST;
    if (g1h_is_identity(p)) return G1H_SECOND;
    const affine<g1> a = g1h_unpack(p), b = g1h_unpack(q);
    if (!fq_eq(a.x, b.x)) return G1H_ADD;
    return fq_eq(a.y, b.y) ? G1H_DOUBLE : G1H_NOTHING;
}

// 2 y and 3 x^2: denominator and numerator of a tangent. Nothing if not `needed`.
template <class B>
RARE void g1h_tangent(B memory, u32 k, fqh_ref denominator, fqh_ref numerator, bool needed)
{
    if (!needed) return;
    const g1h_packed p = g1h_sum(memory, k);
    const fqh y = fqh_unpack(p.y), xx = fqh_sqr(fqh_unpack(p.x));
    fqh_set(denominator, fqh_normalise(fqh_sub(y, fqh_cneg(y, true))));
    fqh_set(numerator, fqh_normalise(fqh_sub(xx, fqh_cneg(fqh_normalise(fqh_sub(xx, fqh_cneg(xx, true))), true))));
}

// The kind of sum number k, and d, the denominator of its slope: x_q - x_p, or that of a tangent, whose numerator goes to
// `other`. Single words tell the plain case, which all but a few in 2^32 pairs are.
template <class B>
FN g1h_pair g1h_denominator(const B& memory, u32 k, fqh& d, const fqh_ref& slope, const fqh_ref& other)
{
    u32 xp[FQ_WORDS], xq[FQ_WORDS];
    memory.sum_x(k, xp), memory.point_x(k, xq);
    d = fqh_sub(fqh_unpack(xq), fqh_unpack(xp));
    const bool special = fqh_maybe_zero(d) || xp[0] == 0 || xq[0] == 0;
    if (!warp_any(special)) return G1H_ADD;
    const g1h_pair pair = g1h_pair_exact(memory, k, special);
    if (warp_any(pair == G1H_DOUBLE)) g1h_tangent(memory, k, slope, other, pair == G1H_DOUBLE);
    if (pair == G1H_DOUBLE) d = fqh_get(slope);
    return pair;
}

// The reciprocal, in place.
RARE void g1h_reciprocal(fqh_ref a) { fqh_set(a, fqh_from_fq(fq_inv(fqh_to_fq(fqh_get(a))))); }

// + k p, with the k that brings a sum with these top limbs to within p / 2.
FN void fqh_rows_settle(fqh_rows& w, double top)
{
    const double biased = fqh_fma(top, 0x1p16 / 872555476, 1.5 * 0x1p52);
    const double k = fqh_mul2(fqh_add2(biased, -1.5 * 0x1p52), FQH_SCALE);
    const u32 word = fqh_low(biased);
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[j] = fqh_fma(k, FQH_P[j], w.f[j]);
        w.l[j] = fqh_mad(word, fqh_p_low(j), w.l[j]);
    }
    w.top += word * fqh_p_low(FQH_LIMBS - 1);
}

// Room in shared memory for a lane: three elements.
#define G1H_BATCH_ELEMENTS 3

// sums[k] += points[k], k < count, for one lane.
template <class B>
FN void g1h_batch_add(const B& memory, u32 count, const g1h& room)
{
    const fqh_ref run = g1h_at(room, 0), slope = g1h_at(room, 1), other = g1h_at(room, 2);
    u32 words[FQ_WORDS];
    fqh d;
    fqh_set(run, fqh_one());
    ROLLED for (u32 k = 0; k < count; k++) {
        if (g1h_denominator(memory, k, d, slope, other) > G1H_DOUBLE) continue;
        fqh_pack(words, fqh_get(run));
        memory.set_prefix(k, words);
        fqh_set(run, fqh_mul_rows(d, run));
    }
    g1h_reciprocal(run);
    ROLLED for (u32 k = count; k-- > 0;) {
        const g1h_pair pair = g1h_denominator(memory, k, d, slope, other);
        if (pair > G1H_DOUBLE) {
            g1h_packed p = pair == G1H_SECOND ? g1h_point(memory, k) : g1h_sum(memory, k);
            if (pair == G1H_NOTHING) g1h_set_identity(p);
            g1h_set_sum(memory, k, p);
            continue;
        }
        memory.prefix(k, words);
        const fqh inverse = fqh_mul_rows(fqh_unpack(words), run);
        fqh_set(run, fqh_mul_rows(d, run));
        fqh_set(slope, inverse);
        {
            u32 yp[FQ_WORDS];
            memory.sum_y(k, yp), memory.point_y(k, words);
            d = fqh_sub(fqh_unpack(words), fqh_unpack(yp));
            if (pair == G1H_DOUBLE) d = fqh_get(other);
        }
        const fqh lambda = fqh_mul_rows(d, slope);
        fqh_set(slope, lambda);
        // x = lambda^2 - x_p - x_q
        fqh_rows w = fqh_rows_mul(lambda, slope);
        memory.point_x(k, words);
        const fqh xq = fqh_unpack(words);
        memory.sum_x(k, words);
        const fqh xp = fqh_unpack(words);
        fqh_rows_add(w, -1, xp), fqh_rows_add(w, -1, xq);
        fqh_rows_settle(w, fqh_add2(xp.d[FQH_LIMBS - 1], xq.d[FQH_LIMBS - 1]));
        const fqh x = fqh_rows_end(w);
        fqh_pack(words, x);
        memory.set_sum_x(k, words);
        // y = lambda (x_p - x) - y_p
        w = fqh_rows_mul(fqh_sub(xp, x), slope);
        memory.sum_y(k, words);
        const fqh yp = fqh_unpack(words);
        fqh_rows_add(w, -1, yp);
        fqh_rows_settle(w, yp.d[FQH_LIMBS - 1]);
        fqh_pack(words, fqh_rows_end(w));
        memory.set_sum_y(k, words);
    }
}
