//! Fr, the scalar field: 255 bits, five limbs, R = 2^260.

use core::arch::x86_64::*;

use blst::blst_fr;

use super::lane::{LIMB_MASK, each, hi, hidden, lo, splat};
use super::modulus::Modulus;
use super::mont::{accumulate, accumulate_square, montgomery_field, reduce};
use crate::arith::primes;

/// Limbs of an element.
pub const FR_LIMBS: usize = 5;

/// Constants of Fr.
pub static FR: Modulus<5> = Modulus::derive(primes::R);

montgomery_field!(
    /// Eight elements of Fr. r/R = 0.0283: a product is below 2r + 0.0283 ab/r, e.g. below 2.23r for a < 8r and a
    /// canonical b.
    ///
    /// The slack of 1024 in a partial reduction covers a whole NTT pass of raw sums; one unit of the top limb is r 2^-46.8.
    Fr, 5, 4, 4, FR, 1024
);

impl Fr {
    /// Eight consecutive blst elements (x 2^256), into normalised x R below 2.03r.
    ///
    /// # Safety
    /// `elements` is valid for reading eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn from_blst(elements: *const blst_fr) -> Self {
        // SAFETY: the caller vouches for eight elements.
        let limbs = Self::from_words(unsafe { load_words(elements) });
        Self::mul(&limbs, &Self::broadcast(&Self::constants().from_blst))
    }

    /// Eight consecutive blst elements (x 2^256, canonical), from any normalised value below 8r.
    ///
    /// # Safety
    /// `elements` is valid for writing eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn to_blst(self, elements: *mut blst_fr) {
        let r = Self::mul_raw(&self, &Self::broadcast(&Self::constants().to_blst)).canonical();
        // SAFETY: the caller vouches for eight elements.
        unsafe { store_words(r.to_words(), elements) };
    }

    /// [`Self::from_blst`] through memory, for callers without the target features.
    ///
    /// # Safety
    /// As there; `to` is valid for writing; the machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn from_blst_to(elements: *const blst_fr, to: *mut Self) {
        // SAFETY: the caller's pointers.
        unsafe { to.write(Self::from_blst(elements)) };
    }

    /// [`Self::to_blst`] through memory, for callers without the target features.
    ///
    /// # Safety
    /// As there; the machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn to_blst_from(from: &Self, elements: *mut blst_fr) {
        // SAFETY: the caller's pointer.
        unsafe { from.to_blst(elements) };
    }

    /// The plain numbers 0..r of eight consecutive blst elements, canonical.
    ///
    /// # Safety
    /// `elements` is valid for reading eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn plain_from_blst(elements: *const blst_fr) -> Self {
        // x 2^256 times 16 is x R 2^... : a product by 2^4 gives x 2^(256 + 4 - 260) = x.
        const SIXTEEN: [u64; 5] = [16, 0, 0, 0, 0];
        // SAFETY: the caller vouches for eight elements.
        let limbs = Self::from_words(unsafe { load_words(elements) });
        Self::mul_raw(&limbs, &Self::broadcast(&SIXTEEN)).canonical()
    }

    /// One element's limbs to all eight lanes' of a blst element: scalar helper for building tables.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn splat_blst(element: &blst_fr) -> Self {
        let elements = [*element; 8];
        // SAFETY: an array of eight.
        unsafe { Self::from_blst(elements.as_ptr()) }
    }
}

/// Four vectors of words from eight elements of four words: lane l of result i is word i of element l.
///
/// # Safety
/// `elements` is valid for reading eight elements.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_words(elements: *const blst_fr) -> [__m512i; 4] {
    let mut z = [_mm512_setzero_si512(); 4];
    each!(I, 4, {
        // SAFETY: 4 x 64 bytes = eight elements.
        z[I] = unsafe { _mm512_loadu_si512(elements.add(2 * I).cast()) };
    });
    let words_01 = _mm512_set_epi64(13, 9, 5, 1, 12, 8, 4, 0);
    let words_23 = _mm512_set_epi64(15, 11, 7, 3, 14, 10, 6, 2);
    let a = _mm512_permutex2var_epi64(z[0], words_01, z[1]);
    let b = _mm512_permutex2var_epi64(z[2], words_01, z[3]);
    let c = _mm512_permutex2var_epi64(z[0], words_23, z[1]);
    let d = _mm512_permutex2var_epi64(z[2], words_23, z[3]);
    [
        _mm512_shuffle_i64x2::<0x44>(a, b),
        _mm512_shuffle_i64x2::<0xee>(a, b),
        _mm512_shuffle_i64x2::<0x44>(c, d),
        _mm512_shuffle_i64x2::<0xee>(c, d),
    ]
}

/// The inverse of [`load_words`].
///
/// # Safety
/// `elements` is valid for writing eight elements.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn store_words(w: [__m512i; 4], elements: *mut blst_fr) {
    let pair = |low: __m512i, high: __m512i, lanes: __m512i| _mm512_permutex2var_epi64(low, lanes, high);
    let lanes_0123 = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    let lanes_4567 = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    // 01 of lanes 0..4 and 23 of lanes 0..4, then the same for lanes 4..8
    for (half, lanes) in [lanes_0123, lanes_4567].into_iter().enumerate() {
        let (a, b) = (pair(w[0], w[1], lanes), pair(w[2], w[3], lanes));
        let first = _mm512_permutex2var_epi64(a, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), b);
        let second = _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), b);
        // SAFETY: elements 4 half .. 4 half + 4, of eight.
        unsafe {
            _mm512_storeu_si512(elements.add(4 * half).cast(), first);
            _mm512_storeu_si512(elements.add(4 * half + 2).cast(), second);
        }
    }
}
