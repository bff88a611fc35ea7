//! Many multiples of one point.
//!
//! A table holds d 2^(c w) B for every window w and every digit d = 1 ..= 2^(c-1). A scalar is then a list of at most
//! ceil(255/c) table rows with signs, and [`super::lists`] sums the lists: a scalar is what a bucket is in an MSM.

use blst::blst_fr;
use group::Group;
use rayon::prelude::*;

use super::Engine;
use super::lists::{NEGATIVE, PIECE, Segment, Sums, sum_lists};
use super::windows::{MAX_WINDOW_BITS, Windows};
use crate::arith::curve::Curve;

/// Scalars at a time: some 2^20 entries.
const CHUNK: usize = 1 << 16;

/// `scalars[i]` times `base`, in affine form.
pub unsafe fn multiples<C: Curve, E: Engine<C>>(base: &C::Affine, scalars: &[blst_fr]) -> Vec<C::Affine> {
    if C::is_identity(base) || scalars.is_empty() {
        return vec![C::Affine::default(); scalars.len()];
    }
    let windows = Windows::new(best_window_bits(scalars.len()));
    // SAFETY: the caller's.
    let table = unsafe { window_table::<C, E>(base, &windows) };
    let mut multiples = Vec::with_capacity(scalars.len());
    for scalars in scalars.chunks(CHUNK) {
        // SAFETY: the caller's.
        unsafe { multiples_of_chunk::<C, E>(&table, &windows, scalars, &mut multiples) };
    }
    multiples
}

/// Least additions: ceil(255/c) for each scalar and for each 2^(c-1) rows of a window.
fn best_window_bits(n: usize) -> usize {
    let cost = |c: &usize| 255usize.div_ceil(*c) * (n + (1 << (c - 1)));
    (3..=MAX_WINDOW_BITS - 2).min_by_key(cost).expect("the range is not empty")
}

/// Row `w 2^(c-1) + d - 1` = d 2^(c w) B.
unsafe fn window_table<C: Curve, E: Engine<C>>(base: &C::Affine, windows: &Windows) -> Vec<E::Row> {
    let per_window = windows.buckets();
    let mut shifted = vec![C::Projective::from(base)];
    for w in 1..windows.count {
        shifted.push((0..windows.bits).fold(shifted[w - 1], |p, _| p.double()));
    }
    // SAFETY: the caller's.
    let first = unsafe { E::rows(&C::to_affine(&shifted)) };
    let mut table = vec![E::Row::default(); windows.count * per_window];
    for (w, row) in first.iter().enumerate() {
        table[w * per_window] = *row;
    }
    // Digits known .. 2 known from (known) + (1 .. known), the last one a doubling. None is the identity, whose order is
    // larger than all digits.
    let mut known = 1;
    while known < per_window {
        let mut entries = Vec::with_capacity(2 * windows.count * known);
        let mut lists = Vec::with_capacity(windows.count * known);
        for w in 0..windows.count {
            let one = (w * per_window) as u32;
            for i in 0..known as u32 {
                let result = lists.len() as u32;
                lists.push(Segment { start: entries.len() as u32, len: 2, result });
                entries.extend([one + known as u32 - 1, one + i]);
            }
        }
        let mut sums = Sums::identities(lists.len());
        // SAFETY: the caller's; entries are rows that have been filled.
        unsafe { sum_lists::<C, E>(&table, &entries, &lists, PIECE, &mut sums) };
        for (w, rows) in sums.rows.chunks(known).enumerate() {
            table[w * per_window + known..][..known].copy_from_slice(rows);
        }
        known *= 2;
    }
    table
}

unsafe fn multiples_of_chunk<C: Curve, E: Engine<C>>(
    table: &[E::Row],
    windows: &Windows,
    scalars: &[blst_fr],
    multiples: &mut Vec<C::Affine>,
) {
    let n = scalars.len();
    let mut digits = vec![0u32; windows.count * n];
    // SAFETY: the caller's.
    unsafe { E::cut(windows, 0..windows.count, scalars, |_| false, &mut digits) };
    let mut entries = vec![0u32; windows.count * n];
    let lists: Vec<Segment> = entries
        .par_chunks_mut(windows.count)
        .with_min_len(1 << 8)
        .enumerate()
        .filter_map(|(i, entries)| {
            let mut len = 0;
            for w in 0..windows.count {
                let digit = digits[w * n + i];
                if digit != 0 {
                    let row = (w * windows.buckets()) as u32 + (digit & !NEGATIVE) - 1;
                    entries[len] = row | digit & NEGATIVE;
                    len += 1;
                }
            }
            let start = (i * windows.count) as u32;
            (len > 0).then_some(Segment { start, len: len as u32, result: i as u32 })
        })
        .collect();
    let mut sums = Sums::identities(n);
    // SAFETY: the caller's; entries are rows of the table.
    unsafe { sum_lists::<C, E>(table, &entries, &lists, PIECE, &mut sums) };
    multiples.par_extend(sums.rows.par_chunks(1 << 8).zip(sums.identity.par_chunks(1 << 8)).flat_map_iter(
        |(rows, identity)| {
            // SAFETY: the caller's.
            let points = unsafe { E::to_affine(rows) };
            points
                .into_iter()
                .zip(identity)
                .map(|(point, identity)| if *identity { C::Affine::default() } else { point })
        },
    ));
}
