// Batches of affine additions (g1_batch.cuh) in the hybrid form. Sums are packed (hybrid_pack) and negated, -x and -y: then a
// difference x_q - x_p is a sum of whole numbers (fqh_unpack_sum). They are kept below 1.1 p; the identity is all zero.
#pragma once
#include "fq_hybrid.cuh"
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
        hybrid_pack(p.x, hybrid_small(-1, hybrid_unpack_shifted<fq_hybrid>(q.x), high), high);
        hybrid_pack(p.y, hybrid_small(-1, hybrid_unpack_shifted<fq_hybrid>(q.y), high), high);
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
        q.x = hybrid_to(hybrid_small(-1, hybrid_unpack<fq_hybrid>(p.x)));
        q.y = hybrid_to(hybrid_small(-1, hybrid_unpack<fq_hybrid>(p.y)));
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
        hybrid_pack(t, run);
        step.set_product(t);
        run = hybrid_mul(d, run);
    }

    // Between the last forward step and the first backward one.
    FN_MEMBER void turn() { hybrid_set(at(RUN), fqh_from_fq(fq_inv(hybrid_to(run)))); }

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
                    const fqh x = hybrid_unpack<fq_hybrid>(t);
                    hybrid_set(at(OLD_X), x);
                    // x_q + x_p = (x_q - x_p) - 2 (-x_p)
                    hybrid_set(at(ADDEND), hybrid_sub(a, hybrid_sub(x, hybrid_cneg(x, true))));
                    step.sum_y(t);
                    other = step.point_y();
                    negate = step.negate();
                }
            } else {
                // -x = -slope^2 + x_q + x_p
                fqh_columns w = hybrid_columns_sqr(hybrid_get(at(SLOPE)), true);
                const fqh addend = hybrid_get(at(ADDEND));
                hybrid_columns_add(w, 1, addend);
                hybrid_columns_settle(w, -addend.d[FQH_LIMBS - 1]);
                const fqh x = hybrid_columns_end(w, high);
                u32 packed[FQ_WORDS];
                hybrid_pack(packed, x, high);
                step.set_sum_x(packed);
                a = hybrid_half_normalise(hybrid_sub(hybrid_get(at(OLD_X)), x));
                step.next_backward(product);
            }
            // The reciprocal, the run without this difference, the slope, and slope (-x_p - -x).
            fqh_columns w = hybrid_columns_mul(a, hybrid_get(at(i == 0 ? RUN : i - 1)));
            if (i == 3) {
                // -y = slope (-x_p - -x) - -y_p
                const fqh y = hybrid_unpack<fq_hybrid>(t);
                hybrid_columns_add(w, -1, y);
                hybrid_columns_settle(w, y.d[FQH_LIMBS - 1]);
            }
            const fqh result = hybrid_columns_end(w, high);
            if (i == 3) {
                hybrid_pack(t, result, high);
                step.set_sum_y(t);
                return;
            }
            hybrid_set(at(i == 2 ? SLOPE : 1 - i), result);
        }
    }

    FN_MEMBER fqh_ref at(int element)
    {
        fqh_ref r;
        r.limbs = limbs + element * FQH_LIMBS * stride, r.stride = stride;
        return r;
    }
};
