//! Signed digits of scalars, eight scalars at a time: see [`crate::arith::msm::windows`].

use core::arch::x86_64::*;
use std::ops::Range;

use blst::blst_fr;
use rayon::prelude::*;

use super::fr::Fr;
use super::lane::splat;
use super::modulus::split;
use crate::arith::msm::lists::NEGATIVE;
use crate::arith::msm::windows::Windows;
use crate::arith::parallel::Scattered;
use crate::arith::primes::R;

/// (r-1)/2 in 52-bit limbs.
const HALF: [u64; 5] = split([R[0] >> 1 | R[1] << 63, R[1] >> 1 | R[2] << 63, R[2] >> 1 | R[3] << 63, R[3] >> 1]);

/// See [`crate::arith::msm::Engine::cut`]. About 1 ns per digit.
///
/// # Safety
/// The machine has the AVX-512 features.
pub unsafe fn cut(
    windows: &Windows,
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
            let place = |w| digits.at((w - range.start) * n + first);
            // SAFETY: the caller vouches for the features; the places of scalars first .. first + len are ours.
            unsafe { cut_eight(windows, range.clone(), &padded, scalars.len(), place) };
        }
    });
}

/// Digits of the first `len` of eight scalars to `place(w)`, for each window.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn cut_eight(
    windows: &Windows,
    range: Range<usize>,
    scalars: &[blst_fr; 8],
    len: usize,
    place: impl Fn(usize) -> *mut u32,
) {
    // SAFETY: eight scalars.
    let s = unsafe { Fr::plain_from_blst(scalars.as_ptr()) };
    let below = Fr::broadcast(&HALF).sub_raw(s).norm();
    let flipped = _mm512_movepi64_mask(below.0[4]);
    let minus = Fr::zero().plus::<1>().sub_raw(s);
    let t = s.blend(flipped, minus).add_raw(Fr::broadcast(&split(windows.offset))).norm();
    let mut limbs = [_mm512_setzero_si512(); 6];
    limbs[..5].copy_from_slice(&t.0);
    let (mask, offset) = (splat((1 << windows.bits) - 1), splat(1 << (windows.bits - 1)));
    let stored = 0xffu8 >> (8 - len);
    for w in range {
        let (limb, shift) = (windows.bits * w / 52, windows.bits * w % 52);
        let low = _mm512_srl_epi64(limbs[limb], _mm_cvtsi64_si128(shift as i64));
        let high = _mm512_sll_epi64(limbs[limb + 1], _mm_cvtsi64_si128(52 - shift as i64));
        let digit = _mm512_and_si512(_mm512_or_si512(low, high), mask);
        let digit = if w + 1 < windows.count { _mm512_sub_epi64(digit, offset) } else { digit };
        let nonzero = _mm512_test_epi64_mask(digit, digit);
        let negative = nonzero & (flipped ^ _mm512_movepi64_mask(digit));
        let digit = _mm512_abs_epi64(digit);
        let entry = _mm512_mask_or_epi64(digit, negative, digit, splat(u64::from(NEGATIVE)));
        // SAFETY: `len` places from `place(w)`.
        unsafe { _mm256_mask_storeu_epi32(place(w).cast(), stored, _mm512_cvtepi64_epi32(entry)) };
    }
}
