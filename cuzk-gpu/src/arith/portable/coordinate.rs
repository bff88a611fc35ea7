//! What curves need of a coordinate field, over Fq (G1) and Fq2 (G2); and points over it.

use core::fmt::Debug;

use blst::{blst_fp, blst_fp2};

use super::fq::Fq;

/// A field of coordinates. All values are some representatives in a range of their own, and operations stay in it.
pub trait Coordinate: Copy + Debug + Default + Send + Sync + 'static {
    /// One.
    const ONE: Self;
    /// a b.
    fn mul(a: &Self, b: &Self) -> Self;
    /// a b, written to `out` without a copy.
    fn mul_to(out: &mut Self, a: &Self, b: &Self);
    /// a^2.
    fn sqr(a: &Self) -> Self;
    /// a + b.
    fn add(a: &Self, b: &Self) -> Self;
    /// a - b.
    fn sub(a: &Self, b: &Self) -> Self;
    /// a - b - c.
    fn sub_both(a: &Self, b: &Self, c: &Self) -> Self;
    /// blst's representative.
    fn canonical(&self) -> Self;
    /// Is it zero, in any representative?
    fn is_zero(&self) -> bool;
    /// Are all limbs zero?
    fn is_blank(&self) -> bool;
    /// 1/a, and 0 for 0.
    fn invert(&self) -> Self;
}

impl Coordinate for Fq {
    const ONE: Self = Self::ONE;

    #[inline]
    fn mul(a: &Self, b: &Self) -> Self {
        Self::mul(a, b)
    }

    #[inline]
    fn mul_to(out: &mut Self, a: &Self, b: &Self) {
        Self::mul_to(out, a, b);
    }

    #[inline]
    fn sqr(a: &Self) -> Self {
        Self::mul(a, a)
    }

    #[inline]
    fn add(a: &Self, b: &Self) -> Self {
        Self::add(a, b)
    }

    #[inline]
    fn sub(a: &Self, b: &Self) -> Self {
        Self::sub(a, b)
    }

    #[inline]
    fn sub_both(a: &Self, b: &Self, c: &Self) -> Self {
        Self::sub_both(a, b, c)
    }

    fn canonical(&self) -> Self {
        self.canonical()
    }

    fn is_zero(&self) -> bool {
        self.is_zero()
    }

    #[inline]
    fn is_blank(&self) -> bool {
        // Not `==`, which becomes a call of memcmp.
        self.0.iter().fold(0, |bits, limb| bits | limb) == 0
    }

    fn invert(&self) -> Self {
        self.invert()
    }
}

/// c0 + c1 u with u^2 = -1.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Fq2 {
    /// Real part.
    pub c0: Fq,
    /// Coefficient of u.
    pub c1: Fq,
}

impl Coordinate for Fq2 {
    const ONE: Self = Self { c0: Fq::ONE, c1: Fq([0; 6]) };

    /// Three products: a0 b0 - a1 b1, and a0 b1 + a1 b0 = (a0 + a1) (b0 + b1) - a0 b0 - a1 b1.
    fn mul(a: &Self, b: &Self) -> Self {
        let (v0, v1) = (Fq::mul(&a.c0, &b.c0), Fq::mul(&a.c1, &b.c1));
        Self { c0: Fq::sub(&v0, &v1), c1: Fq::cross_product([&a.c0, &a.c1], [&b.c0, &b.c1], [&v0, &v1]) }
    }

    fn mul_to(out: &mut Self, a: &Self, b: &Self) {
        *out = Self::mul(a, b);
    }

    /// Two products: (a0 + a1) (a0 - a1), and 2 a0 a1.
    fn sqr(a: &Self) -> Self {
        let c0 = Fq::mul(&Fq::add(&a.c0, &a.c1), &Fq::sub(&a.c0, &a.c1));
        let v = Fq::mul(&a.c0, &a.c1);
        Self { c0, c1: Fq::add(&v, &v) }
    }

    fn add(a: &Self, b: &Self) -> Self {
        Self { c0: Fq::add(&a.c0, &b.c0), c1: Fq::add(&a.c1, &b.c1) }
    }

    fn sub(a: &Self, b: &Self) -> Self {
        Self { c0: Fq::sub(&a.c0, &b.c0), c1: Fq::sub(&a.c1, &b.c1) }
    }

    fn sub_both(a: &Self, b: &Self, c: &Self) -> Self {
        Self { c0: Fq::sub_both(&a.c0, &b.c0, &c.c0), c1: Fq::sub_both(&a.c1, &b.c1, &c.c1) }
    }

    fn canonical(&self) -> Self {
        Self { c0: self.c0.canonical(), c1: self.c1.canonical() }
    }

    fn is_zero(&self) -> bool {
        self.c0.is_zero() && self.c1.is_zero()
    }

    fn is_blank(&self) -> bool {
        self.c0.is_blank() && self.c1.is_blank()
    }

    /// (a0 - a1 u) / (a0^2 + a1^2).
    fn invert(&self) -> Self {
        let norm = Fq::add(&Fq::mul(&self.c0, &self.c0), &Fq::mul(&self.c1, &self.c1)).invert();
        Self { c0: Fq::mul(&self.c0, &norm), c1: Fq::sub(&Fq([0; 6]), &Fq::mul(&self.c1, &norm)) }
    }
}

/// An affine point, laid out as blst's. All limbs of y zero: the identity, as in blst. (No other point has y = 0: the
/// groups have odd order.)
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Point<F> {
    /// Affine x.
    pub x: F,
    /// Affine y.
    pub y: F,
}

impl<F: Coordinate> Point<F> {
    /// Is it the identity?
    #[inline]
    pub fn is_identity(&self) -> bool {
        self.y.is_blank()
    }
}

const _: () = assert!(size_of::<Fq>() == size_of::<blst_fp>() && size_of::<Fq2>() == size_of::<blst_fp2>());
