//! Scalar arithmetic, for machines without AVX-512 IFMA.
//!
//! blst's representation throughout, so that nothing is converted, but products of our own ([`mont`]): inlined, in two
//! carry chains, and without a last subtraction, because [`limbs`] brings sums and differences into range more cheaply.
//!
//! From bottom to top: [`mont`], [`limbs`]; [`fq`], [`coordinate`] (what curves need of a field, and Fq2), [`batch`]
//! (batched affine addition), [`tree`] (many sums at once), [`reduce`], [`digits`]: the [`Engine`] of
//! [`crate::arith::msm`]; [`fr`], [`ntt`] and [`quotient`] (transforms over Fr).

#![allow(unreachable_pub, reason = "some of these types are in the interface of the public, but sealed, trait `Curve`")]

pub mod batch;
pub mod coordinate;
pub mod digits;
pub mod fq;
pub mod fr;
pub mod limbs;
pub mod mont;
pub mod ntt;
pub mod quotient;
pub mod reduce;
pub mod tree;

#[cfg(test)]
mod field_tests;

use std::ops::Range;

use blst::blst_fr;

use crate::arith::curve::Curve;
use crate::arith::memory::huge_copy;
use crate::arith::msm::Engine;
use crate::arith::msm::lists::{Segment, Sums};
use crate::arith::msm::windows::Windows;
use coordinate::{Coordinate, Point};

/// One point at a time.
pub struct Portable;

// SAFETY: `batch` allows for all exceptions. None of the functions asks anything of the machine.
unsafe impl<C: Curve> Engine<C> for Portable {
    type Row = Point<C::Coordinate>;

    unsafe fn rows(points: &[C::Affine]) -> Vec<Self::Row> {
        huge_copy(C::as_points(points))
    }

    unsafe fn to_affine(rows: &[Self::Row]) -> Vec<C::Affine> {
        rows.iter().map(|p| C::from_point(&Point { x: p.x.canonical(), y: p.y.canonical() })).collect()
    }

    unsafe fn cut(
        windows: &Windows,
        range: Range<usize>,
        scalars: &[blst_fr],
        skip: impl Fn(usize) -> bool + Sync,
        digits: &mut [u32],
    ) {
        digits::cut(windows, range, scalars, skip, digits);
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
        reduce::reduce_segments(buckets, from_one, runs, accs);
    }
}
