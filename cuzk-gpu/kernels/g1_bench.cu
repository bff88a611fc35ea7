#include "xyzz_bench.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 2) bench_g1_xyzz(const u32* pool, u32* out, u32 rounds)
{
    add_pool<g1>(pool, out, rounds);
}
