#include "g1_batch_form.cuh"

#define POOL 512
#define THREADS 256
// Blocks a multiprocessor: the hybrid form is fastest with the most registers a thread, 8 warps and nothing spilled.
#ifdef FQ_INTEGER
#define BLOCKS 2
#else
#define BLOCKS 1
#endif
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

// An addition of the bench below: number k of a lane. Sums and products are in global memory, in planes of 16 bytes a lane;
// points are those of the pool.
struct bench_step {
    const u32* pool;
    uint4* sums;     // [chain][6][lanes]
    uint4* products; // [chain][3][lanes]
    u32 lane, lanes, shift, k, chain;

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
    FN_MEMBER void next_forward(u32* x, fq& point) const
    {
        if (k + 1 >= chain) return;
        bench_step next = *this;
        next.k++;
        next.sum_x(x);
        point = next.point_x();
    }
    FN_MEMBER void next_backward(u32* words) const
    {
        if (k > 0) get(words, plane(products, 3 * (k - 1)), lanes);
    }
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
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    bench_g1_batch(const u32* pool, uint4* sums, uint4* products, u32 chain, u32 rounds)
{
    extern __shared__ double limbs[];
    g1_batch batch(limbs + threadIdx.x, THREADS);
    bench_step step = {pool, sums, products, THREAD, gridDim.x * THREADS, 0, 0, chain};
    for (step.k = 0; step.k < chain; step.k++) {
        affine<g1> first;
        first.x = step.point_x(), first.y = step.point_y();
        g1_set_sum(step, g1_batch::pack(first));
    }
    for (u32 round = 1; round <= rounds; round++) {
        step.shift = 37 * round;
        step.k = 0;
        g1_ahead ahead;
        step.sum_x(ahead.x);
        ahead.point = step.point_x();
        batch.begin();
        ROLLED for (; step.k < chain; step.k++) batch.forward(step, ahead);
        batch.turn();
        step.k = chain - 1;
        u32 product[FQ_WORDS];
        step.product(product);
        ROLLED for (; step.k != 0xffffffff; step.k--) batch.backward(step, product);
    }
}

// The sums above in blst's form, [chain][lanes] points.
extern "C" __global__ void __launch_bounds__(THREADS) bench_g1_batch_sums(const uint4* sums, u32* out, u32 chain)
{
    bench_step step = {0, (uint4*)sums, 0, THREAD, gridDim.x * THREADS, 0, 0, chain};
    for (step.k = 0; step.k < chain; step.k++)
        point_store(out + 2 * FQ_WORDS * ((u64)step.lanes * step.k + THREAD), g1_batch::unpack(g1_sum(step)));
}
