//! Multi-scalar multiplication by blst's Pippenger, one piece of the points per thread.

use blst::{blst_fr, blst_scalar, blst_scalar_from_fr};
use group::Group;
use rayon::prelude::*;

use crate::arith::curve::Curve;

/// Shortest piece: below this, splitting costs more in buckets than threads win.
const MIN_PIECE: usize = 1 << 8;

/// Sum of `scalars[i]` times point `indices[i]` (or point i). Zero scalars and identities are left out.
pub(crate) fn msm<C: Curve>(points: &[C::Affine], indices: Option<&[u32]>, scalars: &[blst_fr]) -> C::Projective {
    let piece = scalars.len().div_ceil(rayon::current_num_threads()).max(MIN_PIECE);
    scalars
        .par_chunks(piece)
        .enumerate()
        .map(|(part, scalars)| {
            let index = |i: usize| indices.map_or(part * piece + i, |indices| indices[part * piece + i] as usize);
            let (points, scalars): (Vec<&C::Affine>, Vec<blst_scalar>) = scalars
                .iter()
                .enumerate()
                .map(|(i, scalar)| (&points[index(i)], scalar))
                .filter(|(point, scalar)| !C::is_identity(point) && **scalar != blst_fr::default())
                .map(|(point, scalar)| (point, plain(scalar)))
                .unzip();
            if points.is_empty() { C::Projective::identity() } else { C::pippenger(&points, &scalars) }
        })
        .reduce(C::Projective::identity, |a, b| a + b)
}

/// The number 0..r of a scalar in Montgomery form.
pub(crate) fn plain(scalar: &blst_fr) -> blst_scalar {
    let mut plain = blst_scalar::default();
    // SAFETY: references are valid pointers.
    unsafe { blst_scalar_from_fr(&mut plain, scalar) };
    plain
}
