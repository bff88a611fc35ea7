//! Bucket reduction: sum of (b + 1) B\[b\] over the buckets of every window, all windows together.
//!
//! Buckets are cut into segments of 16; segment s is summed with two running points. With run = 0, acc = 0 and j = 15 .. 0:
//! run\[s\] += B\[16 s + j\], acc\[s\] += run\[s\]. Then acc\[s\] = sum (j + 1) B\[16 s + j\], run\[s\] = sum B\[16 s + j\], and
//!
//!   sum (b + 1) B\[b\] = sum acc\[s\] + 16 sum s run\[s\].
//!
//! The last sum is of the same kind with weights from 0, for which acc is advanced *before* run. 2.2 batched additions
//! per bucket, all batched; below [`SCALAR_BELOW`] buckets a window goes on in blst.

use group::Group;
use rayon::prelude::*;

use super::Engine;
use super::lists::{PIECE, Segment, Sums, sum_lists, without_identities};
use crate::arith::curve::Curve;

/// Buckets per segment.
pub const SEGMENT: usize = 16;

/// Windows with fewer buckets are reduced by blst (a vector of eight lanes needs eight segments).
const SCALAR_BELOW: usize = 8 * SEGMENT;

/// The weighted sum of each window; window w has the `buckets` (a power of two) buckets from row `w * buckets`.
pub unsafe fn reduce_windows<C: Curve, E: Engine<C>>(sums: &Sums<E::Row>, buckets: usize) -> Vec<C::Projective> {
    // SAFETY: the caller's.
    unsafe { reduce::<C, E>(sums, buckets, true) }
}

/// As [`reduce_windows`], with weights b + 1 (`from_one`) or b.
unsafe fn reduce<C: Curve, E: Engine<C>>(sums: &Sums<E::Row>, buckets: usize, from_one: bool) -> Vec<C::Projective> {
    if buckets < SCALAR_BELOW {
        let windows: Vec<usize> = (0..sums.rows.len() / buckets).collect();
        // SAFETY: the caller vouches for the instructions.
        return windows
            .par_iter()
            .map(|w| unsafe { reduce_scalar::<C, E>(sums, w * buckets, buckets, from_one) })
            .collect();
    }
    let segments = sums.rows.len() / SEGMENT;
    let mut runs = Sums::identities(segments);
    let mut accs = Sums::identities(segments);
    // SAFETY: the caller's; there are at least eight segments in each window, and powers of two.
    unsafe { E::reduce_segments(sums, from_one, &mut runs, &mut accs) };
    let per_window = buckets / SEGMENT;
    let windows = segments / per_window;
    let lists: Vec<Segment> = (0..windows)
        .map(|w| Segment { start: (w * per_window) as u32, len: per_window as u32, result: w as u32 })
        .collect();
    let (entries, lists) = without_identities(&accs, &lists);
    let mut totals = Sums::identities(windows);
    // SAFETY: entries are the rows of `accs` that are points.
    let (totals, higher) = unsafe {
        sum_lists::<C, E>(&accs.rows, &entries, &lists, PIECE, &mut totals);
        (totals, reduce::<C, E>(&runs, per_window, false))
    };
    let total = |(w, higher): (usize, C::Projective)| {
        let mut sum = (0..SEGMENT.trailing_zeros()).fold(higher, |sum, _| sum.double());
        if !totals.identity[w] {
            // SAFETY: the caller's.
            C::add_affine(&mut sum, &unsafe { E::to_affine(&totals.rows[w..=w]) }[0]);
        }
        sum
    };
    higher.into_iter().enumerate().map(total).collect()
}

/// The same by running sums in blst.
unsafe fn reduce_scalar<C: Curve, E: Engine<C>>(
    sums: &Sums<E::Row>,
    first: usize,
    buckets: usize,
    from_one: bool,
) -> C::Projective {
    let (mut run, mut acc) = (C::Projective::identity(), C::Projective::identity());
    for b in (first..first + buckets).rev() {
        if !from_one {
            acc += run;
        }
        if !sums.identity[b] {
            // SAFETY: the caller's.
            C::add_affine(&mut run, &unsafe { E::to_affine(&sums.rows[b..=b]) }[0]);
        }
        if from_one {
            acc += run;
        }
    }
    acc
}
