//! Signed digits of scalars, eight scalars at a time.
//!
//! Where s > (r-1)/2, -s is used and all signs flip: then s < 2^254 and ceil(255/c) windows of c bits suffice. Adding
//! K = sum 2^(c w + c - 1) over all windows but the top one makes the digits independent of each other:
//! digit w = (bits c w .. c w + c of s + K) - 2^(c-1), in -2^(c-1) .. 2^(c-1). The top window has no offset: it holds at
//! most c - 1 bits and a carry, so it lies in 0 ..= 2^(c-1).

use core::arch::x86_64::*;
use std::ops::Range;

use blst::blst_fr;
use rayon::prelude::*;

use super::fr::{Fr, PRIME};
use super::lane::splat;
use super::modulus::split;
use super::tree::NEGATIVE;
use crate::arith::parallel::Scattered;

/// Widest window: a digit and its sign fit an entry with room to spare, and buckets stay countable.
pub const MAX_WINDOW_BITS: usize = 20;

/// How scalars are cut.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Bits per window, 2..=[`MAX_WINDOW_BITS`].
    pub bits: usize,
    /// ceil(255 / bits).
    pub count: usize,
    /// K in 52-bit limbs.
    offset: [u64; 5],
    /// (r-1)/2 in 52-bit limbs.
    half: [u64; 5],
}

impl Windows {
    /// Windows of `bits` bits.
    pub fn new(bits: usize) -> Self {
        assert!((2..=MAX_WINDOW_BITS).contains(&bits));
        let count = 255usize.div_ceil(bits);
        let mut words = [0u64; 4];
        for w in 0..count - 1 {
            let bit = bits * w + bits - 1;
            words[bit / 64] |= 1 << (bit % 64);
        }
        let half: [u64; 4] = core::array::from_fn(|i| PRIME[i] >> 1 | PRIME.get(i + 1).map_or(0, |above| above << 63));
        Self { bits, count, offset: split(words), half: split(half) }
    }

    /// Buckets of a window: digits 1 ..= 2^(bits-1) in absolute value.
    pub fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// Writes the digits of `range` of the windows, window by window: `digits[(w - range.start) n + i]` is digit w of
    /// scalar i, as absolute value with [`NEGATIVE`]. Scalars flagged by `skip` get zeros. About 1 ns per digit.
    ///
    /// # Safety
    /// The machine has the AVX-512 features; `digits` has `range.len() * scalars.len()` places.
    pub unsafe fn cut(
        &self,
        range: Range<usize>,
        scalars: &[blst_fr],
        skip: impl Fn(usize) -> bool + Sync,
        digits: &mut [u32],
    ) {
        let n = scalars.len();
        assert!(digits.len() >= range.len() * n);
        let digits = Scattered::new(digits);
        scalars.par_chunks(1 << 10).enumerate().for_each(|(chunk, scalars)| {
            for (eight, scalars) in scalars.chunks(8).enumerate() {
                let first = (chunk << 10) + 8 * eight;
                let mut padded = [blst_fr::default(); 8];
                for (l, scalar) in scalars.iter().enumerate() {
                    if !skip(first + l) {
                        padded[l] = *scalar;
                    }
                }
                // SAFETY: the caller vouches for the features; the places of scalars first .. first + len are ours.
                unsafe {
                    self.cut_eight(range.clone(), &padded, scalars.len(), |w| digits.at((w - range.start) * n + first))
                };
            }
        });
    }

    /// Digits of the first `len` of eight scalars to `place(w)`, for each window.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn cut_eight(
        &self,
        range: Range<usize>,
        scalars: &[blst_fr; 8],
        len: usize,
        place: impl Fn(usize) -> *mut u32,
    ) {
        // SAFETY: eight scalars.
        let s = unsafe { Fr::plain_from_blst(scalars.as_ptr()) };
        let below = Fr::broadcast(&self.half).sub_raw(s).norm();
        let flipped = _mm512_movepi64_mask(below.0[4]);
        let minus = Fr::zero().plus::<1>().sub_raw(s);
        let t = s.blend(flipped, minus).add_raw(Fr::broadcast(&self.offset)).norm();
        let mut limbs = [_mm512_setzero_si512(); 6];
        limbs[..5].copy_from_slice(&t.0);
        let (mask, offset) = (splat((1 << self.bits) - 1), splat(1 << (self.bits - 1)));
        let stored = 0xffu8 >> (8 - len);
        for w in range {
            let (limb, shift) = (self.bits * w / 52, self.bits * w % 52);
            let low = _mm512_srl_epi64(limbs[limb], _mm_cvtsi64_si128(shift as i64));
            let high = _mm512_sll_epi64(limbs[limb + 1], _mm_cvtsi64_si128(52 - shift as i64));
            let digit = _mm512_and_si512(_mm512_or_si512(low, high), mask);
            let digit = if w + 1 < self.count { _mm512_sub_epi64(digit, offset) } else { digit };
            let nonzero = _mm512_test_epi64_mask(digit, digit);
            let negative = nonzero & (flipped ^ _mm512_movepi64_mask(digit));
            let digit = _mm512_abs_epi64(digit);
            let entry = _mm512_mask_or_epi64(digit, negative, digit, splat(u64::from(NEGATIVE)));
            // SAFETY: `len` places from `place(w)`.
            unsafe { _mm256_mask_storeu_epi32(place(w).cast(), stored, _mm512_cvtepi64_epi32(entry)) };
        }
    }
}
