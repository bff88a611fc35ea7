// Batches of affine additions (g1_batch.cuh) in the integer form: sums are packed in blst's form.
#pragma once
#include "g1_batch.cuh"

struct g1_batch_integer {
    static const int SHARED = 0; // elements of shared memory a lane

    fq run;

    FN_MEMBER g1_batch_integer(double*, int) {}

    FN_MEMBER static g1_packed pack(const affine<g1>& q)
    {
        g1_packed p;
        UNROLL for (int i = 0; i < FQ_WORDS; i++) p.x[i] = q.x.v[i], p.y[i] = q.y.v[i];
        return p;
    }
    FN_MEMBER static affine<g1> unpack(const g1_packed& p)
    {
        affine<g1> q;
        q.x = element(p.x), q.y = element(p.y);
        return q;
    }

    // Before the first forward step.
    FN_MEMBER void begin() { run = fq_one(); }

    // `ahead` comes with this step's numbers and leaves with the next one's.
    template <class S>
    FN_MEMBER void forward(const S& step, g1_ahead& ahead)
    {
        const fq x = element(ahead.x), xq = ahead.point, d = fq_sub(xq, x);
        const bool special = fq_is_zero(d) || fq_is_zero(x) || fq_is_zero(xq);
        step.next_forward(ahead.x, ahead.point);
        if (warp_any(special)) g1_add_alone<g1_batch_integer>(step, special);
        if (special) return;
        step.set_product(run.v);
        run = fq_mul(d, run);
    }

    // Between the last forward step and the first backward one.
    FN_MEMBER void turn() { run = fq_inv(run); }

    // Steps come in the opposite order. `product` comes with this step's words and leaves with the next one's.
    template <class S>
    FN_MEMBER void backward(const S& step, u32* product)
    {
        const fq before = element(product);
        step.next_backward(product);
        if (before.v[FQ_WORDS - 1] == G1_MADE) return;
        u32 t[FQ_WORDS];
        step.sum_x(t);
        const fq x = element(t), xq = step.point_x(), inverse = fq_mul(before, run);
        run = fq_mul(fq_sub(xq, x), run);
        step.sum_y(t);
        const fq y = element(t);
        const fq slope = fq_mul(fq_sub(fq_cneg(step.point_y(), step.negate()), y), inverse);
        const fq sum = fq_sub(fq_sub(fq_sqr(slope), x), xq);
        step.set_sum_x(sum.v);
        step.set_sum_y(fq_sub(fq_mul(slope, fq_sub(x, sum)), y).v);
    }

    FN_MEMBER static fq element(const u32* words)
    {
        fq r;
        UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = words[i];
        return r;
    }
};
