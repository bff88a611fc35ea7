//! The base field, on blst's representation: six limbs, Montgomery form with R = 2^384.

use blst::{blst_fp, blst_fp_eucl_inverse};

use super::limbs::{self, Multiples};
use super::mont::{Modulus, has_two_carry_chains, mul_compiled, mul6};
use crate::arith::primes;

/// An element as any representative below p + 2^380 < 1.62p; [`Fq::canonical`] is that of blst.
///
/// Products come out below p + 0.102 * 1.62^2 p < 1.27p.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Fq(pub [u64; 6]);

/// p.
pub static MODULUS: Modulus<6> = Modulus::new(primes::Q);

static MULTIPLES: Multiples<6> = limbs::multiples(&MODULUS.prime);

impl Fq {
    /// R modulo p.
    pub const ONE: Self = Self([
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ]);

    /// a b to `out`. Not inlined: six of these in one loop would leave no room in the cache of decoded instructions. And not
    /// returned: limbs that were stored one by one and are read two by two, as a copy does, cannot be forwarded.
    #[inline(never)]
    pub fn mul_to(out: &mut Self, a: &Self, b: &Self) {
        if has_two_carry_chains() {
            // SAFETY: seen just now.
            unsafe { mul6(&mut out.0, &a.0, &b.0, &MODULUS) };
        } else {
            mul_compiled(&mut out.0, &a.0, &b.0, &MODULUS);
        }
    }

    /// a b.
    #[inline]
    pub fn mul(a: &Self, b: &Self) -> Self {
        let mut product = Self::default();
        Self::mul_to(&mut product, a, b);
        product
    }

    /// a + b.
    #[inline]
    pub fn add(a: &Self, b: &Self) -> Self {
        Self(limbs::sum(&a.0, &b.0, &MULTIPLES))
    }

    /// a - b.
    #[inline]
    pub fn sub(a: &Self, b: &Self) -> Self {
        Self(limbs::difference(&a.0, &b.0, &MULTIPLES))
    }

    /// a - b - c.
    #[inline]
    pub fn sub_both(a: &Self, b: &Self, c: &Self) -> Self {
        let (difference, borrow) = limbs::sub(&a.0, &b.0);
        let (difference, again) = limbs::sub(&difference, &c.0);
        Self(limbs::reduce(&difference, -i64::from(borrow) - i64::from(again), &MULTIPLES))
    }

    /// (a0 + a1) (b0 + b1), the sums below 3.24p not reduced: the product is below p + 0.102 * 3.24^2 p < 2.07p, which is
    /// more than other functions here take.
    fn mul_of_sums(a: [&Self; 2], b: [&Self; 2]) -> Self {
        Self::mul(&Self(limbs::add(&a[0].0, &a[1].0).0), &Self(limbs::add(&b[0].0, &b[1].0).0))
    }

    /// a0 b1 + a1 b0, given a0 b0 and a1 b1.
    pub fn cross_product(a: [&Self; 2], b: [&Self; 2], straight: [&Self; 2]) -> Self {
        Self::sub_both(&Self::mul_of_sums(a, b), straight[0], straight[1])
    }

    /// The representative below p.
    pub fn canonical(&self) -> Self {
        Self(limbs::canonical(&self.0, &MODULUS.prime))
    }

    /// Is it 0 modulo p?
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 6] || self.0 == MODULUS.prime
    }

    /// 1/a, and 0 for 0.
    pub fn invert(&self) -> Self {
        let mut inverse = blst_fp { l: self.canonical().0 };
        // SAFETY: one valid pointer, to read and to write.
        unsafe { blst_fp_eucl_inverse(&mut inverse, &inverse) };
        Self(inverse.l)
    }
}
