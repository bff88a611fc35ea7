// Fq in the hybrid form: 10 signed limbs of 39 bits, Montgomery with R = 2^390, for chips whose fp64 units run at full rate
// (sm_80, sm_90, sm_100).
//
// A column S = sum a_i b_j (+ sum m_i M_j) is summed twice: nearly, by a chain of fp64 multiply-adds F, and exactly modulo
// 2^32, by 32-bit multiply-adds L. While |F - S| < 2^31 both together give S exactly; no carries, no wide products. The
// worst case of F - S is computed for every shape that is used here by the test `hybrid_bounds`, from the same order of
// operations; a new shape needs a line there.
//
// Numbers. v = sum a_i 2^(39 i). "Normalised" means -2^38 <= a_i < 2^38 for i < 9; the top limb is small (after a
// reduction it fits 32 bits with its sign). Values are lazily reduced: a product is below 0.52 p in absolute value; inputs may
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

// The columns of a product before reduction, and what is to be added to the top limb of the result.
struct fqh_wide {
    double f[FQH_COLUMNS]; // S_k 2^-32, nearly
    u32 l[FQH_COLUMNS];    // S_k mod 2^32
    u32 top;
};

#ifdef __CUDACC__
// Multiply-adds as volatile assembly: both compilers then keep them in the order of the source, row by row, in which the
// units find one operand where the instruction before left it (266 instead of 239 such reads in a product, counted in the
// machine code).
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

// S = carry 2^39 + digit; the word of the digit is l.
FN double fqh_split(double f, u32 l, u32& carry)
{
    const double y = fqh_quotient(f, l);
    carry = fqh_low(y) >> 7 | fqh_high(y) << 25;
    return fqh_digit(fqh_low(y), l);
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

// a_i b_j in columns.
FN fqh_wide fqh_wide_mul(const fqh& a, const fqh& b)
{
    fqh_wide w;
    w.top = 0;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[j] = fqh_mul2(a.d[j], b.d[0]);
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[j] = a.l[j] * b.l[0];
    UNROLL for (int i = 1; i < FQH_LIMBS; i++) {
        UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) w.f[i + j] = fqh_fma(a.d[j], b.d[i], w.f[i + j]);
        w.f[i + FQH_LIMBS - 1] = fqh_mul2(a.d[FQH_LIMBS - 1], b.d[i]);
        UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) w.l[i + j] = fqh_mad(a.l[j], b.l[i], w.l[i + j]);
        w.l[i + FQH_LIMBS - 1] = a.l[FQH_LIMBS - 1] * b.l[i];
    }
    return w;
}

// a_i a_j in columns, each product of different limbs once.
FN fqh_wide fqh_wide_sqr(const fqh& a)
{
    fqh_wide w;
    w.top = 0;
    UNROLL for (int k = 0; k < FQH_COLUMNS; k++) w.f[k] = 0, w.l[k] = 0;
    UNROLL for (int i = 0; i < FQH_LIMBS; i++) {
        const double twice = fqh_add2(a.d[i], a.d[i]);
        const u32 twice_low = 2 * a.l[i];
        w.f[2 * i] = fqh_fma(a.d[i], a.d[i], w.f[2 * i]);
        UNROLL for (int j = i + 1; j < FQH_LIMBS; j++) w.f[i + j] = fqh_fma(a.d[j], twice, w.f[i + j]);
        w.l[2 * i] = fqh_mad(a.l[i], a.l[i], w.l[2 * i]);
        UNROLL for (int j = i + 1; j < FQH_LIMBS; j++) w.l[i + j] = fqh_mad(a.l[j], twice_low, w.l[i + j]);
    }
    return w;
}

// + s R: adds s to the result of the reduction.
FN void fqh_wide_add(fqh_wide& w, const fqh& s)
{
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[FQH_LIMBS + j] = fqh_fma(s.d[j], FQH_SCALE, w.f[FQH_LIMBS + j]);
        w.l[FQH_LIMBS + j] += s.l[j];
    }
    w.top += s.l[FQH_LIMBS - 1];
}

// - s R.
FN void fqh_wide_sub(fqh_wide& w, const fqh& s)
{
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        w.f[FQH_LIMBS + j] = fqh_fma(s.d[j], -FQH_SCALE, w.f[FQH_LIMBS + j]);
        w.l[FQH_LIMBS + j] -= s.l[j];
    }
    w.top -= s.l[FQH_LIMBS - 1];
}

// The columns divided by R, normalised.
FN fqh fqh_reduce(fqh_wide& w)
{
    UNROLL for (int i = 0; i < FQH_LIMBS - 1; i++) {
        u32 carry;
        const double m = fqh_split(w.f[i], w.l[i], carry);
        w.f[i + 1] = fqh_fma(w.f[i], 0x1p-39, w.f[i + 1]);
        w.l[i + 1] += carry;
        UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.f[i + 1 + j] = fqh_fma(m, FQH_M[j], w.f[i + 1 + j]);
        UNROLL for (int j = 0; j < FQH_LIMBS; j++) w.l[i + 1 + j] = fqh_mad(w.l[i], fqh_m_low(j), w.l[i + 1 + j]);
    }
    const int k = FQH_LIMBS - 1;
    u32 word;
    const double q = fqh_montgomery_digit(w.f[k], w.l[k], word);
    const double g = fqh_fma(q, FQH_P[0], w.f[k]); // a multiple of 2^39: exact once rounded to one
    w.f[k + 1] = fqh_fma(g, 0x1p-39, w.f[k + 1]);
    w.l[k + 1] += fqh_low(fqh_fma(g, 0x1p-7, 1.5 * 0x1p52));
    UNROLL for (int j = 1; j < FQH_LIMBS; j++) w.f[k + j] = fqh_fma(q, FQH_P[j], w.f[k + j]);
    UNROLL for (int j = 1; j < FQH_LIMBS; j++) w.l[k + j] = fqh_mad(word, fqh_p_low(j), w.l[k + j]);

    fqh r;
    u32 carry = 0;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        const int column = FQH_LIMBS + j;
        if (j > 0) {
            w.f[column] = fqh_fma(w.f[column - 1], 0x1p-39, w.f[column]);
            w.l[column] += carry;
        }
        r.d[j] = fqh_split(w.f[column], w.l[column], carry);
        r.l[j] = w.l[column];
    }
    r.l[FQH_LIMBS - 1] = carry + w.top;
    r.d[FQH_LIMBS - 1] = fqh_top(r.l[FQH_LIMBS - 1]);
    return r;
}

// a b / R, normalised, below 0.52 p in absolute value.
FN fqh fqh_mul(const fqh& a, const fqh& b)
{
    fqh_wide w = fqh_wide_mul(a, b);
    return fqh_reduce(w);
}

// a^2 / R.
FN fqh fqh_sqr(const fqh& a)
{
    fqh_wide w = fqh_wide_sqr(a);
    return fqh_reduce(w);
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

// The same value with normalised limbs, for limbs below 2^44. Each is read from a mantissa, with its carry above it.
FN fqh fqh_normalise(const fqh& a)
{
    fqh r;
    double carry = 0;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        const double y = fqh_add2(fqh_add2(a.d[j], carry), FQH_UNIT + 0x1p22);
        r.l[j] = fqh_low(y);
        r.d[j] = fqh_digit(fqh_high(y), r.l[j]);
        // The high word of FQH_UNIT, 0x42380000, is above the limb's: >> 7 it is 0x847000.
        carry = fqh_add2(fqh_bits(FQH_EXPONENT, fqh_high(y) >> 7), -(0x1p36 + 0x847000 * FQH_SCALE));
    }
    r.d[FQH_LIMBS - 1] = fqh_add2(a.d[FQH_LIMBS - 1], carry);
    r.l[FQH_LIMBS - 1] = fqh_limb_word(r.d[FQH_LIMBS - 1]);
    return r;
}

// 32 bits of a number of words, from bit `at` on; zeros above its end.
FN u32 fqh_bits_at(const u32* words, int count, int at)
{
    const int word = at >> 5, shift = at & 31;
    const u32 low = word < count ? words[word] : 0, high = word + 1 < count ? words[word + 1] : 0;
    return shift == 0 ? low : low >> shift | high << (32 - shift);
}

// Sum of 2^(32 + 39 i), i < 9: the offsets of the digits, 2^38 each, divided by 2^6.
CONSTANT u32 FQH_OFFSETS_64TH[FQ_WORDS] = {0, 0x1, 0x80, 0x4000, 0x200000, 0x10000000, 0, 0x8, 0x400, 0x20000, 0x1000000, 0};

// From the form R = 2^384, of which 64 a is the form R = 2^390: below 64 p, normalised, top limb below 2^36. A legal
// operand of one product; fqh_from_fq gives a small value.
FN fqh fqh_unpack64(const fq& a)
{
    u32 t[FQ_WORDS];
    t[0] = add_cc(a.v[0], FQH_OFFSETS_64TH[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) t[i] = addc_cc(a.v[i], FQH_OFFSETS_64TH[i]);
    t[FQ_WORDS - 1] = addc(a.v[FQ_WORDS - 1], FQH_OFFSETS_64TH[FQ_WORDS - 1]);
    fqh r;
    r.l[0] = t[0] << 6;
    r.d[0] = fqh_digit(t[1] << 6 | t[0] >> 26, r.l[0]);
    UNROLL for (int j = 1; j < FQH_LIMBS; j++) {
        const int at = 39 * j - 6;
        r.l[j] = fqh_bits_at(t, FQ_WORDS, at);
        const u32 high = fqh_bits_at(t, FQ_WORDS, at + 32);
        r.d[j] = j < FQH_LIMBS - 1 ? fqh_digit(high, r.l[j])
                                   : fqh_add2(fqh_bits((high & 0x7f) | FQH_EXPONENT, r.l[j]), -0x1p36);
    }
    return r;
}

// 48 bytes for a normalised element below 2^382 in absolute value, in this form: sum (a_i + 2^38) 2^(39 i) + a_9 2^351.
// Memory between kernels holds that; no arithmetic is needed to read it.
FN void fqh_pack(u32* t, const fqh& a)
{
    u64 field[FQH_LIMBS + 1];
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++)
        field[j] = (u64)(fqh_high(fqh_add2(a.d[j], FQH_DIGIT_OFFSET)) & 0x7f) << 32 | a.l[j];
    field[FQH_LIMBS - 1] = (u64)(i64)(i32)a.l[FQH_LIMBS - 1];
    field[FQH_LIMBS] = 0;
    UNROLL for (int w = 0; w < FQ_WORDS; w++) {
        const int j = 32 * w / 39, shift = 32 * w % 39;
        t[w] = (u32)(field[j] >> shift);
        if (shift > 7) t[w] |= (u32)(field[j + 1] << (39 - shift));
    }
}

FN fqh fqh_unpack(const u32* t)
{
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS - 1; j++) {
        r.l[j] = fqh_bits_at(t, FQ_WORDS, 39 * j);
        r.d[j] = fqh_digit(fqh_bits_at(t, FQ_WORDS, 39 * j + 32), r.l[j]);
    }
    r.l[FQH_LIMBS - 1] = fqh_bits_at(t, FQ_WORDS, 39 * (FQH_LIMBS - 1));
    r.d[FQH_LIMBS - 1] = fqh_top(r.l[FQH_LIMBS - 1]);
    return r;
}

// Sum of 2^(38 + 39 i), i < 9.
CONSTANT u32 FQH_OFFSETS[FQ_WORDS] = {0, 0x40, 0x2000, 0x100000, 0x8000000, 0, 0x4, 0x200, 0x10000, 0x800000, 0x40000000, 0};

// To the form R = 2^384, below p, of a normalised a with |a| < p: (a + p + k p) / 64 with the k that makes it whole.
FN fq fqh_to_fq(const fqh& a)
{
    u32 t[FQ_WORDS];
    fqh_pack(t, a);
    // a + p, which is positive.
    t[0] = sub_cc(t[0], FQH_OFFSETS[0]);
    UNROLL for (int i = 1; i < FQ_WORDS - 1; i++) t[i] = subc_cc(t[i], FQH_OFFSETS[i]);
    t[FQ_WORDS - 1] = subc(t[FQ_WORDS - 1], FQH_OFFSETS[FQ_WORDS - 1]);
    const u32 k = (t[0] + FQ_P[0]) * FQ_M0 & 63;
    u32 sum[FQ_WORDS + 1];
    u64 carry = 0;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) {
        // The top word of a negative number is read with its sign, and so is the carry that goes past it.
        carry += (u64)FQ_P[i] * (k + 1) + (i < FQ_WORDS - 1 ? (u64)t[i] : (u64)(i64)(i32)t[i]);
        sum[i] = (u32)carry;
        carry = (u64)((i64)carry >> 32);
    }
    sum[FQ_WORDS] = (u32)carry;
    fq r;
    UNROLL for (int i = 0; i < FQ_WORDS; i++) r.v[i] = sum[i] >> 6 | sum[i + 1] << 26;
    return fq_reduce_once(r);
}

// From the form R = 2^384, below 0.52 p: a product with 2^390 in the same form.
FN fqh fqh_one()
{
    const double d[FQH_LIMBS] = {13762350,      5780597760,    -137223049952, -257394416602, 3717889551,
                                 -162825995361, 178168830730,  -31629561374,  -3246372054,   45863725};
    fqh r;
    UNROLL for (int j = 0; j < FQH_LIMBS; j++) r.d[j] = d[j] * FQH_SCALE, r.l[j] = fqh_limb_word(r.d[j]);
    return r;
}
FN fqh fqh_from_fq(const fq& a) { return fqh_mul(fqh_unpack64(a), fqh_one()); }
