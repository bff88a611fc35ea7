#define FQ2_FN __device__ __noinline__
#include "field_ops.cuh"

// check_NAME: out[i] = the operation on a[i] and b[i], i < n, one thread each; all in whole words as field_ops.cuh says. For
// checks only: reads and writes are as they come.
#define OP(name, words_a, words_b, words_out, body)                                                \
    extern "C" __global__ void check_##name(const u32* a, const u32* b, u32* out, u32 n)           \
    {                                                                                              \
        const u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
        if (i >= n) return;                                                                        \
        a += words_a * i, b += words_b * i, out += words_out * i;                                  \
        body;                                                                                      \
    }
FIELD_OPS(OP)
