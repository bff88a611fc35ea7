//! Signed digits of scalars: see [`crate::arith::msm::windows`].

use std::ops::Range;

use blst::{blst_fr, blst_scalar, blst_scalar_from_fr};
use rayon::prelude::*;

use super::fr::MODULUS;
use super::limbs::{add, sub};
use crate::arith::msm::lists::NEGATIVE;
use crate::arith::msm::windows::Windows;
use crate::arith::parallel::Scattered;

/// Scalars per task.
const CHUNK: usize = 1 << 10;

/// See [`crate::arith::msm::Engine::cut`].
pub fn cut(
    windows: &Windows,
    range: Range<usize>,
    scalars: &[blst_fr],
    skip: impl Fn(usize) -> bool + Sync,
    digits: &mut [u32],
) {
    let n = scalars.len();
    assert!(digits.len() >= range.len() * n);
    let digits = Scattered::new(digits);
    scalars.par_chunks(CHUNK).enumerate().for_each(|(chunk, scalars)| {
        for (i, scalar) in (CHUNK * chunk..).zip(scalars) {
            let scalar = if skip(i) { blst_fr::default() } else { *scalar };
            let (number, flip) = offset_number(windows, &scalar);
            for w in range.clone() {
                // SAFETY: the places of scalar i are ours, and in range.
                unsafe { *digits.at((w - range.start) * n + i) = entry(windows, &number, flip, w) };
            }
        }
    });
}

/// min(s, r - s) + K, and whether it is r - s.
fn offset_number(windows: &Windows, scalar: &blst_fr) -> ([u64; 4], bool) {
    let mut plain = blst_scalar::default();
    // SAFETY: references are valid pointers.
    unsafe { blst_scalar_from_fr(&mut plain, scalar) };
    let s: [u64; 4] = core::array::from_fn(|i| u64::from_le_bytes(core::array::from_fn(|byte| plain.b[8 * i + byte])));
    let negated = sub(&MODULUS.prime, &s).0;
    let flip = sub(&negated, &s).1 == 1;
    (add(if flip { &negated } else { &s }, &windows.offset).0, flip)
}

/// Digit w as an entry.
fn entry(windows: &Windows, number: &[u64; 4], flip: bool, w: usize) -> u32 {
    let (limb, shift) = (windows.bits * w / 64, windows.bits * w % 64);
    let above = number.get(limb + 1).copied().unwrap_or(0);
    let bits = (number[limb] >> shift | above << 1 << (63 - shift)) & ((1 << windows.bits) - 1);
    let offset = if w + 1 < windows.count { windows.buckets() as i64 } else { 0 };
    let digit = bits as i64 - offset;
    let sign = if digit != 0 && (digit < 0) != flip { NEGATIVE } else { 0 };
    digit.unsigned_abs() as u32 | sign
}
