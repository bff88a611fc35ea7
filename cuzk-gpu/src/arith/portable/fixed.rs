//! Many multiples of one point, by a table of windows and mixed additions in blst.

use blst::{blst_fr, blst_scalar};
use group::Group;
use rayon::prelude::*;

use super::msm::plain;
use crate::arith::curve::Curve;

/// Scalars per task, which share an inversion.
const CHUNK: usize = 1 << 10;

/// `scalars[i]` times `base`, in affine form.
pub(crate) fn multiples<C: Curve>(base: &C::Affine, scalars: &[blst_fr]) -> Vec<C::Affine> {
    let bits = best_window_bits(scalars.len());
    let table = window_table::<C>(base, bits);
    scalars
        .par_chunks(CHUNK)
        .flat_map_iter(|scalars| {
            let multiple = |scalar: &blst_fr| {
                let scalar = plain(scalar);
                let mut sum = C::Projective::identity();
                for (w, window) in table.iter().enumerate() {
                    match digit(&scalar, w * bits, bits) {
                        0 => {}
                        d => C::add_affine(&mut sum, &window[d - 1]),
                    }
                }
                sum
            };
            C::to_affine(&scalars.iter().map(multiple).collect::<Vec<_>>())
        })
        .collect()
}

/// Least additions: ceil(255/c) for each scalar and for each 2^c points of a window.
fn best_window_bits(n: usize) -> usize {
    (2..=16).min_by_key(|c| 255usize.div_ceil(*c) * (n + (1 << c))).expect("the range is not empty")
}

/// d 2^(bits w) B at \[w\]\[d - 1\].
fn window_table<C: Curve>(base: &C::Affine, bits: usize) -> Vec<Vec<C::Affine>> {
    let mut shifted = vec![C::Projective::from(base)];
    for w in 1..255usize.div_ceil(bits) {
        shifted.push((0..bits).fold(shifted[w - 1], |p, _| p.double()));
    }
    let window = |first: &C::Projective| {
        let multiples = core::iter::successors(Some(*first), |p| Some(*p + first));
        C::to_affine(&multiples.take((1 << bits) - 1).collect::<Vec<_>>())
    };
    shifted.par_iter().map(window).collect()
}

/// Bits `start .. start + bits`, at most 16.
fn digit(scalar: &blst_scalar, start: usize, bits: usize) -> usize {
    let byte = |i: usize| usize::from(scalar.b.get(i).copied().unwrap_or(0));
    let first = start / 8;
    (byte(first) | byte(first + 1) << 8 | byte(first + 2) << 16) >> (start % 8) & ((1 << bits) - 1)
}
