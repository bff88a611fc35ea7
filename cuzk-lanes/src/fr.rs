//! Fr, the scalar field: 255 bits, five limbs, R = 2^260.

use core::arch::x86_64::*;

use blst::blst_fr;

use crate::lane::{LIMB_MASK, each, hi, hidden, lo, splat};
use crate::modulus::Modulus;
use crate::mont::{accumulate, accumulate_square, montgomery_field, reduce};
use crate::primes;

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
    /// Eight consecutive blst elements as they are: x 2^256, canonical.
    ///
    /// # Safety
    /// `elements` is valid for reading eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn load(elements: *const blst_fr) -> Self {
        // SAFETY: the caller vouches for eight elements.
        Self::from_words(unsafe { load_words(elements) })
    }

    /// The inverse of [`Self::load`], of canonical values x 2^256.
    ///
    /// # Safety
    /// `elements` is valid for writing eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn store(self, elements: *mut blst_fr) {
        // SAFETY: the caller vouches for eight elements.
        unsafe { store_words(self.to_words(), elements) };
    }

    /// 16 x, normalised, of a canonical x: below R. It takes x 2^256 to x R, so that a product by it is in blst's form if
    /// the other factor is.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn shifted(self) -> Self {
        let mask = splat(LIMB_MASK);
        let mut r = Self::zero();
        each!(I, 5, {
            let limb = _mm512_and_si512(_mm512_slli_epi64::<4>(self.0[I]), mask);
            const BELOW: usize = if I == 0 { 0 } else { I - 1 };
            let carry = if I == 0 { _mm512_setzero_si512() } else { _mm512_srli_epi64::<48>(self.0[BELOW]) };
            r.0[I] = _mm512_or_si512(limb, carry);
        });
        r
    }

    /// Raw Σ x_i y_i / R, below 2r + Σ x_i y_i / R, for the y_i the same in all lanes: one reduction. Factors normalised,
    /// 16 at most.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn dot_raw<const N: usize>(x: &[Self; N], y: &[[u64; FR_LIMBS]; N]) -> Self {
        // The columns are below 16 * 10 * 2^52.
        const { assert!(N <= 16) };
        let mut t = [_mm512_setzero_si512(); 10];
        for (x, y) in x.iter().zip(y) {
            let y = Self::broadcast(y);
            accumulate!(t, x, &y, 5);
        }
        reduce!(Self, t, 5, 4)
    }

    /// Eight consecutive blst elements (x 2^256), into normalised x R below 2.03r.
    ///
    /// # Safety
    /// `elements` is valid for reading eight elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn from_blst(elements: *const blst_fr) -> Self {
        // SAFETY: the caller vouches for eight elements.
        let limbs = unsafe { Self::load(elements) };
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
        unsafe { r.store(elements) };
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
        let limbs = unsafe { Self::load(elements) };
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

#[cfg(test)]
mod tests {
    use blst::{blst_fr_add, blst_fr_mul, blst_fr_sub, blst_scalar, blst_scalar_from_fr};
    use blstrs::Scalar;
    use ff::Field;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;
    use crate::{backend::Backend, modulus::split};

    type Lanes = [blst_fr; 8];

    fn map2(a: &Lanes, b: &Lanes, f: unsafe extern "C" fn(*mut blst_fr, *const blst_fr, *const blst_fr)) -> Lanes {
        core::array::from_fn(|l| {
            let mut r = blst_fr::default();
            // SAFETY: plain elements.
            unsafe { f(&mut r, &a[l], &b[l]) };
            r
        })
    }

    fn random(rng: &mut StdRng) -> Lanes {
        core::array::from_fn(|_| {
            match rng.gen_range(0..12) {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                2 => -Scalar::ONE,
                3 => -Scalar::from(rng.r#gen::<u64>()),
                _ => Scalar::random(&mut *rng),
            }
            .into()
        })
    }

    /// Values of lanes in blst's form, of the width that is stored.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn stored(v: Fr) -> Lanes {
        let mut out = [blst_fr::default(); 8];
        // SAFETY: an array of eight.
        unsafe { v.canonical().store(out.as_mut_ptr()) };
        out
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn check() {
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..2000 {
            let (a, b) = (random(&mut rng), random(&mut rng));
            // SAFETY: arrays of eight.
            let (va, vb) = unsafe { (Fr::from_blst(a.as_ptr()), Fr::from_blst(b.as_ptr())) };
            let back = |v: Fr| {
                let mut out = [blst_fr::default(); 8];
                // SAFETY: an array of eight.
                unsafe { v.to_blst(out.as_mut_ptr()) };
                out
            };
            let product = map2(&a, &b, blst_fr_mul);
            assert_eq!(back(va), a, "seed {seed}");
            assert_eq!(back(Fr::mul(&va, &vb)), product, "seed {seed}");
            assert_eq!(back(Fr::mul(&va.plus::<5>().norm(), &vb)), product, "seed {seed}");
            assert_eq!(back(Fr::sqr_raw(&va).norm()), map2(&a, &a, blst_fr_mul), "seed {seed}");
            assert_eq!(back(va.add_raw(vb).norm()), map2(&a, &b, blst_fr_add), "seed {seed}");
            assert_eq!(back(va.sub_raw(vb).plus::<4>().cut::<4>().norm()), map2(&a, &b, blst_fr_sub), "seed {seed}");
            // SAFETY: an array of eight.
            let plain = unsafe { Fr::plain_from_blst(a.as_ptr()) }.to_words();
            // SAFETY: both are 256 plain bytes.
            let plain: [[u64; 8]; 4] = unsafe { core::mem::transmute(plain) };
            for l in 0..8 {
                let mut s = blst_scalar::default();
                // SAFETY: plain elements.
                unsafe { blst_scalar_from_fr(&mut s, &a[l]) };
                let words: Vec<u8> = (0..4).flat_map(|i| plain[i][l].to_le_bytes()).collect();
                assert_eq!(words, s.b, "seed {seed}");
            }
            // In blst's form throughout.
            // SAFETY: arrays of eight.
            let (la, lb) = unsafe { (Fr::load(a.as_ptr()), Fr::load(b.as_ptr())) };
            assert_eq!(stored(la), a, "seed {seed}");
            assert_eq!(stored(Fr::mul_raw(&la.shifted(), &lb)), product, "seed {seed}");
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn check_dot<const N: usize>(rng: &mut StdRng, seed: u64) {
        let x: [Lanes; N] = core::array::from_fn(|_| random(rng));
        let y: [Scalar; N] = core::array::from_fn(|_| random(rng)[0].into());
        // SAFETY: arrays of eight.
        let lanes = x.map(|x| unsafe { Fr::load(x.as_ptr()) });
        // y R: sixteen times y 2^256.
        let constants = y.map(|y| split(blst_fr::from(y * Scalar::from(16)).l));
        let sums = stored(Fr::dot_raw(&lanes, &constants));
        for l in 0..8 {
            let expected: Scalar = x.iter().zip(&y).map(|(x, y)| Scalar::from(x[l]) * y).sum();
            assert_eq!(Scalar::from(sums[l]), expected, "{N} terms, seed {seed}");
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn check_dots() {
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..500 {
            check_dot::<1>(&mut rng, seed);
            check_dot::<9>(&mut rng, seed);
            check_dot::<16>(&mut rng, seed);
        }
    }

    #[test]
    fn elements_agree_with_blst() {
        if Backend::detect() == Backend::Ifma {
            // SAFETY: the instructions are there.
            unsafe {
                check();
                check_dots();
            }
        }
    }
}
