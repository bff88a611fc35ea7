// Every operation of the fields and curves that is checked: on the device by field_check.cu, on the host by host_mirror.cpp.
// OP(name, words of a, words of b, words of the result, what is done with the pointers a, b and out).
#pragma once
#include "fr.cuh"
#include "g1_hybrid_affine.cuh"

// Ten limbs of 64 bits each, with signs: to reach values that no element in memory has.
FN fqh limbs_load(const u32* from)
{
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) {
        const u64 limb = (u64)from[2 * j + 1] << 32 | from[2 * j];
        r.d[j] = (double)(i64)limb * FQH_SCALE, r.l[j] = (u32)limb;
    }
    return r;
}
FN void limbs_store(u32* to, const fqh& a)
{
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) {
        const u64 limb = (u64)(i64)(a.d[j] * 0x1p16);
        // The word is kept beside the double, and the two must agree.
        to[2 * j] = (u32)limb == a.l[j] ? (u32)limb : 0xdbdbdbdb;
        to[2 * j + 1] = (u32)(limb >> 32);
    }
}

FN fqh fqh_load(const void* from) { return fqh_from_fq(fq_load(from)); }
FN void fqh_store(void* to, const fqh& a) { fq_store(to, fqh_to_fq(a)); }
FN fqh fqh_repack(const fqh& a)
{
    u32 t[FQ_WORDS];
    fqh_pack(t, a);
    return fqh_unpack(t);
}
// a b + a - b.
FN fqh fqh_mul_add_sub(const fqh& a, const fqh& b)
{
    fqh_wide w = fqh_wide_mul(a, b);
    fqh_wide_add(w, a);
    fqh_wide_sub(w, b);
    return fqh_reduce(w);
}

// Through memory of this thread alone.
FN fqh fqh_rows_of(const fqh& a, const fqh& b)
{
    double limbs[FQH_LIMBS];
    const fqh_ref ref = {limbs, 1};
    fqh_set(ref, b);
    return fqh_mul_rows(a, ref);
}
// a b + b (a - b).
FN fqh fqh_rows_two(const fqh& a, const fqh& b)
{
    double limbs[2][FQH_LIMBS];
    const fqh_ref first = {limbs[0], 1}, second = {limbs[1], 1};
    fqh_set(first, b), fqh_set(second, fqh_normalise(fqh_sub(a, b)));
    fqh_rows w = fqh_rows_mul2(a, first, b, second);
    return fqh_rows_end(w);
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

struct batch_of_one {
    u32 *sum, *point, *product;
    FN_MEMBER static void copy(u32* to, const u32* from) { UNROLL for (int i = 0; i < FQ_WORDS; i++) to[i] = from[i]; }
    FN_MEMBER void sum_x(u32, u32* to) const { copy(to, sum); }
    FN_MEMBER void sum_y(u32, u32* to) const { copy(to, sum + FQ_WORDS); }
    FN_MEMBER void point_x(u32, u32* to) const { copy(to, point); }
    FN_MEMBER void point_y(u32, u32* to) const { copy(to, point + FQ_WORDS); }
    FN_MEMBER void prefix(u32, u32* to) const { copy(to, product); }
    FN_MEMBER void set_sum_x(u32, const u32* from) const { copy(sum, from); }
    FN_MEMBER void set_sum_y(u32, const u32* from) const { copy(sum + FQ_WORDS, from); }
    FN_MEMBER void set_prefix(u32, const u32* from) const { copy(product, from); }
};
FN void add_affine(const u32* a, const u32* b, u32* out)
{
    double limbs[G1H_BATCH_ELEMENTS * FQH_LIMBS];
    const g1h room = {limbs, 1};
    affine<g1> p, q;
    point_load(p, a), point_load(q, b);
    g1h_packed sum = g1h_pack(p), point = g1h_pack(q);
    u32 product[FQ_WORDS];
    const batch_of_one batch = {sum.x, point.x, product};
    g1h_batch_add(batch, 1, room);
    // Twice, since a sum is kept in a wider range than a point of the base.
    g1h_batch_add(batch, 1, room);
    point_store(out, g1h_unpack(sum));
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
    OP(fqh_mul, 12, 12, 12, fqh_store(out, fqh_mul(fqh_load(a), fqh_load(b))))                                         \
    OP(fqh_sqr, 12, 12, 12, fqh_store(out, fqh_sqr(fqh_load(a))))                                                      \
    OP(fqh_sub, 12, 12, 12, fqh_store(out, fqh_mul(fqh_repack(fqh_normalise(fqh_sub(fqh_load(a), fqh_load(b)))), fqh_one()))) \
    OP(fqh_neg, 12, 12, 12, fqh_store(out, fqh_repack(fqh_normalise(fqh_cneg(fqh_load(a), true)))))                    \
    OP(fqh_mul_unpacked, 12, 12, 12, fqh_store(out, fqh_mul(fqh_unpack64(fq_load(a)), fqh_load(b))))                     \
    OP(fqh_mul_add_sub, 12, 12, 12,                                                                                    \
       fqh_store(out, fqh_mul(fqh_mul_add_sub(fqh_load(a), fqh_load(b)), fqh_one())))                                  \
    OP(fqh_rows_two, 12, 12, 12, fqh_store(out, fqh_rows_two(fqh_load(a), fqh_load(b))))                               \
    OP(limbs_rows, 20, 20, 20, limbs_store(out, fqh_rows_of(limbs_load(a), limbs_load(b))))                            \
    OP(limbs_mul, 20, 20, 20, limbs_store(out, fqh_mul(limbs_load(a), limbs_load(b))))                                 \
    OP(limbs_sqr, 20, 20, 20, limbs_store(out, fqh_sqr(limbs_load(a))))                                                \
    OP(limbs_normalise_sub, 20, 20, 20, limbs_store(out, fqh_normalise(fqh_sub(limbs_load(a), limbs_load(b)))))        \
    OP(fr_mul, 8, 8, 8, fr_put(out, 0, fr_mul(fr_at(a), fr_at(b))))                                                    \
    OP(fr_add, 8, 8, 8, fr_put(out, 0, fr_add(fr_at(a), fr_at(b))))                                                    \
    OP(fr_sub, 8, 8, 8, fr_put(out, 0, fr_sub(fr_at(a), fr_at(b))))                                                    \
    OP(fr_constant, 8, 8, 16, fr_make_constant(fr_at(a), out))                                                         \
    OP(fr_mul_constant, 8, 8, 8, fr_put(out, 0, fr_mul_constant(fr_at(a), fr_constant_from_montgomery(fr_at(b)))))     \
    OP(fr_mul_loose, 8, 8, 8, fr_put(out, 0, fr_mul_loose(fr_at(b), fr_at(a))))                                        \
    OP(fr_canonical, 8, 8, 8, fr_put(out, 0, fr_canonical(fr_at(a))))                                                  \
    OP(fr_loose, 8, 8, 16, fr_loose_sums(fr_at(a), fr_at(b), out))                                                     \
    OP(fr_exact, 8, 8, 16, fr_exact_sums(fr_at(a), fr_at(b), out))                                                     \
    OP(g1_add_mixed, 48, 24, 48, (add_points<xyzz<g1>, affine<g1>>(a, b, out)))                                        \
    OP(g1_add, 48, 48, 48, (add_points<xyzz<g1>, xyzz<g1>>(a, b, out)))                                                \
    OP(g1_add_hybrid, 48, 24, 48, add_hybrid(a, b, out))                                                               \
    OP(g1_add_affine_twice, 24, 24, 24, add_affine(a, b, out))                                                         \
    OP(g1_double, 48, 48, 48, double_point<xyzz<g1>>(a, out))                                                          \
    OP(g2_add_mixed, 96, 48, 96, (add_points<xyzz<g2>, affine<g2>>(a, b, out)))                                        \
    OP(g2_add, 96, 96, 96, (add_points<xyzz<g2>, xyzz<g2>>(a, b, out)))                                                \
    OP(g2_double, 96, 96, 96, double_point<xyzz<g2>>(a, out))
