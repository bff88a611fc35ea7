//! Tables of points in IFMA form, and the way there and back.

use core::mem::MaybeUninit;

use rayon::prelude::*;

use super::point_field::{PointField, Row};
use crate::arith::curve::Curve;
use crate::arith::memory::huge_vec;

/// Points as 128-byte (G1) or 256-byte (G2) rows, canonical, Montgomery form with R = 2^416; rows of identities are
/// meaningless. In parallel, about 30 ns each.
///
/// # Safety
/// The machine has the AVX-512 features.
pub unsafe fn rows_of_points<C: Curve>(points: &[C::Affine]) -> Vec<Row<C::Field>> {
    let mut rows = huge_vec(points.len());
    rows.spare_capacity_mut()[..points.len()].par_chunks_mut(1 << 10).zip(points.par_chunks(1 << 10)).for_each(
        |(rows, points)| {
            for (rows, points) in rows.chunks_mut(8).zip(points.chunks(8)) {
                // SAFETY: the caller vouches for the features.
                unsafe { rows_from_affine::<C>(points, rows) };
            }
        },
    );
    // SAFETY: every place was written just now.
    unsafe { rows.set_len(points.len()) };
    rows
}

/// Up to eight points into as many rows.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn rows_from_affine<C: Curve>(points: &[C::Affine], rows: &mut [MaybeUninit<Row<C::Field>>]) {
    let mut surplus = MaybeUninit::uninit();
    // SAFETY: lanes past the end repeat point 0 and go to `surplus`.
    unsafe {
        let coordinates: [_; 8] = core::array::from_fn(|l| C::coordinates(points.get(l).unwrap_or(&points[0])));
        let targets: [*mut Row<C::Field>; 8] =
            core::array::from_fn(|l| rows.get_mut(l).unwrap_or(&mut surplus).as_mut_ptr());
        C::Field::from_blst(coordinates.map(|c| c[0])).store_rows(targets.map(|t| &raw mut (*t).x));
        C::Field::from_blst(coordinates.map(|c| c[1])).store_rows(targets.map(|t| &raw mut (*t).y));
    }
}

/// Up to eight rows (none the identity) as affine points.
///
/// # Safety
/// The machine has the AVX-512 features.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub unsafe fn affine_from_rows<C: Curve>(rows: &[Row<C::Field>]) -> impl Iterator<Item = C::Affine> {
    // SAFETY: lanes past the end repeat row 0.
    let (x, y) = unsafe {
        let row = |l: usize| rows.get(l).unwrap_or(&rows[0]);
        let x = C::Field::load_rows(core::array::from_fn(|l| &raw const row(l).x));
        let y = C::Field::load_rows(core::array::from_fn(|l| &raw const row(l).y));
        (x.to_blst(), y.to_blst())
    };
    x.into_iter().zip(y).take(rows.len()).map(|(x, y)| C::from_coordinates(x, y))
}
