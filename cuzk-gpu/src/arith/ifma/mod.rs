//! Eight-lane AVX-512 IFMA arithmetic.
//!
//! Everything here carries the AVX-512 target features and is entered through the checked border of the parent module
//! ([`crate::arith::backend::Backend`]). From bottom to top: the crate [`cuzk_lanes`] (instructions, constants,
//! the Montgomery product, [`Fr`]), [`fq`], [`fq2`]; [`point_field`] (what curves need of a field), [`batch`] (batched affine addition), [`chunk`] and
//! [`tree`] (many sums at once), [`rows`] (tables), [`digits`], [`reduce`]: the [`Engine`] of [`crate::arith::msm`];
//! [`ntt`] (transforms over Fr).
//!
//! Every `unsafe fn` of this module, and every one marked with target features, has one condition in common, which is not
//! repeated at each: the machine has the AVX-512 features. Further conditions are stated.

// The common condition is the paragraph above.
#![allow(clippy::missing_safety_doc)]
#![allow(unreachable_pub, reason = "some of these types are in the interface of the public, but sealed, trait `Curve`")]

pub mod batch;
pub mod chunk;
pub mod digits;
pub mod fq;
pub mod fq2;
pub mod ntt;
pub mod point_field;
pub mod reduce;
pub mod rows;
pub mod tree;

pub use cuzk_lanes::{
    fr::{self, Fr},
    lane, modulus, mont,
};
pub use fq::Fq;
pub use fq2::Fq2;

use std::ops::Range;

use blst::blst_fr;

use crate::arith::curve::Curve;
use crate::arith::msm::Engine;
use crate::arith::msm::lists::{Segment, Sums};
use crate::arith::msm::windows::Windows;
use point_field::Row;

/// Eight lanes.
pub struct Ifma;

// SAFETY: `batch` allows for all exceptions.
unsafe impl<C: Curve> Engine<C> for Ifma {
    type Row = Row<C::Field>;

    unsafe fn rows(points: &[C::Affine]) -> Vec<Self::Row> {
        // SAFETY: the caller's, as in the following.
        unsafe { rows::rows_of_points::<C>(points) }
    }

    unsafe fn to_affine(rows: &[Self::Row]) -> Vec<C::Affine> {
        // SAFETY: the caller's.
        rows.chunks(8).flat_map(|rows| unsafe { rows::affine_from_rows::<C>(rows) }).collect()
    }

    unsafe fn cut(
        windows: &Windows,
        range: Range<usize>,
        scalars: &[blst_fr],
        skip: impl Fn(usize) -> bool + Sync,
        digits: &mut [u32],
    ) {
        // SAFETY: the caller's.
        unsafe { digits::cut(windows, range, scalars, skip, digits) };
    }

    unsafe fn sum_ordered(table: &[Self::Row], entries: &[u32], lists: &[Segment], sums: &mut Sums<Self::Row>) {
        // SAFETY: the caller's.
        unsafe { tree::sum_ordered(table, entries, lists, sums) };
    }

    unsafe fn reduce_segments(
        buckets: &Sums<Self::Row>,
        from_one: bool,
        runs: &mut Sums<Self::Row>,
        accs: &mut Sums<Self::Row>,
    ) {
        // SAFETY: the caller's.
        unsafe { reduce::reduce_segments(buckets, from_one, runs, accs) };
    }
}

#[cfg(test)]
mod field_tests;
