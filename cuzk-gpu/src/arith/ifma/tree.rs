//! Sums of many lists of points at once: one list per lane, binary tree, no conflicts.
//!
//! 1. Lists (*segments* of an index array) come ordered by length, longest first. Eight consecutive ones form a group,
//!    lane l = list l, so lengths in a group are nearly equal.
//! 2. Round 1: in every lane, entries 2i and 2i+1 are gathered from the table and added into a block of eight points.
//! 3. Round k adds blocks pairwise in place, whole vectors without any transposition, until one block per group is left.
//! 4. The block is transposed into eight rows of results.
//!
//! All additions of a round are independent, whatever the points. Groups are taken in chunks of about [`CHUNK`] entries
//! so that the blocks stay in cache; chunks are the unit of parallel work. A much longer list than the rest would run
//! alone in its lane: [`sum_lists`] cuts it into pieces, which are lists of their own, and sums the pieces' sums again.

use std::ops::Range;

use super::chunk::Chunk;
use super::point_field::{PointField, Row};
use crate::arith::memory::huge_filled;
use crate::arith::parallel::{Scattered, drain};

/// Sign flag of an entry: add the negative of the point. The other bits are a row number.
pub const NEGATIVE: u32 = 1 << 31;

/// Shortest list that may be cut: 32 vectors of one lane's work in round 1.
pub const PIECE: u32 = 256;

/// Entries per chunk: up to 2 MiB of G1 blocks.
const CHUNK: usize = 1 << 15;

/// A list of points: a range of the entry array, and where the sum goes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First entry.
    pub start: u32,
    /// Number of entries, not 0.
    pub len: u32,
    /// Index of the result.
    pub result: u32,
}

/// Results: rows with a flag. A row is meaningless where its flag says that the sum is the identity.
pub struct Sums<F: PointField> {
    /// Affine sums, normalised and below 2.01p.
    pub rows: Vec<Row<F>>,
    /// Is the sum the identity? Results of no list are.
    pub identity: Vec<bool>,
}

impl<F: PointField> Sums<F> {
    /// `n` identities.
    pub fn identities(n: usize) -> Self {
        Self { rows: huge_filled(n, Row::default()), identity: vec![true; n] }
    }
}

/// Sums every list into its place in `sums`. `lists` in any order; those longer than `piece` are cut.
///
/// # Safety
/// The machine has the AVX-512 features. Entries are rows of `table` (with or without [`NEGATIVE`]), none of which is
/// the identity; segments lie in `entries`, results in `sums`, no two in the same place.
pub unsafe fn sum_lists<F: PointField>(
    table: &[Row<F>],
    entries: &[u32],
    lists: &[Segment],
    piece: u32,
    sums: &mut Sums<F>,
) {
    let (whole, long): (Vec<Segment>, Vec<Segment>) = lists.iter().copied().partition(|s| s.len <= piece);
    // SAFETY: the caller's.
    unsafe { sum_ordered(table, entries, &by_length(whole), sums) };
    if long.is_empty() {
        return;
    }
    let (mut pieces, mut lists_of_pieces) = (Vec::new(), Vec::new());
    for list in &long {
        let first = pieces.len() as u32;
        pieces.extend((0..list.len.div_ceil(piece)).map(|k| Segment {
            start: list.start + k * piece,
            len: piece.min(list.len - k * piece),
            result: first + k,
        }));
        lists_of_pieces.push(Segment { start: first, len: pieces.len() as u32 - first, result: list.result });
    }
    let mut partial = Sums::identities(pieces.len());
    // SAFETY: pieces are parts of the caller's lists.
    unsafe { sum_ordered(table, entries, &by_length(pieces), &mut partial) };
    let (entries, lists) = without_identities(&partial, &lists_of_pieces);
    // SAFETY: entries are the rows of `partial` that are points.
    unsafe { sum_lists(&partial.rows, &entries, &lists, piece, sums) };
}

/// Turns lists of consecutive rows of `sums` into entries and lists that leave out the identities.
pub fn without_identities<F: PointField>(sums: &Sums<F>, lists: &[Segment]) -> (Vec<u32>, Vec<Segment>) {
    let mut entries = Vec::new();
    let mut kept = Vec::new();
    for list in lists {
        let start = entries.len() as u32;
        entries.extend((list.start..list.start + list.len).filter(|&i| !sums.identity[i as usize]));
        let len = entries.len() as u32 - start;
        if len > 0 {
            kept.push(Segment { start, len, result: list.result });
        }
    }
    (entries, kept)
}

/// Longest first, by counting.
pub fn by_length(lists: Vec<Segment>) -> Vec<Segment> {
    let Some(longest) = lists.iter().map(|s| s.len).max() else { return lists };
    // next[k]: where the next list of length longest - k goes
    let mut next = vec![0u32; longest as usize + 2];
    for list in &lists {
        next[(longest - list.len) as usize + 1] += 1;
    }
    for k in 1..next.len() {
        next[k] += next[k - 1];
    }
    let mut ordered = lists.clone();
    for list in &lists {
        let place = &mut next[(longest - list.len) as usize];
        ordered[*place as usize] = *list;
        *place += 1;
    }
    ordered
}

/// [`sum_lists`] for lists ordered by length, none of them cut.
///
/// # Safety
/// As for [`sum_lists`].
pub unsafe fn sum_ordered<F: PointField>(table: &[Row<F>], entries: &[u32], ordered: &[Segment], sums: &mut Sums<F>) {
    debug_assert!(ordered.iter().all(|s| s.len > 0 && (s.start + s.len) as usize <= entries.len()));
    let chunks = cut_into_chunks(ordered);
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

/// Ranges of lists: whole groups of eight, about [`CHUNK`] entries each (less where that would leave threads idle).
fn cut_into_chunks(ordered: &[Segment]) -> Vec<Range<usize>> {
    let total: usize = ordered.iter().map(|s| s.len as usize).sum();
    let chunk = CHUNK.min(total.div_ceil(rayon::current_num_threads())).max(1 << 10);
    let mut chunks = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (g, group) in ordered.chunks(8).enumerate() {
        size += 8 * group.iter().map(|s| s.len).max().unwrap_or(0) as usize;
        if size >= chunk || 8 * (g + 1) >= ordered.len() {
            let end = ordered.len().min(8 * (g + 1));
            chunks.push(start..end);
            (start, size) = (end, 0);
        }
    }
    chunks
}
