// Points from the bytes of a parameter file to the form of kernels, and checks of them.
//
// Bytes: uncompressed as Zcash's convention has it. Coordinates are big-endian numbers below p, in Fq2 with the
// imaginary part first; the identity is 0x40 and zeros. Form of kernels: affine points of g1.cuh, the identity zeros.
// The first fault of a list is kept as index 2^8 + kind: an atomic minimum, done only for points that have one.
#define FQ2_FN static __device__ __noinline__ // inlined, the formulas of G2 take the compiler minutes
#include "g1.cuh"

// Kinds of faults, in the order in which a point is looked at. The same numbers are in src/cuda/points/convert.rs.
#define POINTS_ENCODING 0
#define POINTS_IDENTITY 1
#define POINTS_CURVE 2
#define POINTS_SUBGROUP 3

#define POINTS_THREADS 128

FN void points_report(u64* first_fault, u64 index, u32 kind) { atomicMin(first_fault, index << 8 | kind); }

// 2^768 mod p: times that is Montgomery form.
CONSTANT u32 POINTS_RR[FQ_WORDS] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
                                    0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
// 4, a cube root of one (the one by which z^2 P = (BETA x, -y) on G1), and (1 + u)^-((p-1)/3) = CX u and
// (1 + u)^-((p-1)/2) = CY0 + CY1 u, the constants of Frobenius' map on G2, all in Montgomery form.
CONSTANT u32 POINTS_FOUR[FQ_WORDS] = {0x000cfff3, 0xaa270000, 0xfc34000a, 0x53cc0032, 0x6b0a807f, 0x478fe97a,
                                      0xe6ba24d7, 0xb1d37ebe, 0xbf78ab2f, 0x8ec9733b, 0x3d83de7e, 0x09d64551};
CONSTANT u32 POINTS_BETA[FQ_WORDS] = {0x798a64e8, 0x30f1361b, 0x7ece5a2a, 0xf3b8ddab, 0xc61577f7, 0x16a8ca3a,
                                      0x74fd029b, 0xc26a2ff8, 0x60701c6e, 0x3636b766, 0x241b6160, 0x051ba4ab};
CONSTANT u32 POINTS_CX[FQ_WORDS] = {0x867545c3, 0x890dc9e4, 0x3285a5d5, 0x2af32253, 0x309b7e2c, 0x50880866,
                                    0x7e881024, 0xa20d1b8c, 0xe2db9068, 0x14e4f04f, 0x1564853a, 0x14e56d3f};
CONSTANT u32 POINTS_CY0[FQ_WORDS] = {0xa55c9ad1, 0x3e2f585d, 0x86c18183, 0x4294213d, 0x8b623732, 0x382844c8,
                                     0x19103e18, 0x92ad2afd, 0xac7cf0b9, 0x1d794e4f, 0x7d825ec8, 0x0bd592fc};
CONSTANT u32 POINTS_CY1[FQ_WORDS] = {0x5aa30fda, 0x7bcfa7a2, 0x2a927e7c, 0xdc17dec1, 0x6b4ebef1, 0x2f088dd8,
                                     0xda74d4a7, 0xd1ca2087, 0x96cebc1d, 0x2da25966, 0xbbfd87d2, 0x0e2b7eed};

FN fq points_constant(const u32* words)
{
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = words[i];
    return r;
}

// A number of 48 big-endian bytes, 16-byte aligned.
FN fq points_number(const uint4* bytes)
{
    const fq words = fq_load(bytes);
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = __byte_perm(words.v[FQ_WORDS - 1 - i], 0, 0x0123);
    return r;
}

// A thread a point: a product of Fq for each 48 bytes, which are read and written once. `from` and `to` may be equal.
template <class G>
FN void points_convert(const uint4* from, uint4* to, u32 len, u64 first_index, u32 refuse_identity, u64* first_fault)
{
    const u32 parts = sizeof(affine<G>) / sizeof(fq), words = 3 * parts;
    const u32 i = blockIdx.x * POINTS_THREADS + threadIdx.x;
    if (i >= len) return;
    fq part[parts];
    UNROLL for (u32 k = 0; k < parts; k++) part[k] = points_number(from + (u64)i * words + 3 * k);
    u32 rest = 0;
    UNROLL for (u32 k = 0; k < parts; k++) {
        UNROLL for (u32 j = 0; j < FQ_WORDS; j++) rest |= k == 0 && j == FQ_WORDS - 1 ? 0 : part[k].v[j];
    }
    const u32 top = part[0].v[FQ_WORDS - 1];
    if (rest == 0 && top == 0x40000000) {
        part[0].v[FQ_WORDS - 1] = 0;
        if (refuse_identity) points_report(first_fault, first_index + i, POINTS_IDENTITY);
    }
    // Any flag makes the first number too large. Zeros without the flag must not become an identity.
    bool valid = (rest | top) != 0;
    UNROLL for (u32 k = 0; k < parts; k++) valid &= fq_eq(part[k], fq_reduce_once(part[k]));
    if (!valid) points_report(first_fault, first_index + i, POINTS_ENCODING);
    const fq rr = points_constant(POINTS_RR);
    UNROLL for (u32 k = 0; k < parts; k++) {
        const u32 place = parts == 2 ? k : k ^ 1;
        fq_store(to + (u64)i * words + 3 * place, fq_mul(part[k], rr));
    }
}

FN void points_add_b(fq& a) { a = fq_add(a, points_constant(POINTS_FOUR)); }
FN void points_add_b(fq2& a) { points_add_b(a.c0), points_add_b(a.c1); }

// y^2 = x^3 + b, for converted points; identities pass. Whole warps stay together, and threads past the end look at the
// last point again.
template <class G>
FN void points_check_curve(const char* points, u32 len, u64 first_index, u64* first_fault)
{
    const u32 i = min(blockIdx.x * POINTS_THREADS + threadIdx.x, len - 1);
    affine<G> p;
    point_load(p, points + (u64)i * sizeof(p));
    typename G::field right = f_mul(f_sqr(p.x), p.x);
    points_add_b(right);
    const bool on_curve = f_is_zero(f_sub(f_sqr(p.y), right));
    if (!on_curve && !is_identity(p)) points_report(first_fault, first_index + i, POINTS_CURVE);
}

// What a multiple of p must be for p to be in the group (Scott, "A note on group membership tests for G1, G2 and GT on
// BLS pairing-friendly curves", 2021): an endomorphism acts as a power of the curve's parameter z on the group alone.
// On G1 z^2 p = (BETA x, -y), on G2 -z p = (CX u conj(x), -(CY0 + CY1 u) conj(y)).
struct points_factor {
    u64 high, low;
};
FN points_factor points_group_factor(const affine<g1>&) { return {0xac45a4010001a402, 0x0000000100000000}; }
FN points_factor points_group_factor(const affine<g2>&) { return {0, 0xd201000000010000}; }
FN affine<g1> points_image(const affine<g1>& p) { return {fq_mul(p.x, points_constant(POINTS_BETA)), fq_neg(p.y)}; }
FN affine<g2> points_image(const affine<g2>& p)
{
    const fq2 x = {p.x.c0, fq_neg(p.x.c1)}, y = {fq_neg(p.y.c0), p.y.c1};
    const fq2 cx = {fq_zero(), points_constant(POINTS_CX)};
    const fq2 cy = {points_constant(POINTS_CY0), points_constant(POINTS_CY1)};
    return {fq2_mul(x, cx), fq2_mul(y, cy)};
}

// For converted points on the curve; identities pass. The bits of the factor from the highest: on G1 127 doublings and
// 16 additions, on G2 63 and 5. Where the formula of an addition fails the multiple is the identity or p or -p, so the
// order of p is small: ZZ becomes zero, stays it, and p is refused. Whole warps stay together, as in points_check_curve.
template <class G>
FN void points_check_subgroup(const char* points, u32 len, u64 first_index, u64* first_fault)
{
    const u32 i = min(blockIdx.x * POINTS_THREADS + threadIdx.x, len - 1);
    affine<G> p;
    point_load(p, points + (u64)i * sizeof(p));
    const points_factor factor = points_group_factor(p);
    xyzz<G> multiple;
    set_affine(multiple, p);
    const int top = factor.high != 0 ? 127 : 63;
    for (int bit = top - 1; bit >= 0; bit--) {
        point_double(multiple);
        const u64 word = bit >= 64 ? factor.high : factor.low;
        if ((word >> (bit & 63) & 1) == 0) continue;
        const typename G::field h = f_sub(f_mul(p.x, multiple.zz), multiple.x);
        point_add_slope(multiple, multiple.x, multiple.y, h, f_sub(f_mul(p.y, multiple.zzz), multiple.y));
    }
    const affine<G> image = points_image(p);
    const bool same_x = f_is_zero(f_sub(f_mul(image.x, multiple.zz), multiple.x));
    const bool same_y = f_is_zero(f_sub(f_mul(image.y, multiple.zzz), multiple.y));
    const bool in_group = same_x && same_y && !is_identity(multiple);
    if (!in_group && !is_identity(p)) points_report(first_fault, first_index + i, POINTS_SUBGROUP);
}

#define POINTS_KERNELS(G)                                                                                              \
    extern "C" __global__ void __launch_bounds__(POINTS_THREADS)                                                       \
        points_convert_##G(const uint4* from, uint4* to, u32 len, u64 first_index, u32 refuse_identity,                \
                           u64* first_fault)                                                                           \
    {                                                                                                                  \
        points_convert<G>(from, to, len, first_index, refuse_identity, first_fault);                                   \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(POINTS_THREADS)                                                       \
        points_check_curve_##G(const char* points, u32 len, u64 first_index, u64* first_fault)                         \
    {                                                                                                                  \
        points_check_curve<G>(points, len, first_index, first_fault);                                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(POINTS_THREADS)                                                       \
        points_check_subgroup_##G(const char* points, u32 len, u64 first_index, u64* first_fault)                      \
    {                                                                                                                  \
        points_check_subgroup<G>(points, len, first_index, first_fault);                                               \
    }
POINTS_KERNELS(g1)
POINTS_KERNELS(g2)
