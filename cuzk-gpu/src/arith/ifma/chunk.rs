//! The binary tree over one chunk of lists: rounds 1, 2, .. of [`super::tree`].

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::batch::{Additions, Batch};
use super::point_field::{PointField, Row};
use crate::arith::memory::huge_vec;
use crate::arith::msm::lists::{NEGATIVE, Segment};
use crate::arith::parallel::Scattered;

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
pub struct Chunk<F: PointField> {
    batch: Batch<F>,
    pairs: Vec<Pair>,
    /// Written before they are read: by a load or by the addition of round 1.
    blocks: Vec<MaybeUninit<Block<F>>>,
    /// (first block, number of blocks) of each group.
    groups: Vec<(u32, u32)>,
    joins: Vec<(u32, u32)>,
}

impl<F: PointField> Chunk<F> {
    /// Scratch for about `blocks` blocks; it grows where a chunk needs more.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn new(blocks: usize) -> Self {
        Self {
            // SAFETY: features as above.
            batch: unsafe { Batch::new() },
            pairs: Vec::new(),
            blocks: huge_vec(blocks),
            groups: Vec::new(),
            joins: Vec::new(),
        }
    }

    /// Leaves the sums of the lists in the first blocks of their groups.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn sum(&mut self, table: &[Row<F>], entries: &[u32], lists: &[Segment]) {
        // SAFETY: entries are rows of the table; the blocks of a round are distinct.
        unsafe {
            self.plan_first_round(table, entries, lists);
            self.batch.run(&mut TablePairs {
                table: table.as_ptr(),
                pairs: &self.pairs,
                blocks: self.blocks.as_mut_ptr().cast(),
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
                self.batch.run(&mut Joins { joins: &self.joins, blocks: self.blocks.as_mut_ptr().cast() });
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
                        self.blocks.push(MaybeUninit::uninit());
                    } else {
                        let y = load_signed_y(table.as_ptr(), &first).plus::<4>().cut::<4>().cut::<2>().norm();
                        self.blocks.push(MaybeUninit::new(Block {
                            x: load_x(table.as_ptr(), &first),
                            y,
                            identity: missing_1,
                        }));
                    }
                }
            }
        }
    }

    /// Writes the first block of each group to the results of its lists.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn store_results(&self, lists: &[Segment], rows: &Scattered<Row<F>>, identity: &Scattered<bool>) {
        for (group, &(first, _)) in lists.chunks(8).zip(&self.groups) {
            // SAFETY: `sum` has filled it.
            let block = unsafe { self.blocks[first as usize].assume_init_ref() };
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
    fn count(&self) -> usize {
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
    unsafe fn prefetch_x<const NEAR: bool>(&self, v: usize, quarter: usize) {
        let Some(pair) = self.pairs.get(v) else { return };
        for e in &pair.entries[quarter / 2][quarter % 2 * 4..][..4] {
            // SAFETY: entries are rows of the table.
            let x = unsafe { &raw const (*self.table.add((e & !NEGATIVE) as usize)).x };
            if NEAR { prefetch::<_MM_HINT_T0, _>(x) } else { prefetch::<_MM_HINT_T1, _>(x) }
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
    fn count(&self) -> usize {
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
