#include "types.cuh"

// Writes start + i to out[i] for i < n: whether launches, arguments and copies arrive. 8 bytes an item, no products.
extern "C" __global__ void probe_count(u64 *out, u32 n, u64 start) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = start + i;
}
