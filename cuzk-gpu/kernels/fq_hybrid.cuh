// Fq in the hybrid form: 10 signed limbs of 39 bits, Montgomery with R = 2^390, for chips whose fp64 units run at full rate
// (sm_80, sm_90, sm_100).
//
// A column S = sum a_i b_j (+ sum m_i M_j) is summed twice: nearly, by a chain of fp64 multiply-adds F, and exactly modulo
// 2^32, by 32-bit multiply-adds L. While |F - S| < 2^31 both together give S exactly; no carries, no wide products. The
// worst case of F - S is computed for every shape that is used here by the tests in src/cuda/field/bounds.rs, from the same order of
// operations; a new shape needs a line there.
//
// Numbers. v = sum a_i 2^(39 i). "Normalised" means -2^38 <= a_i < 2^38 for i < 9; the top limb is small (after a
// reduction it fits 32 bits with its sign). Values are lazily reduced: a product is below 0.6 p in absolute value; inputs may
// be several p. Each limb is kept as the double a_i 2^-16 (scaled, so that a column's double is S 2^-32, and the split
// below needs an addition where a multiply-add would read two more registers) and as the word a_i mod 2^32.
//
// Reduction: with M = 2^-39 mod p, centred, a column S_i = c 2^39 + m becomes m M in the columns above, and c carried: no
// product is needed to find m. The last of the ten columns takes an ordinary Montgomery step, since m M would leave a
// result that is 39 bits too long.
//
// Cost: 100 + 90 + 10 limb products (one fp64 multiply-add and one 32-bit one each) and 19 splits a product, 55 + 100 a
// square. Limit on an H200: reads of the register file.
#pragma once
#include "fq.cuh"

#define FQH_LIMBS 10
#define FQH_COLUMNS 19

struct fqh {
    double d[FQH_LIMBS]; // a_i 2^-16
    u32 l[FQH_LIMBS];    // a_i mod 2^32
};

// The columns of a product: the lower ten are eliminated, the upper nine and `top` become the result.
struct fqh_columns {
    double f[FQH_COLUMNS]; // S_k 2^-32, nearly
    u32 l[FQH_COLUMNS];    // S_k mod 2^32
    u32 top;               // what the top limb gets besides
};

#ifdef __CUDACC__
// Multiply-adds as volatile assembly, in the order of the source: row by row, in which the units find one operand where the
// instruction before left it. (ptxas -O1 keeps to it more than -O3 does: 39.1 instead of 33.4 G products/s on an H200.)
FN double fqh_fma(double a, double b, double c)
{
    double r;
    asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(r) : "d"(a), "d"(b), "d"(c));
    return r;
}
FN double fqh_mul2(double a, double b)
{
    double r;
    asm volatile("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
    return r;
}
FN u32 fqh_mad(u32 a, u32 b, u32 c)
{
    u32 r;
    asm volatile("mad.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
FN double fqh_bits(u32 high, u32 low) { return __hiloint2double((int)high, (int)low); }
FN u32 fqh_low(double x) { return (u32)__double2loint(x); }
FN u32 fqh_high(double x) { return (u32)__double2hiint(x); }
FN double fqh_add2(double a, double b) { return __dadd_rn(a, b); }
#else
// The host's compiler must not contract (-ffp-contract=off).
FN double fqh_bits(u32 high, u32 low)
{
    const u64 bits = (u64)high << 32 | low;
    double x;
    __builtin_memcpy(&x, &bits, 8);
    return x;
}
FN u64 fqh_word(double x)
{
    u64 bits;
    __builtin_memcpy(&bits, &x, 8);
    return bits;
}
FN u32 fqh_low(double x) { return (u32)fqh_word(x); }
FN u32 fqh_high(double x) { return (u32)(fqh_word(x) >> 32); }
FN double fqh_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
FN double fqh_add2(double a, double b) { return a + b; }
FN double fqh_mul2(double a, double b) { return a * b; }
FN u32 fqh_mad(u32 a, u32 b, u32 c) { return a * b + c; }
#endif

#define FQH_SCALE 0x1p-16
// p and M in limbs, scaled. In constant memory: the units read such an operand without a port of the register file.
CONSTANT double FQH_P[FQH_LIMBS] = {
    -21845 * FQH_SCALE,         -9175552 * FQH_SCALE,      206158087504 * FQH_SCALE, 229909799157 * FQH_SCALE,
    -41019430385 * FQH_SCALE,   -66061295016 * FQH_SCALE,  -89290891821 * FQH_SCALE, 59388928422 * FQH_SCALE,
    246958955083 * FQH_SCALE,   872555476 * FQH_SCALE};
CONSTANT double FQH_M[FQH_LIMBS] = {
    154747013120 * FQH_SCALE,  67379591199 * FQH_SCALE,  -86334727040 * FQH_SCALE,  -245224433186 * FQH_SCALE,
    -186982857910 * FQH_SCALE, 250740039427 * FQH_SCALE, -190652481256 * FQH_SCALE, 267872615262 * FQH_SCALE,
    -18799078427 * FQH_SCALE,  -20450831 * FQH_SCALE};
// The exponent of 2^36, from memory: then (x & mask) | exponent is one instruction.
CONSTANT u32 FQH_EXPONENT = 0x42300000;

// The words of p and of M: immediates, since every use is in an unrolled loop.
FN u32 fqh_p_low(int j)
{
    const u32 words[FQH_LIMBS] = {0xffffaaab, 0xff73fe00, 0xfffac550, 0x87b120f5, 0x730d2a0f,
                                  0x9e70a258, 0x35d91dd3, 0xd3db21a6, 0x7fe69a4b, 0x340223d4};
    return words[j];
}
FN u32 fqh_m_low(int j)
{
    const u32 words[FQH_LIMBS] = {0x07a40800, 0xb022f81f, 0xe60c9c80, 0xe77c19de, 0x76f4034a,
                                  0x61455f03, 0x9c3a0118, 0x5e73bb5e, 0x9f7cd3e5, 0xfec7f1f1};
    return words[j];
}
// -p^-1 mod 2^39, the low word and the seven bits above it.
#define FQH_INVERSE_LOW 0xfffcfffdu
#define FQH_INVERSE_HIGH 0x7cu

// Adding and taking away these rounds to a limb's unit, 2^-16, and leaves a limb's word in the low half.
#define FQH_UNIT (1.5 * 0x1p36)
// The offset of a digit: it is read as 0 .. 2^39 - 1, and 2^38 is taken off.
#define FQH_DIGIT_OFFSET (0x1p36 + 0x1p22)
// To F - {2^20 + L 2^-32}: gives the integer (S - L) 2^-32 + 2^6 in the low mantissa. 2^6 is 2^38 in units of 2^32.
#define FQH_SPLIT (1.5 * 0x1p52 + 0x1p20 + 0x1p6)

// The word of a limb.
FN u32 fqh_limb_word(double d) { return fqh_low(fqh_add2(d, FQH_UNIT)); }

// (high mod 2^7) 2^32 + low - 2^38, scaled.
FN double fqh_digit(u32 high, u32 low)
{
    return fqh_add2(fqh_bits((high & 0x7f) | FQH_EXPONENT, low), -FQH_DIGIT_OFFSET);
}

// The integer (S - L) 2^-32 + 2^6, in the mantissa of a double.
FN double fqh_quotient(double f, u32 l)
{
    return fqh_add2(fqh_add2(f, -fqh_bits(0x41300000, l)), FQH_SPLIT);
}

// S = carry 2^39 + digit; the word of the digit is l. `high` gets the upper word of the digit's double before its offset is
// taken off: what fqh_pack needs of it.
FN double fqh_split(double f, u32 l, u32& carry, u32& high)
{
    const double y = fqh_quotient(f, l);
    carry = fqh_low(y) >> 7 | fqh_high(y) << 25;
    high = (fqh_low(y) & 0x7f) | FQH_EXPONENT;
    return fqh_add2(fqh_bits(high, l), -FQH_DIGIT_OFFSET);
}

// A top limb of 32 bits with its sign.
FN double fqh_top(u32 word) { return fqh_add2(fqh_bits(FQH_EXPONENT, word ^ 0x80000000), -(0x1p36 + 0x1p15)); }

// What the Montgomery step of a column adds: q with S + q p = 0 mod 2^39, as a digit; `word` becomes its word.
FN double fqh_montgomery_digit(double f, u32 l, u32& word)
{
    const u32 z = fqh_low(fqh_quotient(f, l)); // its 2^6 makes q signed, since 2^6 FQH_INVERSE_LOW = 2^6 mod 2^7
    word = l * FQH_INVERSE_LOW;
    const u32 high = mul_hi(l, FQH_INVERSE_LOW) + z * FQH_INVERSE_LOW + l * FQH_INVERSE_HIGH;
    return fqh_digit(high, word);
}

FN fqh_columns fqh_no_columns()
{
    fqh_columns w;
    w.top = 0;
    UNROLL for (int k = 0; k < FQH_COLUMNS; k++) w.f[k] = 0, w.l[k] = 0;
    return w;
}

// + a b_i.
FN void fqh_add_row(double* f, u32* l, const fqh& a, const fqh& b, int i)
{
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) f[i + j] = fqh_fma(a.d[j], b.d[i], f[i + j]);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) l[i + j] = fqh_mad(a.l[j], b.l[i], l[i + j]);
}

// Replaces column i, whose double is `f`, by a multiple of M in the columns above. For the last of the ten: a Montgomery
// step.
FN void fqh_eliminate(fqh_columns& w, int i, double f)
{
    if (i < FQH_LIMBS - 1) {
        u32 carry, high;
        const double m = fqh_split(f, w.l[i], carry, high);
        w.f[i + 1] = fqh_fma(f, 0x1p-39, w.f[i + 1]);
        w.l[i + 1] += carry;
        UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[i + 1 + j] = fqh_fma(m, FQH_M[j], w.f[i + 1 + j]);
        UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[i + 1 + j] = fqh_mad(w.l[i], fqh_m_low(j), w.l[i + 1 + j]);
    } else {
        u32 word;
        const double q = fqh_montgomery_digit(f, w.l[i], word);
        const double g = fqh_fma(q, FQH_P[0], f); // a multiple of 2^39: exact once rounded to one
        w.f[i + 1] = fqh_fma(g, 0x1p-39, w.f[i + 1]);
        w.l[i + 1] += fqh_low(fqh_fma(g, 0x1p-7, 1.5 * 0x1p52));
        UNROLL for (int j = 1; j < FQH_LIMBS; j++) w.f[i + j] = fqh_fma(q, FQH_P[j], w.f[i + j]);
        UNROLL for (int j = 1; j < FQH_LIMBS; j++) w.l[i + j] = fqh_mad(word, fqh_p_low(j), w.l[i + j]);
    }
}

// The columns of a b / R, for normalised a and b.
FN fqh_columns fqh_columns_mul(const fqh& a, const fqh& b)
{
    fqh_columns w = fqh_no_columns();
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_add_row(w.f, w.l, a, b, i);
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_eliminate(w, i, w.f[i]);
    return w;
}

// The columns of (a b + c d) / R. The second product has doubles of its own: in one, the error could pass the bound.
FN fqh_columns fqh_columns_mul2(const fqh& a, const fqh& b, const fqh& c, const fqh& d)
{
    fqh_columns w = fqh_no_columns();
    double other[FQH_COLUMNS];
    UNROLL for (int k = 0; k < FQH_COLUMNS; k++) other[k] = 0;
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_add_row(w.f, w.l, a, b, i);
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_add_row(other, w.l, c, d, i);
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_eliminate(w, i, fqh_add2(w.f[i], other[i]));
    UNROLL for (int k = FQH_LIMBS; k < FQH_COLUMNS; k++) w.f[k] = fqh_add2(w.f[k], other[k]);
    return w;
}

// The columns of a^2 / R, or of -a^2 / R: each product of different limbs is taken once, doubled. In the doubles' rows one
// factor is doubled, in the words' rows the other: the machine's code then finds more operands where it left them.
FN fqh_columns fqh_columns_sqr(const fqh& a, bool negate)
{
    fqh_columns w = fqh_no_columns();
    UNROLL for (int i = FQH_LIMBS - 1; i >= 0; i--) {
        const double once = negate ? -a.d[i] : a.d[i], twice = fqh_add2(once, once);
        const u32 once_low = negate ? 0 - a.l[i] : a.l[i];
        w.f[2 * i] = fqh_fma(a.d[i], once, w.f[2 * i]);
        UNROLL for (int j = i + 1; j < FQH_LIMBS; j++) w.f[i + j] = fqh_fma(a.d[j], twice, w.f[i + j]);
        w.l[2 * i] = fqh_mad(a.l[i], once_low, w.l[2 * i]);
        UNROLL for (int j = i + 1; j < FQH_LIMBS; j++) {
            const u32 twice_low = 2 * (negate ? 0 - a.l[j] : a.l[j]);
            w.l[i + j] = fqh_mad(twice_low, a.l[i], w.l[i + j]);
        }
    }
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) fqh_eliminate(w, i, w.f[i]);
    return w;
}

// + k s, for a small k.
FN void fqh_columns_add(fqh_columns& w, int k, const fqh& s)
{
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[FQH_LIMBS + j] = fqh_fma(s.d[j], k * FQH_SCALE, w.f[FQH_LIMBS + j]);
        w.l[FQH_LIMBS + j] += (u32)k * s.l[j];
    }
    w.top += (u32)k * s.l[FQH_LIMBS - 1];
}

// + k p with the k that brings addends, whose top limbs sum up to -top, to within p / 2.
FN void fqh_columns_settle(fqh_columns& w, double top)
{
    const double biased = fqh_fma(top, 0x1p16 / 872555476, 1.5 * 0x1p52);
    const double k = fqh_mul2(fqh_add2(biased, -1.5 * 0x1p52), FQH_SCALE);
    const u32 word = fqh_low(biased);
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[FQH_LIMBS + j] = fqh_fma(k, FQH_P[j], w.f[FQH_LIMBS + j]);
        w.l[FQH_LIMBS + j] = fqh_mad(word, fqh_p_low(j), w.l[FQH_LIMBS + j]);
    }
    w.top += word * fqh_p_low(FQH_LIMBS - 1);
}

// The number whose limbs are the upper columns, normalised, and the upper words of its digits (see fqh_split).
FN fqh fqh_columns_end(fqh_columns& w, u32* high)
{
    fqh r;
    u32 carry;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        const int k = FQH_LIMBS + j;
        r.d[j] = fqh_split(w.f[k], w.l[k], carry, high[j]);
        r.l[j] = w.l[k];
        if (j < FQH_LIMBS - 2) w.f[k + 1] = fqh_fma(w.f[k], 0x1p-39, w.f[k + 1]), w.l[k + 1] += carry;
    }
    r.l[FQH_LIMBS - 1] = carry + w.top;
    r.d[FQH_LIMBS - 1] = fqh_top(r.l[FQH_LIMBS - 1]);
    return r;
}
FN fqh fqh_columns_end(fqh_columns& w)
{
    u32 high[FQH_LIMBS - 1];
    return fqh_columns_end(w, high);
}

// a b / R, normalised, below 0.6 p in absolute value.
FN fqh fqh_mul(const fqh& a, const fqh& b)
{
    fqh_columns w = fqh_columns_mul(a, b);
    return fqh_columns_end(w);
}

// a^2 / R.
FN fqh fqh_sqr(const fqh& a)
{
    fqh_columns w = fqh_columns_sqr(a, false);
    return fqh_columns_end(w);
}

// a - b, not normalised.
FN fqh fqh_sub(const fqh& a, const fqh& b)
{
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) r.d[j] = fqh_add2(a.d[j], -b.d[j]), r.l[j] = a.l[j] - b.l[j];
    return r;
}

// -a, or a if not `negate`. A limb of -2^38 becomes 2^38, which the bounds allow for and fqh_pack does not.
FN fqh fqh_cneg(const fqh& a, bool negate)
{
    const u32 sign = negate ? 0x80000000 : 0, mask = negate ? 0xffffffff : 0;
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) {
        r.d[j] = fqh_bits(fqh_high(a.d[j]) ^ sign, fqh_low(a.d[j]));
        r.l[j] = (a.l[j] ^ mask) - mask;
    }
    return r;
}

// The same value with limbs hardly above 2^38, for limbs below 2^44: as good an operand as a normalised one. No carry waits
// for another.
FN fqh fqh_half_normalise(const fqh& a)
{
    fqh r = a;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        // Rounded to a multiple of 2^39, whose number is left in the low word.
        const double rounded = fqh_add2(a.d[j], 1.5 * 0x1p75);
        const double above = fqh_add2(rounded, -1.5 * 0x1p75);
        r.d[j] = fqh_add2(r.d[j], -above);
        r.d[j + 1] = fqh_fma(above, 0x1p-39, r.d[j + 1]);
        r.l[j + 1] += fqh_low(rounded);
    }
    return r;
}

// Whether a could be a multiple k p, |k| <= 128: false for all but 257 of 2^32 others.
FN bool fqh_maybe_zero(const fqh& a) { return a.l[0] * FQH_INVERSE_LOW + 128 <= 256; }
