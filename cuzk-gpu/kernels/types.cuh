// Integer types, vectors of them, and qualifiers for kernels. NVRTC has no <cstdint>; a host compiler may compile the arithmetic headers too.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "the layouts in memory count on it");

#ifdef __CUDACC__
#define FN __device__ __forceinline__
#define FN_MEMBER __device__ __forceinline__
#define CONSTANT __constant__
#else
#define FN static inline
#define FN_MEMBER inline
#define CONSTANT static const

struct alignas(16) uint4 {
    u32 x, y, z, w;
};
#endif
