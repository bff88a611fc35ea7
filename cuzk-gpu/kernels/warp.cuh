// Functions that a warp rarely needs.
#pragma once
#include "types.cuh"

#ifdef __CUDACC__
#define RARE __device__ __noinline__
#else
#define RARE static
#endif

// Whether any lane that is here says so. Rare functions are called by all lanes of a warp if one of them needs it, and do
// nothing for the others: with the call in a branch that only some lanes take, the assembler (of CUDA 13.0) gave the
// others wrong results, as the check of g1_add_hybrid showed.
FN bool warp_any(bool here)
{
#ifdef __CUDACC__
    return __any_sync(__activemask(), here);
#else
    return here;
#endif
}
