//! Constants of a prime field in 52-bit limbs, all derived at compile time from the prime itself.

use super::lane::LIMB_MASK;

/// Constants of a field with `N` limbs of 52 bits; R = 2^(52 N). Numbers are little-endian, all limbs below 2^52.
pub struct Modulus<const N: usize> {
    /// `multiples[k]` = k p, k = 0..=8.
    pub multiples: [[u64; N]; 9],
    /// 2^-52 mod p: folds a lowest limb t0 into the rest, since (t0 + 2^52 T) / 2^52 = T + t0 2^-52.
    pub fold: [u64; N],
    /// -p^-1 mod 2^52, for the one ordinary Montgomery step.
    pub neg_inverse: u64,
    /// R mod p, the Montgomery form of 1.
    pub one: [u64; N],
    /// 2^(2 * 52 N - 64 W) mod p: a product by it takes blst's x 2^(64 W) to x R.
    pub from_blst: [u64; N],
    /// 2^(64 W) mod p: a product by it takes x R to blst's x 2^(64 W).
    pub to_blst: [u64; N],
}

impl<const N: usize> Modulus<N> {
    /// Derives every constant from the prime, given as `W` little-endian words of 64 bits.
    pub const fn derive<const W: usize>(prime: [u64; W]) -> Self {
        let p = split(prime);
        let mut multiples = [[0; N]; 9];
        let mut k = 1;
        while k < 9 {
            multiples[k] = add(multiples[k - 1], p);
            k += 1;
        }
        let mut one_limb = [0; N];
        one_limb[0] = 1;
        Self {
            multiples,
            fold: halve(one_limb, p, 52),
            neg_inverse: negated_inverse(p[0]),
            one: double(one_limb, p, 52 * N),
            from_blst: double(one_limb, p, 2 * 52 * N - 64 * W),
            to_blst: double(one_limb, p, 64 * W),
        }
    }
}

/// Cuts 64-bit words into 52-bit limbs.
pub const fn split<const W: usize, const N: usize>(words: [u64; W]) -> [u64; N] {
    let mut limbs = [0; N];
    let mut i = 0;
    while i < N {
        let (word, shift) = (52 * i / 64, 52 * i % 64);
        if word < W {
            limbs[i] = words[word] >> shift;
            if shift > 12 && word + 1 < W {
                limbs[i] |= words[word + 1] << (64 - shift);
            }
            limbs[i] &= LIMB_MASK;
        }
        i += 1;
    }
    limbs
}

/// a + b, carries propagated.
const fn add<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    let mut sum = [0; N];
    let (mut carry, mut i) = (0, 0);
    while i < N {
        let s = a[i] + b[i] + carry;
        sum[i] = s & LIMB_MASK;
        carry = s >> 52;
        i += 1;
    }
    sum
}

/// a - p where a >= p, else a.
const fn subtract_once<const N: usize>(a: [u64; N], p: [u64; N]) -> [u64; N] {
    let mut difference = [0; N];
    let (mut borrow, mut i) = (0, 0);
    while i < N {
        let d = a[i].wrapping_sub(p[i]).wrapping_sub(borrow);
        difference[i] = d & LIMB_MASK;
        borrow = d >> 63;
        i += 1;
    }
    if borrow == 0 { difference } else { a }
}

/// a 2^times mod p.
const fn double<const N: usize>(mut a: [u64; N], p: [u64; N], times: usize) -> [u64; N] {
    let mut i = 0;
    while i < times {
        a = subtract_once(add(a, a), p);
        i += 1;
    }
    a
}

/// a 2^-times mod p.
const fn halve<const N: usize>(mut a: [u64; N], p: [u64; N], times: usize) -> [u64; N] {
    let mut round = 0;
    while round < times {
        if a[0] & 1 == 1 {
            a = add(a, p);
        }
        let mut i = 0;
        while i < N {
            let above = if i + 1 < N { a[i + 1] & 1 } else { 0 };
            a[i] = (a[i] >> 1) | (above << 51);
            i += 1;
        }
        round += 1;
    }
    a
}

/// -p0^-1 mod 2^52 by Newton's iteration, which doubles the number of right bits each time (3 -> 96).
const fn negated_inverse(p0: u64) -> u64 {
    let mut inverse = p0;
    let mut i = 0;
    while i < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(p0.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg() & LIMB_MASK
}
