//! The scalar field, on blst's representation: four limbs, Montgomery form with R = 2^256 = 2.209r.

use blstrs::Scalar;

use super::limbs::{self, Multiples};
use super::mont::{Modulus, has_two_carry_chains, mul_compiled, mul4};
use crate::arith::primes;

/// An element as *any* representative that four limbs hold; or, where it is said, a *tight* one: below r + 2^252 < 1.14r.
/// A `Scalar` has the same layout, and is the representative below r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Fr(pub [u64; 4]);

/// r.
pub static MODULUS: Modulus<4> = Modulus::new(primes::R);

static MULTIPLES: Multiples<4> = limbs::multiples(&MODULUS.prime);

impl Fr {
    /// Any product, of a tight `a` and any `b`: a + r < 2.14r fits, which is what a product needs.
    #[inline]
    pub fn mul(a: &Self, b: &Self) -> Self {
        debug_assert!(limbs::add(&a.0, &MODULUS.prime).1 == 0);
        let mut product = Self::default();
        if has_two_carry_chains() {
            // SAFETY: seen just now.
            unsafe { mul4(&mut product.0, &a.0, &b.0, &MODULUS) };
        } else {
            mul_compiled(&mut product.0, &a.0, &b.0, &MODULUS);
        }
        product
    }

    /// Tight a + b: below 2^257 before it is reduced.
    #[inline]
    pub fn add(a: &Self, b: &Self) -> Self {
        Self(limbs::sum(&a.0, &b.0, &MULTIPLES))
    }

    /// Tight a - b: above -2^256 before it is reduced.
    #[inline]
    pub fn sub(a: &Self, b: &Self) -> Self {
        Self(limbs::difference(&a.0, &b.0, &MULTIPLES))
    }

    /// The same number, tight.
    #[inline]
    pub fn tighten(&self) -> Self {
        Self(limbs::reduce(&self.0, 0, &MULTIPLES))
    }

    /// The representative below r.
    #[inline]
    pub fn canonical(&self) -> Self {
        Self(limbs::canonical(&self.tighten().0, &MODULUS.prime))
    }

    /// Scalars as elements.
    pub fn of_scalars(scalars: &[Scalar]) -> &[Self] {
        // SAFETY: four limbs each, and any limbs are valid.
        unsafe { core::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len()) }
    }

    /// Elements in the place of scalars, to be made canonical before anybody looks at them as scalars again.
    pub fn in_scalars(scalars: &mut [Scalar]) -> &mut [Self] {
        // SAFETY: as above. What `Scalar` asks for beyond any limbs is arithmetic, not memory.
        unsafe { core::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), scalars.len()) }
    }
}

impl From<Scalar> for Fr {
    fn from(scalar: Scalar) -> Self {
        Self::of_scalars(&[scalar])[0]
    }
}

const _: () = assert!(size_of::<Fr>() == size_of::<Scalar>() && align_of::<Fr>() == align_of::<Scalar>());
