// Batches of affine additions on G1, one reciprocal a batch (Montgomery's trick): 5 products and a square an addition, and a
// share of the reciprocal's 40 products or so. Forward, a lane multiplies the differences of its additions up and keeps the
// products; backward, it turns their reciprocal into one for each addition.
//
// Written for two forms of Fq: g1_batch_integer.cuh, g1_batch_hybrid.cuh; g1_batch_form.cuh takes the one that suits the
// architecture. Points that are added are in blst's form. Sums are packed as the form likes.
//
// Where an addition's numbers are is told by an `S`, cheap to copy:
//   void sum_x(u32*), sum_y(u32*)                               to read 12 words of the sum,
//   void set_sum_x(const u32*), set_sum_y(..), set_product(..)  to write them, and the product of the differences before this,
//   fq point_x(), point_y(); bool negate()                      the point, and whether its negative is meant,
//   void next_forward(u32* sum_x, fq& point_x)                  to read what the next forward step begins with, ahead of time,
//   void next_backward(u32* product)                            and the next backward step (or anything, if there is none).
#pragma once
#include "g1.cuh"
#include "warp.cuh"

// Written instead of a product where the sum is already made: no packed element has such a top word.
#define G1_MADE 0x7fffffffu

struct g1_packed {
    u32 x[FQ_WORDS], y[FQ_WORDS];
};

// What a forward step begins with: the words of its sum's x, and its point's x.
struct g1_ahead {
    u32 x[FQ_WORDS];
    fq point;
};

template <class S>
FN g1_packed g1_sum(const S& step)
{
    g1_packed p;
    step.sum_x(p.x), step.sum_y(p.y);
    return p;
}

template <class S>
FN void g1_set_sum(const S& step, const g1_packed& p)
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

// The sum by itself, exact in every case, for a form of sums F. Nothing if not `needed`.
template <class F, class S>
RARE void g1_add_alone(S step, bool needed)
{
    if (!needed) return;
    affine<g1> q;
    q.x = step.point_x(), q.y = fq_cneg(step.point_y(), step.negate());
    g1_set_sum(step, F::pack(affine_add(F::unpack(g1_sum(step)), q)));
    u32 made[FQ_WORDS];
    UNROLL for (int i = 0; i < FQ_WORDS; i++) made[i] = G1_MADE;
    step.set_product(made);
}
