// Sums of points in the hybrid form: a module of its own, as field_bench_hybrid.cu is.
#include "g1_hybrid_affine.cuh"

#define POOL 512
#define THREADS 128
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

FN affine<g1> plain_point(const u32* points, u32 i)
{
    affine<g1> q;
    point_load(q, points + 2 * FQ_WORDS * i);
    return q;
}

#ifndef XYZZ_BLOCKS
#define XYZZ_BLOCKS 3
#endif
// As bench_g1_xyzz.
extern "C" __global__ void __launch_bounds__(THREADS, XYZZ_BLOCKS) bench_g1_xyzz_hybrid(const u32* pool, u32* out, u32 rounds)
{
    extern __shared__ double limbs[];
    const g1h sum = {limbs + threadIdx.x, THREADS};
    xyzz<g1> first;
    set_affine(first, plain_point(pool, THREAD % POOL));
    g1h_set(sum, first);
    for (u32 i = 1; i <= rounds; i++) g1h_add(sum, pool + 2 * FQ_WORDS * ((THREAD + i * 37) % POOL), false);
    point_store(out + 4 * FQ_WORDS * THREAD, g1h_get(sum));
}

// An addition of the bench below: number k of a lane. Sums and products are in global memory, in planes of 16 bytes a lane;
// points are those of the pool.
struct bench_step {
    const u32* pool;
    uint4* sums;     // [chain][6][lanes]
    uint4* products; // [chain][3][lanes]
    u32 lane, lanes, shift, k;

    FN_MEMBER static void get(u32* words, const uint4* from, u32 stride)
    {
        UNROLL for (int i = 0; i < 3; i++) {
            const uint4 w = from[i * stride];
            words[4 * i] = w.x, words[4 * i + 1] = w.y, words[4 * i + 2] = w.z, words[4 * i + 3] = w.w;
        }
    }
    FN_MEMBER static void put(uint4* to, u32 stride, const u32* words)
    {
        UNROLL for (int i = 0; i < 3; i++)
            to[i * stride] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    FN_MEMBER uint4* plane(uint4* planes, u32 number) const { return planes + (u64)lanes * number + lane; }
    FN_MEMBER const u32* pooled() const { return pool + 2 * FQ_WORDS * ((lane + shift + 41 * k) % POOL); }
    FN_MEMBER fq point_x() const { return fq_load(pooled()); }
    FN_MEMBER fq point_y() const { return fq_load(pooled() + FQ_WORDS); }
    FN_MEMBER bool negate() const { return (shift + k) & 1; }
    FN_MEMBER void sum_x(u32* words) const { get(words, plane(sums, 6 * k), lanes); }
    FN_MEMBER void sum_y(u32* words) const { get(words, plane(sums, 6 * k + 3), lanes); }
    FN_MEMBER void product(u32* words) const { get(words, plane(products, 3 * k), lanes); }
    FN_MEMBER void set_sum_x(const u32* words) const { put(plane(sums, 6 * k), lanes, words); }
    FN_MEMBER void set_sum_y(const u32* words) const { put(plane(sums, 6 * k + 3), lanes, words); }
    FN_MEMBER void set_product(const u32* words) const { put(plane(products, 3 * k), lanes, words); }
};

// Affine additions in batches: each thread has `chain` sums and adds `rounds` points of a pool to each, a batch a round. Sum k
// of lane t starts at point number t + 41 k mod 512, and in round r gets number t + 37 r + 41 k, its negative if r + k is odd.
// Memory: about 480 bytes an addition.
#ifndef AFFINE_BLOCKS
#define AFFINE_BLOCKS 3
#endif
extern "C" __global__ void __launch_bounds__(THREADS, AFFINE_BLOCKS)
    bench_g1_affine_hybrid(const u32* pool, uint4* sums, uint4* products, u32 chain, u32 rounds)
{
    extern __shared__ double limbs[];
    const g1h room = {limbs + threadIdx.x, THREADS};
    bench_step step = {pool, sums, products, THREAD, gridDim.x * THREADS, 0, 0};
    for (step.k = 0; step.k < chain; step.k++) {
        affine<g1> first;
        first.x = step.point_x(), first.y = step.point_y();
        g1h_set_sum(step, g1h_pack(first));
    }
    for (u32 round = 1; round <= rounds; round++) {
        step.shift = 37 * round;
        fqh run = fqh_one();
        ROLLED for (step.k = 0; step.k < chain; step.k++) g1h_forward(step, run);
        fqh_set(g1h_at(room, G1H_RUN), g1h_reciprocal(run));
        ROLLED for (step.k = chain; step.k-- > 0;) g1h_backward(step, room);
    }
}

// The sums above in blst's form, [chain][lanes] points.
extern "C" __global__ void __launch_bounds__(THREADS) g1_unpack_sums(const uint4* sums, u32* out, u32 chain)
{
    bench_step step = {0, (uint4*)sums, 0, THREAD, gridDim.x * THREADS, 0, 0};
    for (step.k = 0; step.k < chain; step.k++)
        point_store(out + 2 * FQ_WORDS * ((u64)step.lanes * step.k + THREAD), g1h_unpack(g1h_sum(step)));
}
