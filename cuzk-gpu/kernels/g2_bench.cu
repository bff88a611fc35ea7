// A module of its own: G2's products are called, G1's are not (see fq2.cuh).
#define FQ2_FN __device__ __noinline__
#include "xyzz_bench.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 2) bench_g2_xyzz(const u32* pool, u32* out, u32 rounds)
{
    add_pool<g2>(pool, out, rounds);
}
