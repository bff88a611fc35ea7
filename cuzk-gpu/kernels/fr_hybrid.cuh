// Fr in the hybrid form (hybrid.cuh): 7 signed limbs of 38 bits, Montgomery with R = 2^266. 98 limb products and 13
// splits a product, 77 and 13 a square. The sums of its columns are so short that even a product of two differences, as
// they are, is safe. A packed element has 32 bytes; 1024 times a number in the Montgomery form of fr.cuh is the form R
// = 2^266.
//
// It is for chains of products of two variables, or of squares, in registers. Nothing that a proof is made of has such
// chains: transforms multiply by constants (fr_mul_constant is faster still), matrices and planes once or twice an
// element, where the way here and back would cost more than is gained. gpu-bench measures it; no other kernel includes
// it.
#pragma once
#include "fr.cuh"

#define FRH_LIMBS 7

// r and M in limbs, scaled. In constant memory: the units read such an operand without a port of the register file.
CONSTANT double FRH_P[FRH_LIMBS] = {
    -4294967295 * 0x1p-16,  -68786585600 * 0x1p-16, 112746037222 * 0x1p-16, -101099416337 * 0x1p-16,
    -54864115702 * 0x1p-16, 54332355873 * 0x1p-16,  121559669 * 0x1p-16};
CONSTANT double FRH_M[FRH_LIMBS] = {
    68853694464 * 0x1p-16, -2097126 * 0x1p-16,    -102525703407 * 0x1p-16, 13494121123 * 0x1p-16,
    79668882111 * 0x1p-16, 46274137526 * 0x1p-16, -1899370 * 0x1p-16};

// After those: a constant of its own then stands behind them in memory.
#include "hybrid_words.cuh"

// The sum of 2^(37 + 38 i), i < 6, divided by 2^10, and as it is.
CONSTANT u32 FRH_OFFSETS_1024TH[FR_WORDS] = {0x8000000, 0, 0x2, 0x80, 0x2000, 0x80000, 0x2000000, 0};
CONSTANT u32 FRH_OFFSETS[FR_WORDS] = {0, 0x20, 0x800, 0x20000, 0x800000, 0x20000000, 0, 0x8};

struct fr_hybrid : hybrid_shape<FRH_LIMBS, 38> {
    typedef fr element;
    static constexpr int WORDS = FR_WORDS, SHIFT = 10;
    static constexpr u32 INVERSE_LOW = 0xffffffff, INVERSE_HIGH = 0x3e;
    static constexpr double P_TOP = 121559669;
    FN_MEMBER static double p(int j) { return FRH_P[j]; }
    FN_MEMBER static double m(int j) { return FRH_M[j]; }
    FN_MEMBER static u32 p_low(int j)
    {
        const u32 words[LIMBS] = {0x00000001, 0xfc000000, 0x402fffe6, 0x760154ef, 0x39d8080a, 0xa675f521, 0x073eda75};
        return words[j];
    }
    FN_MEMBER static u32 m_low(int j)
    {
        const u32 words[LIMBS] = {0x08000000, 0xffe0001a, 0x20fdeb11, 0x244ff2a3, 0x8ca2aabf, 0xc6274db6, 0xffe30496};
        return words[j];
    }
    FN_MEMBER static u32 offsets(int i) { return FRH_OFFSETS[i]; }
    FN_MEMBER static u32 offsets_shifted(int i) { return FRH_OFFSETS_1024TH[i]; }
    FN_MEMBER static u32 modulus(int i) { return FR_R[i]; }
    FN_MEMBER static u32 inverse() { return FR_M0; }
    FN_MEMBER static fr reduce(const fr& a) { return fr_reduce_once(a); }
};

typedef hybrid<fr_hybrid> frh;
typedef hybrid_columns<fr_hybrid> frh_columns;

FN frh frh_from_fr(const fr& a) { return hybrid_from<fr_hybrid>(a); }
