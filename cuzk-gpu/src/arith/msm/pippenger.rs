//! Multi-scalar multiplication: signed-digit Pippenger over sums of lists.
//!
//! 1. Scalars are cut into signed digits, window by window ([`super::windows`]).
//! 2. Each window is sorted by digit: counting sort of `row | sign` into buckets, then of the buckets by size.
//! 3. The buckets of all windows of a pass are summed ([`super::lists`]), and reduced ([`super::reduce`]).
//! 4. The windows are joined by doubling, c per window.
//!
//! Cost in additions, per window: n points, and 2.2 * 2^(c-1) for the reduction; see [`best_window_bits`]. Memory: 8 bytes
//! per digit of a pass ([`DIGITS_PER_PASS`]), reused by all passes, and a row per bucket of a pass.

use blst::blst_fr;
use group::Group;
use rayon::prelude::*;

use super::lists::{NEGATIVE, PIECE, Segment, Sums, by_length, sum_lists};
use super::reduce::reduce_windows;
use super::windows::{MAX_WINDOW_BITS, Windows};
use super::{Engine, Points};
use crate::arith::curve::Curve;
use crate::arith::memory::huge_filled;

/// Digits sorted at a time: whole windows, as many as this allows but no fewer than there are threads. 2^24 is 128 MiB
/// of scratch; more would only mean more fresh pages.
const DIGITS_PER_PASS: usize = 1 << 24;

/// Longest MSM in one piece, so that all positions fit an entry.
const MAX_POINTS: usize = 1 << 24;

/// Sum of `scalars[i]` times row `indices[i]` (or row i).
///
/// # Safety
/// Indices are rows.
pub unsafe fn msm<C: Curve, E: Engine<C>>(
    table: Points<E::Row>,
    indices: Option<&[u32]>,
    scalars: &[blst_fr],
) -> C::Projective {
    let mut sum = C::Projective::identity();
    for (part, scalars) in scalars.chunks(MAX_POINTS).enumerate() {
        let first = part * MAX_POINTS;
        // SAFETY: the caller's.
        sum += unsafe {
            match indices {
                Some(indices) => msm_part::<C, E>(table, |i| indices[first + i], scalars),
                None => msm_part::<C, E>(table, |i| (first + i) as u32, scalars),
            }
        };
    }
    sum
}

/// The window width with the least additions for `n` points.
///
/// cost(c) = ceil(255/c) (1.15 n + 1.3 * 2.2 * 2^(c-1)), in additions: an entry costs about 0.15 additions to sort, and
/// additions of the reduction, which gather from rows all over, cost more than those of the tree.
pub fn best_window_bits(n: usize) -> usize {
    let cost = |c: &usize| 255usize.div_ceil(*c) * (115 * n + 286 * (1 << (c - 1)));
    (3..=MAX_WINDOW_BITS).min_by_key(cost).expect("the range is not empty")
}

unsafe fn msm_part<C: Curve, E: Engine<C>>(
    table: Points<E::Row>,
    index: impl Fn(usize) -> u32 + Sync,
    scalars: &[blst_fr],
) -> C::Projective {
    let n = scalars.len();
    if n == 0 {
        return C::Projective::identity();
    }
    let windows = Windows::new(best_window_bits(n));
    let per_pass = (DIGITS_PER_PASS / n).max(rayon::current_num_threads()).min(windows.count);
    let buckets = windows.buckets();
    let piece = PIECE.max((4 * n / buckets) as u32);
    let mut digits = huge_filled(per_pass * n, 0u32);
    let mut entries = huge_filled(per_pass * n, 0u32);
    let mut sums = Sums::<E::Row>::identities(per_pass * buckets);
    let mut totals: Vec<C::Projective> = Vec::with_capacity(windows.count);
    while totals.len() < windows.count {
        let pass = totals.len()..windows.count.min(totals.len() + per_pass);
        let skip = |i| !table.identities.is_empty() && table.is_identity(index(i) as usize);
        // SAFETY: the caller vouches for the instructions; entries are rows that are points.
        unsafe {
            E::cut(&windows, pass.clone(), scalars, skip, &mut digits);
            let lists: Vec<Vec<Segment>> = digits
                .par_chunks(n)
                .zip(entries.par_chunks_mut(n))
                .take(pass.len())
                .enumerate()
                .map(|(w, (digits, entries))| sort_window(digits, &index, entries, w, buckets))
                .collect();
            sums.rows.truncate(pass.len() * buckets);
            sums.identity.truncate(pass.len() * buckets);
            sums.identity.fill(true);
            sum_lists::<C, E>(table.rows, &entries, &lists.concat(), piece, &mut sums);
            totals.extend(reduce_windows::<C, E>(&sums, buckets));
        }
    }
    let join = |sum: C::Projective, total: &C::Projective| (0..windows.bits).fold(sum, |sum, _| sum.double()) + total;
    totals.iter().rev().fold(C::Projective::identity(), join)
}

/// Sorts the entries of one window by bucket, and returns its non-empty buckets, largest first.
fn sort_window(
    digits: &[u32],
    index: impl Fn(usize) -> u32,
    entries: &mut [u32],
    window: usize,
    buckets: usize,
) -> Vec<Segment> {
    // ends[d]: number of entries with smaller digit; while entries are placed, where the next one of digit d goes.
    // Digit 0 is counted and placed like the others, and so costs no branch; its entries are at the front, unused.
    let mut ends = vec![0u32; buckets + 2];
    for &digit in digits {
        ends[(digit & !NEGATIVE) as usize + 1] += 1;
    }
    for d in 1..ends.len() {
        ends[d] += ends[d - 1];
    }
    for (i, &digit) in digits.iter().enumerate() {
        let place = &mut ends[(digit & !NEGATIVE) as usize];
        entries[*place as usize] = index(i) | digit & NEGATIVE;
        *place += 1;
    }
    // Now ends[d] is the end of digit d, which is bucket d - 1.
    let base = (window * digits.len()) as u32;
    let lists = (0..buckets).filter(|b| ends[b + 1] > ends[*b]).map(|b| Segment {
        start: base + ends[b],
        len: ends[b + 1] - ends[b],
        result: (window * buckets + b) as u32,
    });
    by_length(lists.collect())
}
