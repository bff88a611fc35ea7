//! Sums over tables of points, written once for both arithmetics.
//!
//! [`Engine`] is what an arithmetic provides: many sums at once over lists of table rows. On it stand multi-scalar
//! multiplication ([`pippenger`], with [`windows`] for the digits and [`reduce`] for the buckets), sums of selected points
//! ([`select`]) and multiples of one point ([`fixed`]); [`lists`] cuts and orders the lists.
//!
//! Every `unsafe fn` of this module has one condition in common, which is not repeated at each: the machine has the
//! instructions that the engine is made of. Further conditions are stated.

// The common condition is the paragraph above.
#![allow(clippy::missing_safety_doc)]
#![allow(unreachable_pub, reason = "parts of this are in the interface of modules that are themselves private")]

use std::ops::Range;

use blst::blst_fr;
use rayon::prelude::*;

use crate::arith::curve::Curve;

pub mod fixed;
pub mod lists;
pub mod pippenger;
pub mod reduce;
pub mod select;
pub mod windows;

use lists::{Segment, Sums};
use windows::Windows;

/// An arithmetic for sums of points of one group.
///
/// # Safety
/// Sums are right, whatever the points: equal, opposite, or cancelling to the identity on the way.
pub unsafe trait Engine<C: Curve> {
    /// An affine point that is not the identity.
    type Row: Copy + Default + Send + Sync;

    /// Rows of points, in memory that suits a table; those of identities are meaningless.
    unsafe fn rows(points: &[C::Affine]) -> Vec<Self::Row>;

    /// The points of rows, in blst's form.
    unsafe fn to_affine(rows: &[Self::Row]) -> Vec<C::Affine>;

    /// Writes the digits of `range` of the windows, window by window: `digits[(w - range.start) n + i]` is digit w of
    /// scalar i, as absolute value with [`lists::NEGATIVE`]. Scalars flagged by `skip` get zeros. In parallel.
    ///
    /// `digits` has at least `range.len() * scalars.len()` places.
    unsafe fn cut(
        windows: &Windows,
        range: Range<usize>,
        scalars: &[blst_fr],
        skip: impl Fn(usize) -> bool + Sync,
        digits: &mut [u32],
    );

    /// Sums every list into its place in `sums`, in parallel, without cutting lists. They should come ordered by length.
    ///
    /// Entries are rows of `table` (with or without [`lists::NEGATIVE`]); segments lie in `entries`, results in `sums`, no
    /// two in the same place.
    unsafe fn sum_ordered(table: &[Self::Row], entries: &[u32], lists: &[Segment], sums: &mut Sums<Self::Row>);

    /// For every segment s of [`reduce::SEGMENT`] buckets: `runs[s]` = sum B\[j\], `accs[s]` = sum (j + 1) B\[j\]
    /// (`from_one`) or sum j B\[j\] over the buckets j of the segment. In parallel. The number of segments is a multiple of eight.
    unsafe fn reduce_segments(
        buckets: &Sums<Self::Row>,
        from_one: bool,
        runs: &mut Sums<Self::Row>,
        accs: &mut Sums<Self::Row>,
    );
}

/// A table: rows, some of which may stand for the identity.
#[derive(Clone, Copy)]
pub struct Points<'a, R> {
    /// The rows; those of identities are meaningless.
    pub rows: &'a [R],
    /// Bit i: point i is the identity. Empty if there is none, which is the common case.
    pub identities: &'a [u64],
}

impl<R> Points<'_, R> {
    /// Identity flags of points 64 word .. 64 word + 64.
    pub fn identity_word(&self, word: usize) -> u64 {
        self.identities.get(word).copied().unwrap_or(0)
    }

    /// Is point i the identity?
    pub fn is_identity(&self, i: usize) -> bool {
        self.identity_word(i / 64) >> (i % 64) & 1 == 1
    }
}

/// Which points are the identity, in the form of [`Points::identities`].
pub fn identities<C: Curve>(points: &[C::Affine]) -> Vec<u64> {
    let flags: Vec<u64> = points
        .par_chunks(64)
        .with_min_len(1 << 6)
        .map(|points| points.iter().enumerate().fold(0, |bits, (i, p)| bits | u64::from(C::is_identity(p)) << i))
        .collect();
    if flags.iter().any(|&bits| bits != 0) { flags } else { Vec::new() }
}
