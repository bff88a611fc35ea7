// Batches of affine additions (g1_batch.cuh) in the hybrid form. Sums are packed (fqh_pack) and negated, -x and -y: then a
// difference x_q - x_p is a sum of whole numbers (fqh_unpack_sum). They are kept below 1.1 p; the identity is all zero.
#pragma once
#include "fq_hybrid_words.cuh"
#include "g1_batch.cuh"

struct g1_batch_hybrid {
    // What a lane keeps in shared memory.
    enum { RUN, INVERSE, SLOPE, ADDEND, OLD_X, SHARED };

    double* limbs;
    int stride;
    fqh run;

    // Limbs are `stride` apart.
    FN_MEMBER g1_batch_hybrid(double* limbs, int stride) : limbs(limbs), stride(stride) {}

    FN_MEMBER static g1_packed pack(const affine<g1>& q)
    {
        g1_packed p;
        u32 high[FQH_LIMBS - 1];
        fqh_pack(p.x, fqh_small(-1, fqh_unpack64(q.x), high), high);
        fqh_pack(p.y, fqh_small(-1, fqh_unpack64(q.y), high), high);
        if (is_identity(q)) UNROLL for (int i = 0; i < FQ_WORDS; i++) p.x[i] = p.y[i] = 0;
        return p;
    }
    FN_MEMBER static affine<g1> unpack(const g1_packed& p)
    {
        affine<g1> q;
        u32 any = 0;
        UNROLL for (int i = 0; i < FQ_WORDS; i++) any |= p.x[i] | p.y[i];
        q.x = q.y = fq_zero();
        if (any == 0) return q;
        q.x = fqh_to_fq(fqh_small(-1, fqh_unpack(p.x))), q.y = fqh_to_fq(fqh_small(-1, fqh_unpack(p.y)));
        return q;
    }

    // Before the first forward step.
    FN_MEMBER void begin() { run = fqh_one(); }

    // What has no slope, or may have none as single words tell (a few in 2^24 pairs), is made at once. `ahead` comes with this
    // step's numbers and leaves with the next one's.
    template <class S>
    FN_MEMBER void forward(const S& step, g1_ahead& ahead)
    {
        const fqh d = fqh_unpack_sum(ahead.x, ahead.point, false);
        const bool special = fqh_maybe_zero(d) || ahead.x[0] == 0 || ahead.point.v[0] == 0;
        step.next_forward(ahead.x, ahead.point);
        if (warp_any(special)) g1_add_alone<g1_batch_hybrid>(step, special);
        if (special) return;
        u32 t[FQ_WORDS];
        fqh_pack(t, run);
        step.set_product(t);
        run = fqh_mul(d, run);
    }

    // Between the last forward step and the first backward one.
    FN_MEMBER void turn() { fqh_set(at(RUN), fqh_from_fq(fq_inv(fqh_to_fq(run)))); }

    // Steps come in the opposite order. `product` comes with this step's words and leaves with the next one's. The four
    // products are one piece of code, in a loop: all of it unrolled finds less room in the instruction cache.
    template <class S>
    FN_MEMBER void backward(const S& step, u32* product)
    {
        u32 t[FQ_WORDS], high[FQH_LIMBS - 1];
        UNROLL for (int i = 0; i < FQ_WORDS; i++) t[i] = product[i];
        if (t[FQ_WORDS - 1] == G1_MADE) return step.next_backward(product);
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
                    fqh_set(at(OLD_X), x);
                    // x_q + x_p = (x_q - x_p) - 2 (-x_p)
                    fqh_set(at(ADDEND), fqh_sub(a, fqh_sub(x, fqh_cneg(x, true))));
                    step.sum_y(t);
                    other = step.point_y();
                    negate = step.negate();
                }
            } else {
                // -x = -slope^2 + x_q + x_p
                fqh_columns w = fqh_columns_sqr(fqh_get(at(SLOPE)), true);
                const fqh addend = fqh_get(at(ADDEND));
                fqh_columns_add(w, 1, addend);
                fqh_columns_settle(w, -addend.d[FQH_LIMBS - 1]);
                const fqh x = fqh_columns_end(w, high);
                u32 packed[FQ_WORDS];
                fqh_pack(packed, x, high);
                step.set_sum_x(packed);
                a = fqh_half_normalise(fqh_sub(fqh_get(at(OLD_X)), x));
                step.next_backward(product);
            }
            // The reciprocal, the run without this difference, the slope, and slope (-x_p - -x).
            fqh_columns w = fqh_columns_mul(a, fqh_get(at(i == 0 ? RUN : i - 1)));
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
            fqh_set(at(i == 2 ? SLOPE : 1 - i), result);
        }
    }

    FN_MEMBER fqh_ref at(int element)
    {
        fqh_ref r;
        r.limbs = limbs + element * FQH_LIMBS * stride, r.stride = stride;
        return r;
    }
};
