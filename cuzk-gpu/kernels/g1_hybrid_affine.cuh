// Batches of affine additions on G1 in the hybrid form, one reciprocal a batch (Montgomery's trick): 5 products and a square
// an addition, and a share of the reciprocal's 40 products or so.
//
// Sums in memory are packed (fqh_pack) and negated, -x and -y in 48 bytes each: then a difference x_q - x_p is a sum of whole
// numbers (fqh_unpack_sum). The identity is all zero. They are kept below 1.1 p. Points that are added are in blst's form.
//
// Where an addition's numbers are is told by an `S`, cheap to copy:
//   void sum_x(u32*), sum_y(u32*), product(u32*)                to read 12 words: the sum, and the product of the differences
//                                                               before this one,
//   void set_sum_x(const u32*), set_sum_y(..), set_product(..)  to write them,
//   fq point_x(), point_y(); bool negate()                      the point, and whether its negative is meant.
#pragma once
#include "g1_hybrid.cuh"

// Written instead of a product where the sum is already made. (The top word of an element is below 2^30 in absolute value.)
#define G1H_MADE 0x7fffffffu

struct g1h_packed {
    u32 x[FQ_WORDS], y[FQ_WORDS];
};

// Packed and negated, of a point in blst's form.
FN g1h_packed g1h_pack(const affine<g1>& q)
{
    g1h_packed p;
    u32 high[FQH_LIMBS - 1];
    fqh_pack(p.x, fqh_small(-1, fqh_unpack64(q.x), high), high);
    fqh_pack(p.y, fqh_small(-1, fqh_unpack64(q.y), high), high);
    if (is_identity(q)) UNROLL for (int i = 0; i < FQ_WORDS; i++) p.x[i] = p.y[i] = 0;
    return p;
}

// Back to blst's form.
FN affine<g1> g1h_unpack(const g1h_packed& p)
{
    affine<g1> q;
    u32 any = 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) any |= p.x[i] | p.y[i];
    q.x = q.y = fq_zero();
    if (any == 0) return q;
    q.x = fqh_to_fq(fqh_small(-1, fqh_unpack(p.x))), q.y = fqh_to_fq(fqh_small(-1, fqh_unpack(p.y)));
    return q;
}

template <class S>
FN g1h_packed g1h_sum(const S& step)
{
    g1h_packed p;
    step.sum_x(p.x), step.sum_y(p.y);
    return p;
}

template <class S>
FN void g1h_set_sum(const S& step, const g1h_packed& p)
{
    step.set_sum_x(p.x), step.set_sum_y(p.y);
}

// p + q for points that are affine, exact in every case.
FN affine<g1> affine_add(const affine<g1>& p, const affine<g1>& q)
{
    if (is_identity(p)) return q;
    if (is_identity(q)) return p;
    affine<g1> sum;
    sum.x = sum.y = fq_zero();
    fq rise = fq_sub(q.y, p.y), run = fq_sub(q.x, p.x);
    if (fq_is_zero(run)) {
        if (!fq_is_zero(rise)) return sum;
        const fq xx = fq_sqr(p.x);
        rise = fq_add(fq_double(xx), xx), run = fq_double(p.y);
    }
    const fq slope = fq_mul(rise, fq_inv(run));
    sum.x = fq_sub(fq_sub(fq_sqr(slope), p.x), q.x);
    sum.y = fq_sub(fq_mul(slope, fq_sub(p.x, sum.x)), p.y);
    return sum;
}

// The sum by itself, exact in every case. Nothing if not `needed`.
template <class S>
RARE void g1h_add_alone(S step, bool needed)
{
    if (!needed) return;
    affine<g1> q;
    q.x = step.point_x(), q.y = fq_cneg(step.point_y(), step.negate());
    g1h_set_sum(step, g1h_pack(affine_add(g1h_unpack(g1h_sum(step)), q)));
    u32 made[FQ_WORDS];
    UNROLL for (int i = 0; i < FQ_WORDS; i++) made[i] = G1H_MADE;
    step.set_product(made);
}

// Forward: keeps the product of the differences so far, `run`, and multiplies it by this addition's. What has no slope, or may
// have none as single words tell (a few in 2^24 pairs), is made at once.
template <class S>
FN void g1h_forward(const S& step, fqh& run)
{
    u32 t[FQ_WORDS];
    step.sum_x(t);
    const fq xq = step.point_x();
    const fqh d = fqh_unpack_sum(t, xq, false);
    const bool special = fqh_maybe_zero(d) || t[0] == 0 || xq.v[0] == 0;
    if (warp_any(special)) g1h_add_alone(step, special);
    if (special) return;
    fqh_pack(t, run);
    step.set_product(t);
    run = fqh_mul(d, run);
}

// The reciprocal.
FN fqh g1h_reciprocal(const fqh& a) { return fqh_from_fq(fq_inv(fqh_to_fq(a))); }

// Room in shared memory for a lane.
enum { G1H_RUN, G1H_INVERSE, G1H_SLOPE, G1H_ADDEND, G1H_OLD_X, G1H_BATCH_ELEMENTS };

// Backward: the reciprocal of this addition's difference from that of the product of all up to it, which is at G1H_RUN in
// `room`, and with it the sum. The four products are one piece of code, in a loop: all of it, unrolled, does not fit the
// instruction cache (3.9 instead of G additions/s on an H200).
template <class S>
FN void g1h_backward(const S& step, const g1h& room)
{
    u32 t[FQ_WORDS], high[FQH_LIMBS - 1];
    step.product(t);
    if (t[FQ_WORDS - 1] == G1H_MADE) return;
    fq other = fq_zero();
    bool negate = false;
    ROLLED for (int i = 0;; i++) {
        fqh a;
        if (i < 3) {
            // The product before this, x_q - x_p, and +-y_q - y_p.
            a = fqh_unpack_sum(t, other, negate);
            if (i == 0) {
                step.sum_x(t);
                other = step.point_x();
            } else if (i == 1) {
                const fqh x = fqh_unpack(t);
                fqh_set(g1h_at(room, G1H_OLD_X), x);
                // x_q + x_p = (x_q - x_p) - 2 (-x_p)
                fqh_set(g1h_at(room, G1H_ADDEND), fqh_sub(a, fqh_sub(x, fqh_cneg(x, true))));
                step.sum_y(t);
                other = step.point_y();
                negate = step.negate();
            }
        } else {
            // -x = -slope^2 + x_q + x_p
            fqh_columns w = fqh_columns_sqr(fqh_get(g1h_at(room, G1H_SLOPE)), true);
            const fqh addend = fqh_get(g1h_at(room, G1H_ADDEND));
            fqh_columns_add(w, 1, addend);
            fqh_columns_settle(w, -addend.d[FQH_LIMBS - 1]);
            const fqh x = fqh_columns_end(w, high);
            u32 packed[FQ_WORDS];
            fqh_pack(packed, x, high);
            step.set_sum_x(packed);
            a = fqh_half_normalise(fqh_sub(fqh_get(g1h_at(room, G1H_OLD_X)), x));
        }
        // The reciprocal, the run without this difference, the slope, and slope (-x_p - -x).
        fqh_columns w = fqh_columns_mul(a, fqh_get(g1h_at(room, i == 0 ? G1H_RUN : i - 1)));
        if (i == 3) {
            // -y = slope (-x_p - -x) - -y_p
            const fqh y = fqh_unpack(t);
            fqh_columns_add(w, -1, y);
            fqh_columns_settle(w, y.d[FQH_LIMBS - 1]);
        }
        const fqh result = fqh_columns_end(w, high);
        if (i == 3) {
            fqh_pack(t, result, high);
            step.set_sum_y(t);
            return;
        }
        fqh_set(g1h_at(room, i == 2 ? G1H_SLOPE : 1 - i), result);
    }
}
