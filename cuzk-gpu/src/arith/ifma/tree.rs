//! Sums of many lists of points at once: one list per lane, binary tree, no conflicts.
//!
//! 1. Lists come ordered by length, longest first. Eight consecutive ones form a group, lane l = list l, so lengths in a
//!    group are nearly equal.
//! 2. Round 1: in every lane, entries 2i and 2i+1 are gathered from the table and added into a block of eight points.
//! 3. Round k adds blocks pairwise in place, whole vectors without any transposition, until one block per group is left.
//! 4. The block is transposed into eight rows of results.
//!
//! All additions of a round are independent, whatever the points. Groups are taken in chunks of about [`CHUNK`] entries
//! so that the blocks stay in cache; chunks are the unit of parallel work.

use super::chunk::Chunk;
use super::point_field::{PointField, Row};
use crate::arith::msm::lists::{Segment, Sums, cut_into_chunks};
use crate::arith::parallel::{Scattered, drain};

/// Entries per chunk: up to 2 MiB of G1 blocks.
const CHUNK: usize = 1 << 15;

/// See [`crate::arith::msm::Engine::sum_ordered`].
///
/// # Safety
/// The machine has the AVX-512 features, and what is said there.
pub unsafe fn sum_ordered<F: PointField>(
    table: &[Row<F>],
    entries: &[u32],
    ordered: &[Segment],
    sums: &mut Sums<Row<F>>,
) {
    let chunks = cut_into_chunks(ordered, 8, CHUNK);
    let (rows, identity) = (Scattered::new(&mut sums.rows), Scattered::new(&mut sums.identity));
    drain(
        chunks.len(),
        // SAFETY: the caller vouches for the features.
        || unsafe { Chunk::new(CHUNK / 8) },
        |chunk: &mut Chunk<F>, i| {
            // SAFETY: each result belongs to one list, so to one chunk.
            unsafe {
                chunk.sum(table, entries, &ordered[chunks[i].clone()]);
                chunk.store_results(&ordered[chunks[i].clone()], &rows, &identity);
            }
        },
    );
}
