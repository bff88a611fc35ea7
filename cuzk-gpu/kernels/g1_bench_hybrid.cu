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

// As bench_g1_xyzz.
extern "C" __global__ void __launch_bounds__(THREADS, 3) bench_g1_xyzz_hybrid(const u32* pool, u32* out, u32 rounds)
{
    extern __shared__ double limbs[];
    const g1h sum = {limbs + threadIdx.x, THREADS};
    xyzz<g1> first;
    set_affine(first, plain_point(pool, THREAD % POOL));
    g1h_set(sum, first);
    for (u32 i = 1; i <= rounds; i++) g1h_add(sum, pool + 2 * FQ_WORDS * ((THREAD + i * 37) % POOL), false);
    point_store(out + 4 * FQ_WORDS * THREAD, g1h_get(sum));
}

// out[i] = points[i] packed, i < n: 96 bytes each.
extern "C" __global__ void __launch_bounds__(THREADS) g1_pack(const u32* points, u32* out, u32 n)
{
    if (THREAD >= n) return;
    const g1h_packed p = g1h_pack(plain_point(points, THREAD));
    UNROLL for (int i = 0; i < FQ_WORDS; i++) {
        out[2 * FQ_WORDS * THREAD + i] = p.x[i], out[2 * FQ_WORDS * THREAD + FQ_WORDS + i] = p.y[i];
    }
}

// The sums of a lane and its prefix products in global memory, in planes of 16 bytes a lane; its points from the pool.
struct bench_batch {
    const u32* pool;
    uint4* sums;     // [chain][6][lanes]
    uint4* prefixes; // [chain][3][lanes]
    u32 lane, lanes, shift;

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
    FN_MEMBER const uint4* pooled(u32 k) const
    {
        return (const uint4*)(pool + 2 * FQ_WORDS * ((lane + shift + 41 * k) % POOL));
    }
    FN_MEMBER void point_x(u32 k, u32* words) const { get(words, pooled(k), 1); }
    FN_MEMBER void point_y(u32 k, u32* words) const { get(words, pooled(k) + 3, 1); }
    FN_MEMBER void sum_x(u32 k, u32* words) const { get(words, plane(sums, 6 * k), lanes); }
    FN_MEMBER void sum_y(u32 k, u32* words) const { get(words, plane(sums, 6 * k + 3), lanes); }
    FN_MEMBER void prefix(u32 k, u32* words) const { get(words, plane(prefixes, 3 * k), lanes); }
    FN_MEMBER void set_sum_x(u32 k, const u32* words) const { put(plane(sums, 6 * k), lanes, words); }
    FN_MEMBER void set_sum_y(u32 k, const u32* words) const { put(plane(sums, 6 * k + 3), lanes, words); }
    FN_MEMBER void set_prefix(u32 k, const u32* words) const { put(plane(prefixes, 3 * k), lanes, words); }
};

// Affine additions in batches: each thread has `chain` sums and adds `rounds` points of a packed pool to each, a batch a
// round. Sum k of lane t is of the points (t + 37 r + 41 k) mod 512, r = 0..rounds. Memory: about 480 bytes an addition.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    bench_g1_affine_hybrid(const u32* pool, uint4* sums, uint4* prefixes, u32 chain, u32 rounds)
{
    extern __shared__ double limbs[];
    const g1h room = {limbs + threadIdx.x, THREADS};
    bench_batch batch = {pool, sums, prefixes, THREAD, gridDim.x * THREADS, 0};
    for (u32 k = 0; k < chain; k++) g1h_set_sum(batch, k, g1h_point(batch, k));
    for (u32 round = 1; round <= rounds; round++) {
        batch.shift = 37 * round;
        g1h_batch_add(batch, chain, room);
    }
}

// The sums above in blst's form, [chain][lanes] points.
extern "C" __global__ void __launch_bounds__(THREADS) g1_unpack_sums(const uint4* sums, u32* out, u32 chain)
{
    const bench_batch batch = {0, (uint4*)sums, 0, THREAD, gridDim.x * THREADS, 0};
    for (u32 k = 0; k < chain; k++) {
        const affine<g1> p = g1h_unpack(g1h_sum(batch, k));
        point_store(out + 2 * FQ_WORDS * ((u64)batch.lanes * k + THREAD), p);
    }
}
