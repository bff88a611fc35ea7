// Additions and products of 32-bit words that pass a carry on, the building blocks of the integer fields.
//
// A suffix _cc sets the carry, a prefix addc, subc or madc uses it. The order of the calls is the order of the carries,
// and nothing else may come between two that belong together: on the device the carry lives in a flag of the processor
// (the assembler turns the pair mad_lo_cc, madc_hi_cc into one wide multiply-add with carry in and carry out), on the
// host, where the same headers are compiled by tests, in a variable.
#pragma once
#include "types.cuh"

// Loops that are unrolled, and loops that stay loops, to keep code small.
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#else
#define UNROLL
#define ROLLED
#endif

#ifdef __CUDA_ARCH__
#define CARRY_BINARY(name, op)                                                       \
    FN u32 name(u32 a, u32 b)                                                        \
    {                                                                                \
        u32 r;                                                                       \
        asm volatile(op " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                  \
        return r;                                                                    \
    }
#define CARRY_TERNARY(name, op)                                                      \
    FN u32 name(u32 a, u32 b, u32 c)                                                 \
    {                                                                                \
        u32 r;                                                                       \
        asm volatile(op " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));      \
        return r;                                                                    \
    }
CARRY_BINARY(add_cc, "add.cc.u32")
CARRY_BINARY(addc_cc, "addc.cc.u32")
CARRY_BINARY(addc, "addc.u32")
CARRY_BINARY(sub_cc, "sub.cc.u32")
CARRY_BINARY(subc_cc, "subc.cc.u32")
CARRY_BINARY(subc, "subc.u32")
CARRY_BINARY(mul_lo, "mul.lo.u32")
CARRY_BINARY(mul_hi, "mul.hi.u32")
CARRY_TERNARY(mad_lo_cc, "mad.lo.cc.u32")
CARRY_TERNARY(madc_lo_cc, "madc.lo.cc.u32")
CARRY_TERNARY(madc_hi_cc, "madc.hi.cc.u32")
CARRY_TERNARY(madc_hi, "madc.hi.u32")
#undef CARRY_BINARY
#undef CARRY_TERNARY
#else
static thread_local u32 carry_flag;
FN u32 carry_keep(u64 sum) { carry_flag = (u32)(sum >> 32); return (u32)sum; }
FN u32 borrow_keep(u64 difference) { carry_flag = (u32)(difference >> 63); return (u32)difference; }
FN u32 add_cc(u32 a, u32 b) { return carry_keep((u64)a + b); }
FN u32 addc_cc(u32 a, u32 b) { return carry_keep((u64)a + b + carry_flag); }
FN u32 addc(u32 a, u32 b) { return a + b + carry_flag; }
FN u32 sub_cc(u32 a, u32 b) { return borrow_keep((u64)a - b); }
FN u32 subc_cc(u32 a, u32 b) { return borrow_keep((u64)a - b - carry_flag); }
FN u32 subc(u32 a, u32 b) { return a - b - carry_flag; }
FN u32 mul_lo(u32 a, u32 b) { return a * b; }
FN u32 mul_hi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
FN u32 mad_lo_cc(u32 a, u32 b, u32 c) { return carry_keep((u64)mul_lo(a, b) + c); }
FN u32 madc_lo_cc(u32 a, u32 b, u32 c) { return carry_keep((u64)mul_lo(a, b) + c + carry_flag); }
FN u32 madc_hi_cc(u32 a, u32 b, u32 c) { return carry_keep((u64)mul_hi(a, b) + c + carry_flag); }
FN u32 madc_hi(u32 a, u32 b, u32 c) { return mul_hi(a, b) + c + carry_flag; }
#endif
