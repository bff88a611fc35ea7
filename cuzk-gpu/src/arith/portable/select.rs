//! Sum of the points selected by a bitmap, by blst's batched affine addition.

use group::Group;
use rayon::prelude::*;

use crate::arith::curve::Curve;

/// Words of the bitmap per task: up to 4096 points.
const WORDS: usize = 64;

/// Sum of the points whose bit is set; bits past the table are ignored.
pub(crate) fn sum_selected<C: Curve>(points: &[C::Affine], bitmap: &[u64]) -> C::Projective {
    bitmap
        .par_chunks(WORDS)
        .zip(points.par_chunks(64 * WORDS))
        .map(|(bits, points)| {
            let selected = |i: &usize| bits.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1);
            let points: Vec<&C::Affine> =
                (0..points.len()).filter(selected).map(|i| &points[i]).filter(|p| !C::is_identity(p)).collect();
            if points.is_empty() { C::Projective::identity() } else { C::sum(&points) }
        })
        .reduce(C::Projective::identity, |a, b| a + b)
}
