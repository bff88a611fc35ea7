//! Fq, the base field: 381 bits, eight limbs, R = 2^416.

use core::arch::x86_64::*;

use blst::{blst_fp, blst_fp_eucl_inverse, blst_fp_mul};

use super::lane::{LIMB_MASK, each, hi, hidden, lo, splat, transpose};
use super::modulus::Modulus;
use super::mont::{accumulate, accumulate_square, montgomery_field, reduce};
use super::point_field::{PointField, forward, forward_limbwise};
use crate::arith::primes;

/// Constants of Fq.
pub static FQ: Modulus<8> = Modulus::derive(primes::Q);

montgomery_field!(
    /// Eight elements of Fq. q/R = 2^-35, so a product of factors below 16q is below 2.001q.
    ///
    /// The slack of 128 in a partial reduction covers 46 carries of a raw double product and a few raw sums; one unit of
    /// the top limb is q 2^-16.7.
    Fq, 8, 7, 6, FQ, 128
);

/// One element in a table: the eight limbs, one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct FqRow(pub [u64; 8]);

impl Fq {
    /// Reads eight rows, one into each lane: eight loads and a transposition (`vpgatherqq` is slower).
    ///
    /// # Safety
    /// Every pointer is valid for reading.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn load_rows(rows: [*const FqRow; 8]) -> Self {
        let mut r = Self::zero();
        each!(I, 8, {
            // SAFETY: the caller vouches for the pointers; a row is 64 aligned bytes.
            r.0[I] = unsafe { _mm512_load_si512(rows[I].cast()) };
        });
        Self(transpose(r.0))
    }

    /// Writes lane l to row l.
    ///
    /// # Safety
    /// Every pointer is valid for writing.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn store_rows(self, rows: [*mut FqRow; 8]) {
        let r = transpose(self.0);
        each!(I, 8, {
            // SAFETY: the caller vouches for the pointers; a row is 64 aligned bytes.
            unsafe { _mm512_store_si512(rows[I].cast(), r[I]) };
        });
    }

    /// Eight blst elements (x 2^384), into normalised x R below 2.001q.
    ///
    /// # Safety
    /// Every pointer is valid for reading.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn from_blst(elements: [*const blst_fp; 8]) -> Self {
        let mut r = [_mm512_setzero_si512(); 8];
        each!(I, 8, {
            // SAFETY: the caller vouches for the pointers; the mask keeps to the six words of an element.
            r[I] = unsafe { _mm512_maskz_loadu_epi64(0x3f, elements[I].cast()) };
        });
        let w = transpose(r);
        let limbs = Self::from_words([w[0], w[1], w[2], w[3], w[4], w[5]]);
        Self::mul(&limbs, &Self::broadcast(&Self::constants().from_blst))
    }

    /// Eight blst elements (x 2^384, canonical) from any normalised value.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn to_blst(self) -> [blst_fp; 8] {
        let w = Self::mul_raw(&self, &Self::broadcast(&Self::constants().to_blst)).canonical().to_words();
        let zero = _mm512_setzero_si512();
        let r = transpose([w[0], w[1], w[2], w[3], w[4], w[5], zero, zero]);
        let mut elements = [blst_fp::default(); 8];
        each!(I, 8, {
            // SAFETY: the mask keeps to the six words of an element.
            unsafe { _mm512_mask_storeu_epi64((&raw mut elements[I]).cast(), 0x3f, r[I]) };
        });
        elements
    }

    /// 1/x in all lanes, normalised and below 2.001q; `None` if some lane is zero.
    ///
    /// One scalar inversion and Montgomery's trick over the eight lanes in blst: about 2 us.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn invert(self) -> Option<Self> {
        let x = self.to_blst();
        let mut inverses = [blst_fp::default(); 8];
        let multiply = |a: &blst_fp, b: &blst_fp| {
            let mut product = blst_fp::default();
            // SAFETY: references are valid pointers.
            unsafe { blst_fp_mul(&mut product, a, b) };
            product
        };
        // inverses[l] = x[0] .. x[l]
        inverses[0] = x[0];
        for l in 1..8 {
            inverses[l] = multiply(&inverses[l - 1], &x[l]);
        }
        if inverses[7] == blst_fp::default() {
            return None;
        }
        let mut rest = blst_fp::default();
        // SAFETY: references are valid pointers.
        unsafe { blst_fp_eucl_inverse(&mut rest, &inverses[7]) };
        for l in (1..8).rev() {
            inverses[l] = multiply(&rest, &inverses[l - 1]);
            rest = multiply(&rest, &x[l]);
        }
        inverses[0] = rest;
        // SAFETY: pointers to the elements of a live array.
        Some(unsafe { Self::from_blst(core::array::from_fn(|l| &raw const inverses[l])) })
    }
}

// SAFETY: ranges as documented at the inherent methods.
unsafe impl PointField for Fq {
    type Row = FqRow;
    type Blst = blst_fp;

    forward_limbwise!();

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn one() -> Self {
        Self::one()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn load_rows(rows: [*const FqRow; 8]) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::load_rows(rows) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store_rows(self, rows: [*mut FqRow; 8]) {
        // SAFETY: the caller's.
        unsafe { self.store_rows(rows) }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn from_blst(elements: [*const blst_fp; 8]) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::from_blst(elements) }.canonical()
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn to_blst(self) -> [blst_fp; 8] {
        self.to_blst()
    }

    // Not inlined: the body is 2 KiB of code; the processor overlaps consecutive calls by itself.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn mul<const NORM: bool>(out: *mut Self, a: *const Self, b: *const Self) {
        // SAFETY: the caller's pointers; both factors are read before the result is written.
        unsafe {
            let mut t = [_mm512_setzero_si512(); 16];
            accumulate!(t, &*a, &*b, 8);
            let product = reduce!(Fq, t, 8, 7);
            *out = if NORM { product.norm() } else { product };
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn sqr<const NORM: bool>(out: *mut Self, a: *const Self) {
        // SAFETY: the caller's pointers; the factor is read before the result is written.
        unsafe {
            let mut t = [_mm512_setzero_si512(); 16];
            accumulate_square!(t, &*a, 8);
            let square = reduce!(Fq, t, 8, 7);
            *out = if NORM { square.norm() } else { square };
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn invert(self) -> Option<Self> {
        self.invert()
    }
}
