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

use core::arch::x86_64::*;
use std::ops::Range;

use super::batch::{Additions, Batch};
use super::point_field::{PointField, Row};
use crate::arith::memory::{huge_filled, huge_vec};
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
        || unsafe { Tree::new() },
        |tree: &mut Tree<F>, i| {
            // SAFETY: each result belongs to one list, so to one chunk.
            unsafe {
                tree.sum_chunk(table, entries, &ordered[chunks[i].clone()]);
                tree.store_results(&ordered[chunks[i].clone()], &rows, &identity);
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

/// Eight points, one per lane; `identity` flags lanes without a point.
struct Block<F> {
    x: F,
    y: F,
    identity: u8,
}

/// One vector addition of round 1: two entries per lane, into a block.
struct Pair {
    entries: [[u32; 8]; 2],
    missing: [u8; 2],
    block: u32,
}

/// Scratch of one thread.
struct Tree<F: PointField> {
    batch: Batch<F>,
    pairs: Vec<Pair>,
    blocks: Vec<Block<F>>,
    /// (first block, number of blocks) of each group.
    groups: Vec<(u32, u32)>,
    joins: Vec<(u32, u32)>,
}

impl<F: PointField> Tree<F> {
    /// # Safety
    /// The machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn new() -> Self {
        Self {
            // SAFETY: features as above.
            batch: unsafe { Batch::new() },
            pairs: Vec::new(),
            blocks: huge_vec(CHUNK / 8),
            groups: Vec::new(),
            joins: Vec::new(),
        }
    }

    /// Leaves the sums of the lists in the first blocks of their groups.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn sum_chunk(&mut self, table: &[Row<F>], entries: &[u32], lists: &[Segment]) {
        // SAFETY: entries are rows of the table; the blocks of a round are distinct.
        unsafe {
            self.plan_first_round(table, entries, lists);
            self.batch.run(&mut TablePairs {
                table: table.as_ptr(),
                pairs: &self.pairs,
                blocks: self.blocks.as_mut_ptr(),
            });
            let mut stride = 1;
            loop {
                self.joins.clear();
                for &(first, count) in &self.groups {
                    // Entry i of this round is block i * stride; an odd last one waits.
                    let mut i = 0;
                    while i + stride < count {
                        self.joins.push((first + i, first + i + stride));
                        i += 2 * stride;
                    }
                }
                if self.joins.is_empty() {
                    return;
                }
                self.batch.run(&mut Joins { joins: &self.joins, blocks: self.blocks.as_mut_ptr() });
                stride *= 2;
            }
        }
    }

    /// Lists the additions of round 1, and loads the entries that have no partner in any lane.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn plan_first_round(&mut self, table: &[Row<F>], entries: &[u32], lists: &[Segment]) {
        self.pairs.clear();
        self.blocks.clear();
        self.groups.clear();
        for group in lists.chunks(8) {
            let longest = group.iter().map(|s| s.len).max().unwrap_or(0);
            let lanes = Lanes::new(entries, group);
            self.groups.push((self.blocks.len() as u32, longest.div_ceil(2)));
            for i in (0..longest).step_by(2) {
                // SAFETY: `first` are rows of the table.
                unsafe {
                    let (first, missing_1) = lanes.entries(i);
                    if i + 1 < longest {
                        let (second, missing_2) = lanes.entries(i + 1);
                        let block = self.blocks.len() as u32;
                        self.pairs.push(Pair { entries: [first, second], missing: [missing_1, missing_2], block });
                        // Overwritten by the addition; F::one() would do as well.
                        self.blocks.push(Block { x: F::one(), y: F::one(), identity: 0xff });
                    } else {
                        let y = load_signed_y(table.as_ptr(), &first).plus::<4>().cut::<4>().cut::<2>().norm();
                        self.blocks.push(Block { x: load_x(table.as_ptr(), &first), y, identity: missing_1 });
                    }
                }
            }
        }
    }

    /// Writes the first block of each group to the results of its lists.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store_results(&self, lists: &[Segment], rows: &Scattered<Row<F>>, identity: &Scattered<bool>) {
        for (group, &(first, _)) in lists.chunks(8).zip(&self.groups) {
            let block = &self.blocks[first as usize];
            let mut surplus = Row::default();
            // SAFETY: results are in range and nobody else's; lanes past the last list go to `surplus`.
            unsafe {
                let targets: [*mut Row<F>; 8] =
                    core::array::from_fn(|l| group.get(l).map_or(&raw mut surplus, |s| rows.at(s.result as usize)));
                block.x.store_rows(targets.map(|row| &raw mut (*row).x));
                block.y.store_rows(targets.map(|row| &raw mut (*row).y));
                for (l, list) in group.iter().enumerate() {
                    *identity.at(list.result as usize) = block.identity >> l & 1 == 1;
                }
            }
        }
    }
}

/// Up to eight lists, one per lane.
struct Lanes {
    entries: *const u32,
    starts: __m256i,
    lens: __m256i,
}

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn new(entries: &[u32], group: &[Segment]) -> Self {
        let (mut starts, mut lens) = ([group[0].start; 8], [0; 8]);
        for (l, list) in group.iter().enumerate() {
            (starts[l], lens[l]) = (list.start, list.len);
        }
        // SAFETY: arrays of 32 bytes.
        let load = |array: &[u32; 8]| unsafe { _mm256_loadu_epi32(array.as_ptr().cast()) };
        Self { entries: entries.as_ptr(), starts: load(&starts), lens: load(&lens) }
    }

    /// Entry i of each lane, and a mask of the lanes that have none (which give their first entry, or that of lane 0).
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn entries(&self, i: u32) -> ([u32; 8], u8) {
        let i = _mm256_set1_epi32(i.cast_signed());
        let there = _mm256_cmpgt_epu32_mask(self.lens, i);
        let places = _mm256_mask_add_epi32(self.starts, there, self.starts, i);
        let mut gathered = [0u32; 8];
        // SAFETY: places are in range for all lanes; there are less than 2^31 entries.
        unsafe {
            let entries = _mm256_i32gather_epi32::<4>(self.entries.cast(), places);
            _mm256_storeu_epi32(gathered.as_mut_ptr().cast(), entries);
        }
        (gathered, !there)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_x<F: PointField>(table: *const Row<F>, entries: &[u32; 8]) -> F {
    // SAFETY: entries are rows of the table.
    unsafe { F::load_rows(entries.map(|e| &raw const (*table.add((e & !NEGATIVE) as usize)).x)) }
}

/// Raw y with the entry's sign.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_signed_y<F: PointField>(table: *const Row<F>, entries: &[u32; 8]) -> F {
    let mut negative = 0u8;
    for (l, &e) in entries.iter().enumerate() {
        negative |= ((e >> 31) as u8) << l;
    }
    // SAFETY: entries are rows of the table.
    unsafe { F::load_rows(entries.map(|e| &raw const (*table.add((e & !NEGATIVE) as usize)).y)).negate_lanes(negative) }
}

/// Asks for all lines of one coordinate of a row.
#[inline]
fn prefetch<const HINT: i32, R>(row: *const R) {
    for line in 0..size_of::<R>().div_ceil(64) {
        // SAFETY: every x86-64 has SSE; a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<HINT>(row.cast::<i8>().wrapping_add(64 * line)) };
    }
}

/// Round 1.
struct TablePairs<'a, F: PointField> {
    table: *const Row<F>,
    pairs: &'a [Pair],
    blocks: *mut Block<F>,
}

// SAFETY: rows are canonical or earlier sums, so below 2.01p; each pair has a block of its own, which is read by none.
unsafe impl<F: PointField> Additions<F> for TablePairs<'_, F> {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn identities(&self, v: usize) -> (u8, u8) {
        (self.pairs[v].missing[0], self.pairs[v].missing[1])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn x(&self, v: usize) -> (F, F) {
        let [first, second] = &self.pairs[v].entries;
        // SAFETY: entries are rows of the table.
        unsafe { (load_x(self.table, first), load_x(self.table, second)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn y(&self, v: usize) -> (F, F) {
        let [first, second] = &self.pairs[v].entries;
        // SAFETY: entries are rows of the table.
        unsafe { (load_signed_y(self.table, first), load_signed_y(self.table, second)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn prefetch_x(&self, v: usize, quarter: usize) {
        let Some(pair) = self.pairs.get(v) else { return };
        for e in &pair.entries[quarter / 2][quarter % 2 * 4..][..4] {
            // SAFETY: entries are rows of the table.
            prefetch::<_MM_HINT_T1, _>(unsafe { &raw const (*self.table.add((e & !NEGATIVE) as usize)).x });
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn prefetch_y(&self, v: usize, quarter: usize) {
        for e in &self.pairs[v].entries[quarter / 2][quarter % 2 * 4..][..4] {
            // SAFETY: entries are rows of the table.
            prefetch::<_MM_HINT_T0, _>(unsafe { &raw const (*self.table.add((e & !NEGATIVE) as usize)).y });
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store(&mut self, v: usize, x: F, y: F, identity: u8) {
        // SAFETY: the pair's own block.
        unsafe { *self.blocks.add(self.pairs[v].block as usize) = Block { x, y, identity } };
    }
}

/// Later rounds: the second block of each pair is added to the first, in place.
struct Joins<'a, F: PointField> {
    joins: &'a [(u32, u32)],
    blocks: *mut Block<F>,
}

// SAFETY: blocks are sums or loaded rows, below 2.01p; no block is in two pairs of a round.
unsafe impl<F: PointField> Additions<F> for Joins<'_, F> {
    fn len(&self) -> usize {
        self.joins.len()
    }

    fn identities(&self, v: usize) -> (u8, u8) {
        let (a, b) = self.joins[v];
        // SAFETY: blocks of the chunk.
        unsafe { ((*self.blocks.add(a as usize)).identity, (*self.blocks.add(b as usize)).identity) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn x(&self, v: usize) -> (F, F) {
        let (a, b) = self.joins[v];
        // SAFETY: blocks of the chunk.
        unsafe { ((*self.blocks.add(a as usize)).x, (*self.blocks.add(b as usize)).x) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn y(&self, v: usize) -> (F, F) {
        let (a, b) = self.joins[v];
        // SAFETY: blocks of the chunk.
        unsafe { ((*self.blocks.add(a as usize)).y, (*self.blocks.add(b as usize)).y) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store(&mut self, v: usize, x: F, y: F, identity: u8) {
        // SAFETY: blocks of the chunk.
        unsafe { *self.blocks.add(self.joins[v].0 as usize) = Block { x, y, identity } };
    }
}
