//! Fq2 = Fq\[u\]/(u^2 + 1), eight elements per vector.

use blst::{blst_fp, blst_fp2};

use super::fq::{Fq, FqRow};
use super::point_field::{PointField, forward, forward_limbwise};

/// Eight elements c0 + c1 u. Ranges hold for each component.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Fq2 {
    /// Real part.
    pub c0: Fq,
    /// Coefficient of u.
    pub c1: Fq,
}

/// Defines componentwise methods by those of [`Fq`].
macro_rules! componentwise {
    ($(#[$doc:meta])* $name:ident $(<const $K:ident>)? ($($mask:ident: u8)? $(; $b:ident)?)) => {
        $(#[$doc])*
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
        pub fn $name $(<const $K: usize>)? (self $(, $mask: u8)? $(, $b: Self)?) -> Self {
            Self {
                c0: self.c0.$name $(::<$K>)? ($($mask,)? $($b.c0)?),
                c1: self.c1.$name $(::<$K>)? ($($mask,)? $($b.c1)?),
            }
        }
    };
}

impl Fq2 {
    componentwise!(/** Raw a + b. */ add_raw(; b));
    componentwise!(/** Raw a - b. */ sub_raw(; b));
    componentwise!(/** Raw a + K p. */ plus<const K>());
    componentwise!(/** Partial reduction. */ cut<const K>());
    componentwise!(/** Carries propagated. */ norm());
    componentwise!(/** Raw negation in the lanes of `mask`. */ negate_lanes(mask: u8));
    componentwise!(/** `b` in the lanes of `mask`. */ blend(mask: u8; b));

    /// Lanes that are zero. Raw values in 0..8p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn zero_lanes(self) -> u8 {
        self.c0.zero_lanes() & self.c1.zero_lanes()
    }

    /// Raw product below 2.001p: (a0 b0 - a1 b1) + (a0 b1 + a1 b0) u, two reductions.
    ///
    /// 2 (128 + 128 + 129) multiply-adds; Karatsuba needs 3 * 257, as many, and subtractions on top. The difference is a
    /// sum with 16p - a1, formed before the product: factors must be below 16p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn mul_raw(a: &Self, b: &Self) -> Self {
        let minus_a1 = a.c1.negate_lanes(0xff).plus::<8>().plus::<8>().norm();
        Self {
            c0: Fq::mul_mul_add_raw(&a.c0, &b.c0, &minus_a1, &b.c1),
            c1: Fq::mul_mul_add_raw(&a.c0, &b.c1, &a.c1, &b.c0),
        }
    }

    /// Raw square below 2.001p: (a0 + a1)(a0 - a1) + 2 a0 a1 u. The factor is below 8p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn sqr_raw(a: &Self) -> Self {
        let sum = a.c0.add_raw(a.c1).norm();
        let difference = a.c0.sub_raw(a.c1).plus::<8>().norm();
        let twice = a.c0.add_raw(a.c0).norm();
        Self { c0: Fq::mul_raw(&sum, &difference), c1: Fq::mul_raw(&twice, &a.c1) }
    }
}

// SAFETY: ranges as documented at the inherent methods.
unsafe impl PointField for Fq2 {
    type Row = [FqRow; 2];
    type Blst = blst_fp2;

    forward_limbwise!();

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn one() -> Self {
        Self { c0: Fq::one(), c1: Fq::zero() }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn load_rows(rows: [*const Self::Row; 8]) -> Self {
        // SAFETY: the caller's rows; a row is its two components.
        unsafe {
            Self {
                c0: Fq::load_rows(rows.map(|r| r.cast())),
                c1: Fq::load_rows(rows.map(|r| r.cast::<FqRow>().add(1))),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store_rows(self, rows: [*mut Self::Row; 8]) {
        // SAFETY: the caller's rows; a row is its two components.
        unsafe {
            self.c0.store_rows(rows.map(|r| r.cast()));
            self.c1.store_rows(rows.map(|r| r.cast::<FqRow>().add(1)));
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn from_blst(elements: [*const blst_fp2; 8]) -> Self {
        // SAFETY: the caller's elements; an element is its two components.
        unsafe {
            Self {
                c0: Fq::from_blst(elements.map(|e| e.cast())).canonical(),
                c1: Fq::from_blst(elements.map(|e| e.cast::<blst_fp>().add(1))).canonical(),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn to_blst(self) -> [blst_fp2; 8] {
        let (c0, c1) = (self.c0.to_blst(), self.c1.to_blst());
        core::array::from_fn(|l| blst_fp2 { fp: [c0[l], c1[l]] })
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn mul<const NORM: bool>(out: *mut Self, a: *const Self, b: *const Self) {
        // SAFETY: the caller's pointers; both factors are read before the result is written.
        unsafe {
            let product = Self::mul_raw(&*a, &*b);
            *out = if NORM { product.norm() } else { product };
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn sqr<const NORM: bool>(out: *mut Self, a: *const Self) {
        // SAFETY: the caller's pointers; the factor is read before the result is written.
        unsafe {
            let square = Self::sqr_raw(&*a);
            *out = if NORM { square.norm() } else { square };
        }
    }

    /// (a0 - a1 u) / (a0^2 + a1^2): the norm is inverted in Fq.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn invert(self) -> Option<Self> {
        let norm = Fq::mul_mul_add_raw(&self.c0, &self.c0, &self.c1, &self.c1).norm();
        let inverse = norm.invert()?;
        let minus_c1 = self.c1.negate_lanes(0xff).plus::<8>().norm();
        Some(Self { c0: Fq::mul(&self.c0, &inverse), c1: Fq::mul(&minus_c1, &inverse) })
    }
}
