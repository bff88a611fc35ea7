// Fields in the hybrid form: n signed limbs of w bits, Montgomery with R = 2^(w n), for chips whose fp64 units run at
// full rate (sm_80, sm_90, sm_100). A field F is a shape and its constants: fq_hybrid.cuh, fr_hybrid.cuh.
//
// A column S = sum a_i b_j (+ sum m_i M_j) is summed twice: nearly, by a chain of fp64 multiply-adds F, and exactly
// modulo 2^32, by 32-bit multiply-adds L. While |F - S| < 2^31 both together give S exactly; no carries, no wide
// products. The worst case of F - S is computed for every shape that is used here by the tests in
// src/cuda/field/bounds.rs, from the same order of operations; a new shape needs a line there.
//
// Numbers. v = sum a_i 2^(w i). "Normalised" means -2^(w-1) <= a_i < 2^(w-1) but for the top limb, which is small
// (after a reduction it fits 32 bits with its sign). Values are lazily reduced: a product is below 0.6 p in absolute
// value; inputs may be several p. Each limb is kept as the double a_i 2^-16 (scaled, so that a column's double is S
// 2^-32, and the split below needs an addition where a multiply-add would read two more registers) and as the word a_i
// mod 2^32.
//
// Reduction: with M = 2^-w mod p, centred, a column S_i = c 2^w + m becomes m M in the columns above, and c carried: no
// product is needed to find m. The last of the lower n columns takes an ordinary Montgomery step, since m M would leave
// a result that is w bits too long.
//
// Cost: n^2 + n (n - 1) + n limb products (one fp64 multiply-add and one 32-bit one each) and 2n - 1 splits a product,
// n (n + 1) / 2 + n^2 a square. Limit on an H200: reads of the register file.
#pragma once
#include "carry.cuh"

// What follows from the number of limbs and their width. A field adds: WORDS of an element in memory and SHIFT, that
// form's R being 2^(w n - SHIFT); INVERSE_LOW and INVERSE_HIGH, -p^-1 mod 2^w in its low word and the bits above;
// P_TOP, the top limb of p; p(j), m(j), the limbs of p and M, scaled, and p_low(j), m_low(j), their words.
template <int limbs, int width>
struct hybrid_shape {
    static constexpr int LIMBS = limbs, BITS = width, COLUMNS = 2 * limbs - 1, HIGH_BITS = width - 32;
    static constexpr u32 HIGH_MASK = (1u << HIGH_BITS) - 1;
    // 2^-w, and 2^-(w-32).
    static constexpr double BELOW = 1.0 / (double)(1ull << width), HIGH_BELOW = 1.0 / (double)(1u << HIGH_BITS);
    // The offset of a digit: it is read as 0 .. 2^w - 1, and 2^(w-1) is taken off.
    static constexpr double DIGIT_OFFSET = 0x1p36 + (double)(1u << (width - 17));
    // To F - {2^20 + L 2^-32}: gives the integer (S - L) 2^-32 + 2^(w-33) in the low mantissa. 2^(w-33) is 2^(w-1) in
    // units of 2^32.
    static constexpr double SPLIT = 1.5 * 0x1p52 + 0x1p20 + (double)(1u << (width - 33));
    // Adding and taking away these rounds to a multiple of 2^w.
    static constexpr double ROUND = 1.5 * 0x1p36 * (double)(1ull << width);
};

template <class F>
struct hybrid {
    double d[F::LIMBS]; // a_i 2^-16
    u32 l[F::LIMBS];    // a_i mod 2^32
};

// The columns of a product: the lower n are eliminated, the others and `top` become the result.
template <class F>
struct hybrid_columns {
    double f[F::COLUMNS]; // S_k 2^-32, nearly
    u32 l[F::COLUMNS];    // S_k mod 2^32
    u32 top;              // what the top limb gets besides
};

#ifdef __CUDACC__
// Multiply-adds as volatile assembly, in the order of the source: row by row, in which the units find one operand where
// the instruction before left it. (ptxas -O1 keeps to it more than -O3 does: in Fq 39.1 instead of 33.4 G products/s on
// an H200.)
FN double hybrid_fma(double a, double b, double c)
{
    double r;
    asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(r) : "d"(a), "d"(b), "d"(c));
    return r;
}
FN double hybrid_mul2(double a, double b)
{
    double r;
    asm volatile("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
    return r;
}
FN u32 hybrid_mad(u32 a, u32 b, u32 c)
{
    u32 r;
    asm volatile("mad.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
FN double hybrid_bits(u32 high, u32 low) { return __hiloint2double((int)high, (int)low); }
FN u32 hybrid_low(double x) { return (u32)__double2loint(x); }
FN u32 hybrid_high(double x) { return (u32)__double2hiint(x); }
FN double hybrid_add2(double a, double b) { return __dadd_rn(a, b); }
#else
// The host's compiler must not contract (-ffp-contract=off).
FN double hybrid_bits(u32 high, u32 low)
{
    const u64 bits = (u64)high << 32 | low;
    double x;
    __builtin_memcpy(&x, &bits, 8);
    return x;
}
FN u64 hybrid_word(double x)
{
    u64 bits;
    __builtin_memcpy(&bits, &x, 8);
    return bits;
}
FN u32 hybrid_low(double x) { return (u32)hybrid_word(x); }
FN u32 hybrid_high(double x) { return (u32)(hybrid_word(x) >> 32); }
FN double hybrid_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
FN double hybrid_add2(double a, double b) { return a + b; }
FN double hybrid_mul2(double a, double b) { return a * b; }
FN u32 hybrid_mad(u32 a, u32 b, u32 c) { return a * b + c; }
#endif

#define HYBRID_SCALE 0x1p-16
// The exponent of 2^36, from memory: then (x & mask) | exponent is one instruction.
CONSTANT u32 HYBRID_EXPONENT = 0x42300000;

// Adding and taking away these rounds to a limb's unit, 2^-16, and leaves a limb's word in the low half.
#define HYBRID_UNIT (1.5 * 0x1p36)

// The word of a limb.
FN u32 hybrid_limb_word(double d) { return hybrid_low(hybrid_add2(d, HYBRID_UNIT)); }

// (high mod 2^(w-32)) 2^32 + low - 2^(w-1), scaled.
template <class F>
FN double hybrid_digit(u32 high, u32 low)
{
    return hybrid_add2(hybrid_bits((high & F::HIGH_MASK) | HYBRID_EXPONENT, low), -F::DIGIT_OFFSET);
}

// The integer (S - L) 2^-32 + 2^(w-33), in the mantissa of a double.
template <class F>
FN double hybrid_quotient(double f, u32 l)
{
    return hybrid_add2(hybrid_add2(f, -hybrid_bits(0x41300000, l)), F::SPLIT);
}

// S = carry 2^w + digit; the word of the digit is l. `high` gets the upper word of the digit's double before its offset
// is taken off: what hybrid_pack needs of it.
template <class F>
FN double hybrid_split(double f, u32 l, u32& carry, u32& high)
{
    const double y = hybrid_quotient<F>(f, l);
    carry = hybrid_low(y) >> F::HIGH_BITS | hybrid_high(y) << (32 - F::HIGH_BITS);
    high = (hybrid_low(y) & F::HIGH_MASK) | HYBRID_EXPONENT;
    return hybrid_add2(hybrid_bits(high, l), -F::DIGIT_OFFSET);
}

// A top limb of 32 bits with its sign.
FN double hybrid_top(u32 word)
{
    return hybrid_add2(hybrid_bits(HYBRID_EXPONENT, word ^ 0x80000000), -(0x1p36 + 0x1p15));
}

// What the Montgomery step of a column adds: q with S + q p = 0 mod 2^w, as a digit; `word` becomes its word.
template <class F>
FN double hybrid_montgomery_digit(double f, u32 l, u32& word)
{
    // Its 2^(w-33) makes q signed: times an odd number that stays the same, modulo 2^(w-32).
    const u32 z = hybrid_low(hybrid_quotient<F>(f, l));
    word = l * F::INVERSE_LOW;
    const u32 high = mul_hi(l, F::INVERSE_LOW) + z * F::INVERSE_LOW + l * F::INVERSE_HIGH;
    return hybrid_digit<F>(high, word);
}

template <class F>
FN hybrid_columns<F> hybrid_no_columns()
{
    hybrid_columns<F> w;
    w.top = 0;
    UNROLL for (int k = 0; k < F::COLUMNS; k++) w.f[k] = 0, w.l[k] = 0;
    return w;
}

// + a b_i.
template <class F>
FN void hybrid_add_row(double* f, u32* l, const hybrid<F>& a, const hybrid<F>& b, int i)
{
    UNROLL for (int j = 0; j < F::LIMBS; j++) f[i + j] = hybrid_fma(a.d[j], b.d[i], f[i + j]);
    UNROLL for (int j = 0; j < F::LIMBS; j++) l[i + j] = hybrid_mad(a.l[j], b.l[i], l[i + j]);
}

// Replaces column i, whose double is `f`, by a multiple of M in the columns above. For the last of the lower ones: a
// Montgomery step.
template <class F>
FN void hybrid_eliminate(hybrid_columns<F>& w, int i, double f)
{
    if (i < F::LIMBS - 1) {
        u32 carry, high;
        const double m = hybrid_split<F>(f, w.l[i], carry, high);
        w.f[i + 1] = hybrid_fma(f, F::BELOW, w.f[i + 1]);
        w.l[i + 1] += carry;
        UNROLL for (int j = 0; j < F::LIMBS; j++) w.f[i + 1 + j] = hybrid_fma(m, F::m(j), w.f[i + 1 + j]);
        UNROLL for (int j = 0; j < F::LIMBS; j++) w.l[i + 1 + j] = hybrid_mad(w.l[i], F::m_low(j), w.l[i + 1 + j]);
    } else {
        u32 word;
        const double q = hybrid_montgomery_digit<F>(f, w.l[i], word);
        const double g = hybrid_fma(q, F::p(0), f); // a multiple of 2^w: exact once rounded to one
        w.f[i + 1] = hybrid_fma(g, F::BELOW, w.f[i + 1]);
        w.l[i + 1] += hybrid_low(hybrid_fma(g, F::HIGH_BELOW, 1.5 * 0x1p52));
        UNROLL for (int j = 1; j < F::LIMBS; j++) w.f[i + j] = hybrid_fma(q, F::p(j), w.f[i + j]);
        UNROLL for (int j = 1; j < F::LIMBS; j++) w.l[i + j] = hybrid_mad(word, F::p_low(j), w.l[i + j]);
    }
}

// The columns of a b / R, for normalised a and b.
template <class F>
FN hybrid_columns<F> hybrid_columns_mul(const hybrid<F>& a, const hybrid<F>& b)
{
    hybrid_columns<F> w = hybrid_no_columns<F>();
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_add_row(w.f, w.l, a, b, i);
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_eliminate(w, i, w.f[i]);
    return w;
}

// The columns of (a b + c d) / R. The second product has doubles of its own: in one, the error could pass the bound.
template <class F>
FN hybrid_columns<F> hybrid_columns_mul2(const hybrid<F>& a, const hybrid<F>& b, const hybrid<F>& c, const hybrid<F>& d)
{
    hybrid_columns<F> w = hybrid_no_columns<F>();
    double other[F::COLUMNS];
    UNROLL for (int k = 0; k < F::COLUMNS; k++) other[k] = 0;
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_add_row(w.f, w.l, a, b, i);
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_add_row(other, w.l, c, d, i);
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_eliminate(w, i, hybrid_add2(w.f[i], other[i]));
    UNROLL for (int k = F::LIMBS; k < F::COLUMNS; k++) w.f[k] = hybrid_add2(w.f[k], other[k]);
    return w;
}

// The columns of a^2 / R, or of -a^2 / R: each product of different limbs is taken once, doubled. In the doubles' rows
// one factor is doubled, in the words' rows the other: the machine's code then finds more operands where it left them.
template <class F>
FN hybrid_columns<F> hybrid_columns_sqr(const hybrid<F>& a, bool negate)
{
    hybrid_columns<F> w = hybrid_no_columns<F>();
    UNROLL for (int i = F::LIMBS - 1; i >= 0; i--) {
        const double once = negate ? -a.d[i] : a.d[i], twice = hybrid_add2(once, once);
        const u32 once_low = negate ? 0 - a.l[i] : a.l[i];
        w.f[2 * i] = hybrid_fma(a.d[i], once, w.f[2 * i]);
        UNROLL for (int j = i + 1; j < F::LIMBS; j++) w.f[i + j] = hybrid_fma(a.d[j], twice, w.f[i + j]);
        w.l[2 * i] = hybrid_mad(a.l[i], once_low, w.l[2 * i]);
        UNROLL for (int j = i + 1; j < F::LIMBS; j++) {
            const u32 twice_low = 2 * (negate ? 0 - a.l[j] : a.l[j]);
            w.l[i + j] = hybrid_mad(twice_low, a.l[i], w.l[i + j]);
        }
    }
    UNROLL for (int i = 0; i < F::LIMBS; i++) hybrid_eliminate(w, i, w.f[i]);
    return w;
}

// + k s, for a small k.
template <class F>
FN void hybrid_columns_add(hybrid_columns<F>& w, int k, const hybrid<F>& s)
{
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) {
        w.f[F::LIMBS + j] = hybrid_fma(s.d[j], k * HYBRID_SCALE, w.f[F::LIMBS + j]);
        w.l[F::LIMBS + j] += (u32)k * s.l[j];
    }
    w.top += (u32)k * s.l[F::LIMBS - 1];
}

// + k p with the k that brings addends, whose top limbs sum up to -top, to within p / 2.
template <class F>
FN void hybrid_columns_settle(hybrid_columns<F>& w, double top)
{
    const double biased = hybrid_fma(top, 0x1p16 / F::P_TOP, 1.5 * 0x1p52);
    const double k = hybrid_mul2(hybrid_add2(biased, -1.5 * 0x1p52), HYBRID_SCALE);
    const u32 word = hybrid_low(biased);
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) {
        w.f[F::LIMBS + j] = hybrid_fma(k, F::p(j), w.f[F::LIMBS + j]);
        w.l[F::LIMBS + j] = hybrid_mad(word, F::p_low(j), w.l[F::LIMBS + j]);
    }
    w.top += word * F::p_low(F::LIMBS - 1);
}

// The number whose limbs are the upper columns, normalised, and the upper words of its digits (see hybrid_split).
template <class F>
FN hybrid<F> hybrid_columns_end(hybrid_columns<F>& w, u32* high)
{
    hybrid<F> r;
    u32 carry;
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) {
        const int k = F::LIMBS + j;
        r.d[j] = hybrid_split<F>(w.f[k], w.l[k], carry, high[j]);
        r.l[j] = w.l[k];
        if (j < F::LIMBS - 2) w.f[k + 1] = hybrid_fma(w.f[k], F::BELOW, w.f[k + 1]), w.l[k + 1] += carry;
    }
    r.l[F::LIMBS - 1] = carry + w.top;
    r.d[F::LIMBS - 1] = hybrid_top(r.l[F::LIMBS - 1]);
    return r;
}
template <class F>
FN hybrid<F> hybrid_columns_end(hybrid_columns<F>& w)
{
    u32 high[F::LIMBS - 1];
    return hybrid_columns_end(w, high);
}

// a b / R, normalised, below 0.6 p in absolute value.
template <class F>
FN hybrid<F> hybrid_mul(const hybrid<F>& a, const hybrid<F>& b)
{
    hybrid_columns<F> w = hybrid_columns_mul(a, b);
    return hybrid_columns_end(w);
}

// a^2 / R.
template <class F>
FN hybrid<F> hybrid_sqr(const hybrid<F>& a)
{
    hybrid_columns<F> w = hybrid_columns_sqr(a, false);
    return hybrid_columns_end(w);
}

// a - b, not normalised.
template <class F>
FN hybrid<F> hybrid_sub(const hybrid<F>& a, const hybrid<F>& b)
{
    hybrid<F> r;
    UNROLL for (int j = 0; j < F::LIMBS; j++) r.d[j] = hybrid_add2(a.d[j], -b.d[j]), r.l[j] = a.l[j] - b.l[j];
    return r;
}

// -a, or a if not `negate`. A limb of -2^(w-1) becomes 2^(w-1), which the bounds allow for and hybrid_pack does not.
template <class F>
FN hybrid<F> hybrid_cneg(const hybrid<F>& a, bool negate)
{
    const u32 sign = negate ? 0x80000000 : 0, mask = negate ? 0xffffffff : 0;
    hybrid<F> r;
    UNROLL for (int j = 0; j < F::LIMBS; j++) {
        r.d[j] = hybrid_bits(hybrid_high(a.d[j]) ^ sign, hybrid_low(a.d[j]));
        r.l[j] = (a.l[j] ^ mask) - mask;
    }
    return r;
}

// The same value with limbs hardly above 2^(w-1), for limbs below 2^(w+5): as good an operand as a normalised one. No
// carry waits for another.
template <class F>
FN hybrid<F> hybrid_half_normalise(const hybrid<F>& a)
{
    hybrid<F> r = a;
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) {
        // Rounded to a multiple of 2^w, whose number is left in the low word.
        const double rounded = hybrid_add2(a.d[j], F::ROUND);
        const double above = hybrid_add2(rounded, -F::ROUND);
        r.d[j] = hybrid_add2(r.d[j], -above);
        r.d[j + 1] = hybrid_fma(above, F::BELOW, r.d[j + 1]);
        r.l[j + 1] += hybrid_low(rounded);
    }
    return r;
}
