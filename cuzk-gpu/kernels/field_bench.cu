// Products of the fields as chains in registers: each thread takes an element from `x`, multiplies it `rounds` times by
// another (or squares it), and writes the last. No memory traffic worth counting: this is the rate of the arithmetic alone.
#include "fq2.cuh"

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(128) bench_fq_mul(u32* x, u32 rounds)
{
    x += FQ_WORDS * THREAD;
    const fq b = fq_load(x);
    fq a = b;
    for (u32 i = 0; i < rounds; i++) a = fq_mul(a, b);
    fq_store(x, a);
}

extern "C" __global__ void __launch_bounds__(128) bench_fq_sqr(u32* x, u32 rounds)
{
    x += FQ_WORDS * THREAD;
    fq a = fq_load(x);
    for (u32 i = 0; i < rounds; i++) a = fq_sqr(a);
    fq_store(x, a);
}

extern "C" __global__ void __launch_bounds__(128) bench_fq2_mul(u32* x, u32 rounds)
{
    x += 2 * FQ_WORDS * THREAD;
    const fq2 b = fq2_load(x);
    fq2 a = b;
    for (u32 i = 0; i < rounds; i++) a = fq2_mul(a, b);
    fq2_store(x, a);
}
