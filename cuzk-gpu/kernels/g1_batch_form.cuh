// Batches of affine additions in the form of Fq that suits the architecture the code is compiled for: hybrid where fp64 runs at
// full rate (sm_80, sm_90, sm_100), else integer. FQ_INTEGER asks for the latter, so that both can be tested on one device.
#pragma once
#if !defined(FQ_INTEGER) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000
#define FQ_INTEGER
#endif

#ifdef FQ_INTEGER
#include "g1_batch_integer.cuh"
typedef g1_batch_integer g1_batch;
#else
#include "g1_batch_hybrid.cuh"
typedef g1_batch_hybrid g1_batch;
#endif
