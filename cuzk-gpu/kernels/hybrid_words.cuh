// Elements in the hybrid form (hybrid.cuh) in memory: packed, as doubles, and the way from and to the field's integer
// form, R = 2^(32 F::WORDS). For that a field adds to its shape: `element`, the integer form; offsets(i), the words of
// the sum of 2^(w-1 + w i), i < n - 1; offsets_shifted(i), those of this sum divided by 2^SHIFT; modulus(i), the words
// of p; inverse(), -p^-1 mod 2^32; and reduce(a), a - p or a, below p.
//
// Packed, an element below p in absolute value is the number sum (a_i + 2^(w-1)) 2^(w i), i < n - 1, + a_(n-1) 2^(w
// (n-1)): the digits lie there without signs, and no arithmetic is needed to read them. 2^SHIFT times an element in the
// integer form is the same element in the form R = 2^(w n).
#pragma once
#include "hybrid.cuh"

// 32 bits of a number of words, from bit `at` on; zeros above its end.
FN u32 hybrid_bits_at(const u32* words, int count, int at)
{
    const int word = at >> 5, shift = at & 31;
    const u32 low = word < count ? words[word] : 0, high = word + 1 < count ? words[word + 1] : 0;
    return shift == 0 ? low : low >> shift | high << (32 - shift);
}

// From the integer form, of which 2^SHIFT a is the form R = 2^(w n): below 2^SHIFT p and normalised. A legal operand of
// one product; hybrid_from gives a small value.
template <class F>
FN hybrid<F> hybrid_unpack_shifted(const typename F::element& a)
{
    u32 t[F::WORDS];
    t[0] = add_cc(a.v[0], F::offsets_shifted(0));
    UNROLL for (int i = 1; i < F::WORDS - 1; i++) t[i] = addc_cc(a.v[i], F::offsets_shifted(i));
    t[F::WORDS - 1] = addc(a.v[F::WORDS - 1], F::offsets_shifted(F::WORDS - 1));
    hybrid<F> r;
    r.l[0] = t[0] << F::SHIFT;
    r.d[0] = hybrid_digit<F>(t[1] << F::SHIFT | t[0] >> (32 - F::SHIFT), r.l[0]);
    UNROLL for (int j = 1; j < F::LIMBS; j++) {
        const int at = F::BITS * j - F::SHIFT;
        r.l[j] = hybrid_bits_at(t, F::WORDS, at);
        const u32 high = hybrid_bits_at(t, F::WORDS, at + 32);
        r.d[j] = j < F::LIMBS - 1 ? hybrid_digit<F>(high, r.l[j])
                                  : hybrid_add2(hybrid_bits((high & F::HIGH_MASK) | HYBRID_EXPONENT, r.l[j]), -0x1p36);
    }
    return r;
}

// Packs what hybrid_columns_end made.
template <class F>
FN void hybrid_pack(u32* t, const hybrid<F>& a, const u32* high)
{
    u64 field[F::LIMBS + 1];
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) field[j] = (u64)(high[j] & F::HIGH_MASK) << 32 | a.l[j];
    field[F::LIMBS - 1] = (u64)(i64)(i32)a.l[F::LIMBS - 1];
    field[F::LIMBS] = 0;
    UNROLL for (int w = 0; w < F::WORDS; w++) {
        const int j = 32 * w / F::BITS, shift = 32 * w % F::BITS;
        t[w] = (u32)(field[j] >> shift);
        if (shift > F::HIGH_BITS) t[w] |= (u32)(field[j + 1] << (F::BITS - shift));
    }
}

// Packs a normalised element.
template <class F>
FN void hybrid_pack(u32* t, const hybrid<F>& a)
{
    u32 high[F::LIMBS - 1];
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) high[j] = hybrid_high(hybrid_add2(a.d[j], F::DIGIT_OFFSET));
    hybrid_pack(t, a, high);
}

template <class F>
FN hybrid<F> hybrid_unpack(const u32* t)
{
    hybrid<F> r;
    UNROLL for (int j = 0; j < F::LIMBS - 1; j++) {
        r.l[j] = hybrid_bits_at(t, F::WORDS, F::BITS * j);
        r.d[j] = hybrid_digit<F>(hybrid_bits_at(t, F::WORDS, F::BITS * j + 32), r.l[j]);
    }
    // What is left of the words, with its sign.
    const int top = F::BITS * (F::LIMBS - 1), last = F::WORDS - 1;
    r.l[F::LIMBS - 1] = top < 32 * last ? hybrid_bits_at(t, F::WORDS, top) : (u32)((i32)t[last] >> (top & 31));
    r.d[F::LIMBS - 1] = hybrid_top(r.l[F::LIMBS - 1]);
    return r;
}

// To the integer form, of a normalised a with |a| < p: (a + p + k p) 2^-SHIFT with the k that makes it whole.
template <class F>
FN typename F::element hybrid_to(const hybrid<F>& a)
{
    u32 t[F::WORDS];
    hybrid_pack(t, a);
    // a with its sign.
    t[0] = sub_cc(t[0], F::offsets(0));
    UNROLL for (int i = 1; i < F::WORDS - 1; i++) t[i] = subc_cc(t[i], F::offsets(i));
    t[F::WORDS - 1] = subc(t[F::WORDS - 1], F::offsets(F::WORDS - 1));
    const u32 k = (t[0] + F::modulus(0)) * F::inverse() & ((1u << F::SHIFT) - 1);
    u32 sum[F::WORDS + 1];
    u64 carry = 0;
    UNROLL for (int i = 0; i < F::WORDS; i++) {
        // The top word of a negative number is read with its sign, and so is the carry that goes past it.
        carry += (u64)F::modulus(i) * (k + 1) + (i < F::WORDS - 1 ? (u64)t[i] : (u64)(i64)(i32)t[i]);
        sum[i] = (u32)carry;
        carry = (u64)((i64)carry >> 32);
    }
    sum[F::WORDS] = (u32)carry;
    typename F::element r;
    UNROLL for (int i = 0; i < F::WORDS; i++) r.v[i] = sum[i] >> F::SHIFT | sum[i + 1] << (32 - F::SHIFT);
    return F::reduce(r);
}

// sign a as a number within p / 2, for limbs below 2^(w+5); also for hybrid_pack. No product is needed.
template <class F>
FN hybrid<F> hybrid_small(int sign, const hybrid<F>& a, u32* high)
{
    hybrid_columns<F> w = hybrid_no_columns<F>();
    hybrid_columns_add(w, sign, a);
    hybrid_columns_settle(w, -sign * a.d[F::LIMBS - 1]);
    return hybrid_columns_end(w, high);
}
template <class F>
FN hybrid<F> hybrid_small(int sign, const hybrid<F>& a)
{
    u32 high[F::LIMBS - 1];
    return hybrid_small(sign, a, high);
}
template <class F>
FN hybrid<F> hybrid_from(const typename F::element& a)
{
    return hybrid_small(1, hybrid_unpack_shifted<F>(a));
}

// An element in memory (shared, on a device): its limbs as doubles, `stride` apart, so that the lanes of a warp read
// neighbouring words.
template <class F>
struct hybrid_ref {
    double* limbs;
    int stride;
};

template <class F>
FN hybrid<F> hybrid_get(const hybrid_ref<F>& from)
{
    hybrid<F> r;
    UNROLL for (int j = 0; j < F::LIMBS; j++) r.d[j] = from.limbs[j * from.stride], r.l[j] = hybrid_limb_word(r.d[j]);
    return r;
}
template <class F>
FN void hybrid_set(const hybrid_ref<F>& to, const hybrid<F>& a)
{
    UNROLL for (int j = 0; j < F::LIMBS; j++) to.limbs[j * to.stride] = a.d[j];
}
