// Every operation of the fields and curves that is checked: on the device by field_check.cu, on the host by
// host_mirror.cpp. OP(name, words of a, words of b, words of the result, what is done with the pointers a, b and out).
#pragma once
#include "fr.cuh"
#include "fq2_hybrid.cuh"
#include "fr_hybrid.cuh"
#include "g1_batch_hybrid.cuh"
#include "g1_batch_integer.cuh"
#include "g1_hybrid.cuh"

// Limbs of 64 bits each, with signs: to reach values that no element in memory has.
template <class F>
FN hybrid<F> limbs_load(const u32* from)
{
    hybrid<F> r;
    UNROLL for (int j = 0; j < F::LIMBS; j++) {
        const u64 limb = (u64)from[2 * j + 1] << 32 | from[2 * j];
        r.d[j] = (double)(i64)limb * HYBRID_SCALE, r.l[j] = (u32)limb;
    }
    return r;
}
template <class F>
FN void limbs_store(u32* to, const hybrid<F>& a)
{
    UNROLL for (int j = 0; j < F::LIMBS; j++) {
        const u64 limb = (u64)(i64)(a.d[j] * 0x1p16);
        // The word is kept beside the double, and the two must agree.
        to[2 * j] = (u32)limb == a.l[j] ? (u32)limb : 0xdbdbdbdb;
        to[2 * j + 1] = (u32)(limb >> 32);
    }
}

FN fqh fqh_limbs(const u32* from) { return limbs_load<fq_hybrid>(from); }
FN frh frh_limbs(const u32* from) { return limbs_load<fr_hybrid>(from); }

FN fqh fqh_load(const void* from) { return fqh_from_fq(fq_load(from)); }
FN fqh fqh_load_shifted(const void* from) { return hybrid_unpack_shifted<fq_hybrid>(fq_load(from)); }
FN void fqh_store(void* to, const fqh& a) { fq_store(to, hybrid_to(hybrid_small(1, a))); }
template <class F>
FN hybrid<F> hybrid_repack(const hybrid<F>& a)
{
    u32 t[F::WORDS];
    hybrid_pack(t, a);
    return hybrid_unpack<F>(t);
}
// a + b, or a - b, from memory.
FN fqh fqh_sum(const void* a, const void* b, bool negate)
{
    u32 t[FQ_WORDS];
    hybrid_pack(t, fqh_load(a));
    return fqh_unpack_sum(t, fq_load(b), negate);
}
// a b + 2 a - b.
template <class F>
FN hybrid<F> hybrid_mul_add(const hybrid<F>& a, const hybrid<F>& b)
{
    hybrid_columns<F> w = hybrid_columns_mul(a, b);
    hybrid_columns_add(w, 2, a);
    hybrid_columns_add(w, -1, b);
    hybrid_columns_settle(w, b.d[F::LIMBS - 1] - 2 * a.d[F::LIMBS - 1]);
    return hybrid_columns_end(w);
}
// -a^2, packed on the way.
template <class F>
FN hybrid<F> hybrid_negative_sqr(const hybrid<F>& a)
{
    u32 t[F::WORDS], high[F::LIMBS - 1];
    hybrid_columns<F> w = hybrid_columns_sqr(a, true);
    const hybrid<F> r = hybrid_columns_end(w, high);
    hybrid_pack(t, r, high);
    return hybrid_unpack<F>(t);
}
FN fqh fqh_half_difference(const fqh& a, const fqh& b) { return hybrid_half_normalise(hybrid_sub(a, b)); }
// a b + b (a - b).
FN fqh fqh_mul_two(const fqh& a, const fqh& b)
{
    fqh_columns w = hybrid_columns_mul2(a, b, b, fqh_half_difference(a, b));
    return hybrid_columns_end(w);
}

FN fqh2 fqh2_load(const u32* from)
{
    fqh2 r;
    r.c0 = fqh_load(from), r.c1 = fqh_load(from + FQ_WORDS);
    return r;
}
FN void fqh2_store(u32* to, const fqh2& a) { fqh_store(to, a.c0), fqh_store(to + FQ_WORDS, a.c1); }
FN fqh2 limbs2_load(const u32* from)
{
    fqh2 r;
    r.c0 = fqh_limbs(from), r.c1 = fqh_limbs(from + 2 * FQH_LIMBS);
    return r;
}
FN void limbs2_store(u32* to, const fqh2& a) { limbs_store(to, a.c0), limbs_store(to + 2 * FQH_LIMBS, a.c1); }
// Through memory of this thread alone.
FN fqh2 fqh2_mul_of(const fqh2& a, const fqh2& b)
{
    double limbs[2][FQH_LIMBS];
    const fqh2_ref ref = {{limbs[0], 1}, {limbs[1], 1}};
    fqh2_set(ref, b);
    return fqh2_mul(a, ref);
}
FN fqh2 fqh2_sqr_of(const fqh2& a)
{
    double limbs[2][FQH_LIMBS];
    const fqh2_ref ref = {{limbs[0], 1}, {limbs[1], 1}};
    fqh2_set(ref, a);
    return fqh2_sqr(ref);
}

FN void add_hybrid(const u32* a, const u32* b, u32* out)
{
    double limbs[G1H_ELEMENTS * FQH_LIMBS];
    const g1h sum = {limbs, 1};
    xyzz<g1> p;
    point_load(p, a);
    g1h_set(sum, p);
    // Once as it is; once more and back.
    g1h_add(sum, b, false), g1h_add(sum, b, false), g1h_add(sum, b, true);
    point_store(out, g1h_get(sum));
}

struct step_of_one {
    u32 *sum, *last;
    const u32* point;
    bool minus;
    FN_MEMBER static void copy(u32* to, const u32* from) { UNROLL for (int i = 0; i < FQ_WORDS; i++) to[i] = from[i]; }
    FN_MEMBER void sum_x(u32* to) const { copy(to, sum); }
    FN_MEMBER void sum_y(u32* to) const { copy(to, sum + FQ_WORDS); }
    FN_MEMBER void set_sum_x(const u32* from) const { copy(sum, from); }
    FN_MEMBER void set_sum_y(const u32* from) const { copy(sum + FQ_WORDS, from); }
    FN_MEMBER void set_product(const u32* from) const { copy(last, from); }
    FN_MEMBER fq point_x() const { return fq_load(point); }
    FN_MEMBER fq point_y() const { return fq_load(point + FQ_WORDS); }
    FN_MEMBER bool negate() const { return minus; }
    FN_MEMBER void next_forward(u32*, fq&) const {}
    FN_MEMBER void next_backward(u32*) const {}
};
// a + 2 b - b. The second addition finds a sum, which is kept in a wider range than what the first one finds.
template <class B>
FN void add_batch(const u32* a, const u32* b, u32* out)
{
    double limbs[(B::SHARED + 1) * FQH_LIMBS];
    B batch(limbs, 1);
    affine<g1> p;
    point_load(p, a);
    g1_packed sum = B::pack(p);
    u32 product[FQ_WORDS];
    step_of_one step = {sum.x, product, b, false};
    for (int round = 0; round < 3; round++) {
        step.minus = round == 2;
        g1_ahead ahead;
        step.sum_x(ahead.x), ahead.point = step.point_x();
        batch.begin();
        batch.forward(step, ahead);
        batch.turn();
        batch.backward(step, product);
    }
    point_store(out, B::unpack(sum));
}

template <class P, class Q>
FN void add_points(const u32* a, const u32* b, u32* out)
{
    P p;
    Q q;
    point_load(p, a), point_load(q, b);
    point_add(p, q);
    point_store(out, p);
}
template <class P>
FN void double_point(const u32* a, u32* out)
{
    P p;
    point_load(p, a);
    point_double(p);
    point_store(out, p);
}

FN fr fr_at(const u32* words, u32 i = 0) { return fr_load((const uint4*)words, i); }
FN void fr_put(u32* words, u32 i, const fr& a) { fr_store((uint4*)words, i, a); }
FN frh frh_load(const u32* words) { return frh_from_fr(fr_at(words)); }
FN frh frh_load_shifted(const u32* words) { return hybrid_unpack_shifted<fr_hybrid>(fr_at(words)); }
FN void frh_store(u32* words, const frh& a) { fr_put(words, 0, hybrid_to(hybrid_small(1, a))); }
// (a - b)(b - a), the differences as they are.
FN frh frh_differences(const frh& a, const frh& b) { return hybrid_mul(hybrid_sub(a, b), hybrid_sub(b, a)); }
FN void fr_loose_sums(const fr& a, const fr& b, u32* out)
{
    fr_put(out, 0, fr_add_loose(a, b));
    fr_put(out, 1, fr_sub_loose(a, b));
}
FN void fr_exact_sums(const fr& a, const fr& b, u32* out)
{
    fr_put(out, 0, fr_add_exact(a, b));
    fr_put(out, 1, fr_sub_loose(a, b));
}
FN void fr_make_constant(const fr& m, u32* out)
{
    const fr_constant c = fr_constant_from_montgomery(m);
    fr_put(out, 0, c.w);
    fr_put(out, 1, c.quotient);
}

#define FIELD_OPS(OP)                                                                                                  \
    OP(fq_mul, 12, 12, 12, fq_store(out, fq_mul(fq_load(a), fq_load(b))))                                              \
    OP(fq_sqr, 12, 12, 12, fq_store(out, fq_sqr(fq_load(a))))                                                          \
    OP(fq_add, 12, 12, 12, fq_store(out, fq_add(fq_load(a), fq_load(b))))                                              \
    OP(fq_sub, 12, 12, 12, fq_store(out, fq_sub(fq_load(a), fq_load(b))))                                              \
    OP(fq_neg, 12, 12, 12, fq_store(out, fq_neg(fq_load(a))))                                                          \
    OP(fq_inv, 12, 12, 12, fq_store(out, fq_inv(fq_load(a))))                                                          \
    OP(fq2_mul, 24, 24, 24, fq2_store(out, fq2_mul(fq2_load(a), fq2_load(b))))                                         \
    OP(fq2_sqr, 24, 24, 24, fq2_store(out, fq2_sqr(fq2_load(a))))                                                      \
    OP(fq2_add, 24, 24, 24, fq2_store(out, fq2_add(fq2_load(a), fq2_load(b))))                                         \
    OP(fq2_sub, 24, 24, 24, fq2_store(out, fq2_sub(fq2_load(a), fq2_load(b))))                                         \
    OP(fq2_inv, 24, 24, 24, fq2_store(out, fq2_inv(fq2_load(a))))                                                      \
    OP(fqh_mul, 12, 12, 12, fqh_store(out, hybrid_mul(fqh_load(a), fqh_load(b))))                                      \
    OP(fqh_sqr, 12, 12, 12, fqh_store(out, hybrid_sqr(fqh_load(a))))                                                   \
    OP(fqh_sub, 12, 12, 12, fqh_store(out, hybrid_sub(hybrid_repack(fqh_load(a)), fqh_load(b))))                       \
    OP(fqh_neg, 12, 12, 12, fqh_store(out, hybrid_cneg(fqh_load(a), true)))                                            \
    OP(fqh_mul_unpacked, 12, 12, 12, fqh_store(out, hybrid_mul(fqh_load_shifted(a), fqh_load(b))))                     \
    OP(fqh_mul_add, 12, 12, 12, fqh_store(out, hybrid_mul_add(fqh_load(a), fqh_load(b))))                              \
    OP(fqh_negative_sqr, 12, 12, 12, fqh_store(out, hybrid_negative_sqr(fqh_load(a))))                                 \
    OP(fqh_mul_two, 12, 12, 12, fqh_store(out, fqh_mul_two(fqh_load(a), fqh_load(b))))                                 \
    OP(fqh_packed_sum, 12, 12, 12, fqh_store(out, fqh_sum(a, b, false)))                                               \
    OP(fqh_packed_difference, 12, 12, 12, fqh_store(out, fqh_sum(a, b, true)))                                         \
    OP(fqh2_mul, 24, 24, 24, fqh2_store(out, fqh2_mul_of(fqh2_load(a), fqh2_load(b))))                                 \
    OP(fqh2_sqr, 24, 24, 24, fqh2_store(out, fqh2_sqr_of(fqh2_load(a))))                                               \
    OP(limbs_mul, 20, 20, 20, limbs_store(out, hybrid_mul(fqh_limbs(a), fqh_limbs(b))))                                \
    OP(limbs_sqr, 20, 20, 20, limbs_store(out, hybrid_sqr(fqh_limbs(a))))                                              \
    OP(limbs_mul_two, 20, 20, 20, limbs_store(out, fqh_mul_two(fqh_limbs(a), fqh_limbs(b))))                           \
    OP(limbs_half_normalise_sub, 20, 20, 20, limbs_store(out, fqh_half_difference(fqh_limbs(a), fqh_limbs(b))))        \
    OP(limbs2_mul, 40, 40, 40, limbs2_store(out, fqh2_mul_of(limbs2_load(a), limbs2_load(b))))                         \
    OP(limbs2_sqr, 40, 40, 40, limbs2_store(out, fqh2_sqr_of(limbs2_load(a))))                                         \
    OP(fr_mul, 8, 8, 8, fr_put(out, 0, fr_mul(fr_at(a), fr_at(b))))                                                    \
    OP(fr_add, 8, 8, 8, fr_put(out, 0, fr_add(fr_at(a), fr_at(b))))                                                    \
    OP(fr_sub, 8, 8, 8, fr_put(out, 0, fr_sub(fr_at(a), fr_at(b))))                                                    \
    OP(fr_constant, 8, 8, 16, fr_make_constant(fr_at(a), out))                                                         \
    OP(fr_mul_constant, 8, 8, 8, fr_put(out, 0, fr_mul_constant(fr_at(a), fr_constant_from_montgomery(fr_at(b)))))     \
    OP(fr_mul_loose, 8, 8, 8, fr_put(out, 0, fr_mul_loose(fr_at(b), fr_at(a))))                                        \
    OP(fr_canonical, 8, 8, 8, fr_put(out, 0, fr_canonical(fr_at(a))))                                                  \
    OP(fr_loose, 8, 8, 16, fr_loose_sums(fr_at(a), fr_at(b), out))                                                     \
    OP(fr_exact, 8, 8, 16, fr_exact_sums(fr_at(a), fr_at(b), out))                                                     \
    OP(frh_mul, 8, 8, 8, frh_store(out, hybrid_mul(frh_load(a), frh_load(b))))                                         \
    OP(frh_sqr, 8, 8, 8, frh_store(out, hybrid_sqr(frh_load(a))))                                                      \
    OP(frh_sub, 8, 8, 8, frh_store(out, hybrid_sub(hybrid_repack(frh_load(a)), frh_load(b))))                          \
    OP(frh_mul_unpacked, 8, 8, 8, frh_store(out, hybrid_mul(frh_load_shifted(a), frh_load(b))))                        \
    OP(frh_mul_add, 8, 8, 8, frh_store(out, hybrid_mul_add(frh_load(a), frh_load(b))))                                 \
    OP(frh_negative_sqr, 8, 8, 8, frh_store(out, hybrid_negative_sqr(frh_load(a))))                                    \
    OP(frh_limbs_mul, 14, 14, 14, limbs_store(out, hybrid_mul(frh_limbs(a), frh_limbs(b))))                            \
    OP(frh_limbs_sqr, 14, 14, 14, limbs_store(out, hybrid_sqr(frh_limbs(a))))                                          \
    OP(frh_limbs_differences, 14, 14, 14, limbs_store(out, frh_differences(frh_limbs(a), frh_limbs(b))))               \
    OP(frh_limbs_to_fr, 14, 14, 8, fr_put(out, 0, hybrid_to(frh_limbs(a))))                                            \
    OP(g1_add_mixed, 48, 24, 48, (add_points<xyzz<g1>, affine<g1>>(a, b, out)))                                        \
    OP(g1_add, 48, 48, 48, (add_points<xyzz<g1>, xyzz<g1>>(a, b, out)))                                                \
    OP(g1_add_hybrid, 48, 24, 48, add_hybrid(a, b, out))                                                               \
    OP(g1_add_batch_integer, 24, 24, 24, add_batch<g1_batch_integer>(a, b, out))                                       \
    OP(g1_add_batch_hybrid, 24, 24, 24, add_batch<g1_batch_hybrid>(a, b, out))                                         \
    OP(g1_double, 48, 48, 48, double_point<xyzz<g1>>(a, out))                                                          \
    OP(g2_add_mixed, 96, 48, 96, (add_points<xyzz<g2>, affine<g2>>(a, b, out)))                                        \
    OP(g2_add, 96, 96, 96, (add_points<xyzz<g2>, xyzz<g2>>(a, b, out)))                                                \
    OP(g2_double, 96, 96, 96, double_point<xyzz<g2>>(a, out))
