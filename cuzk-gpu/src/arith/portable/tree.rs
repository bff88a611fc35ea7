//! Sums of many lists of points at once: a binary tree over each, all additions of a round in batches.
//!
//! Lists are taken in chunks of about [`CHUNK`] entries, the unit of parallel work. The points of a chunk are copied to a
//! buffer, with their signs; round k then adds pairs at a distance of 2^k places in place. All additions of a round are
//! independent, whatever the points.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::batch::Batch;
use super::coordinate::{Coordinate, Point};
use crate::arith::memory::huge_vec;
use crate::arith::msm::lists::{NEGATIVE, Segment, Sums, cut_into_chunks};
use crate::arith::parallel::{Scattered, drain};

/// Entries per chunk: 400 KiB of G1 points, which with the scratch of the batches fit a second-level cache.
const CHUNK: usize = 1 << 12;

/// Entries between a prefetch and the load.
const AHEAD: usize = 12;

/// See [`crate::arith::msm::Engine::sum_ordered`].
///
/// # Safety
/// No two lists have the same result.
pub unsafe fn sum_ordered<F: Coordinate>(
    table: &[Point<F>],
    entries: &[u32],
    ordered: &[Segment],
    sums: &mut Sums<Point<F>>,
) {
    let chunks = cut_into_chunks(ordered, 1, CHUNK);
    assert!(ordered.iter().all(|s| (s.result as usize) < sums.rows.len()), "results lie in the sums");
    let (rows, identity) = (Scattered::new(&mut sums.rows), Scattered::new(&mut sums.identity));
    drain(chunks.len(), Chunk::new, |chunk, i| {
        let lists = &ordered[chunks[i].clone()];
        chunk.sum(table, entries, lists);
        for (list, &(first, _)) in lists.iter().zip(&chunk.places) {
            let sum = chunk.points[first as usize];
            // SAFETY: each result belongs to one list, so to one chunk.
            unsafe {
                *rows.at(list.result as usize) = sum;
                *identity.at(list.result as usize) = sum.is_identity();
            }
        }
    });
}

/// Scratch of one thread.
struct Chunk<F> {
    batch: Batch<F>,
    entries: Vec<u32>,
    points: Vec<Point<F>>,
    /// (first place, number of places) of each list.
    places: Vec<(u32, u32)>,
    pairs: Vec<(u32, u32)>,
}

impl<F: Coordinate> Chunk<F> {
    fn new() -> Self {
        Self {
            batch: Batch::new(),
            entries: Vec::with_capacity(CHUNK),
            points: huge_vec(CHUNK),
            places: Vec::new(),
            pairs: Vec::with_capacity(CHUNK / 2),
        }
    }

    /// Leaves the sums of the lists in their first places.
    fn sum(&mut self, table: &[Point<F>], entries: &[u32], lists: &[Segment]) {
        self.entries.clear();
        self.places.clear();
        for list in lists {
            self.places.push((self.entries.len() as u32, list.len));
            self.entries.extend_from_slice(&entries[list.start as usize..][..list.len as usize]);
        }
        self.gather(table);
        let mut distance = 1;
        loop {
            self.pairs.clear();
            for &(first, count) in &self.places {
                let mut i = 0;
                while i + distance < count {
                    self.pairs.push((first + i, first + i + distance));
                    i += 2 * distance;
                }
            }
            if self.pairs.is_empty() {
                return;
            }
            self.batch.add(&mut self.points, &self.pairs);
            distance *= 2;
        }
    }

    fn gather(&mut self, table: &[Point<F>]) {
        let point = |entry: u32| &table[(entry & !NEGATIVE) as usize];
        self.points.clear();
        for (i, &entry) in self.entries.iter().enumerate() {
            if let Some(&later) = self.entries.get(i + AHEAD) {
                prefetch(point(later));
            }
            let mut point = *point(entry);
            if entry & NEGATIVE != 0 {
                point.y = F::sub(&F::default(), &point.y);
            }
            self.points.push(point);
        }
    }
}

/// Asks for the cache lines of a point, which need not begin with a line.
#[inline]
fn prefetch<F>(point: &Point<F>) {
    let start = core::ptr::from_ref(point).cast::<i8>();
    for byte in (0..size_of::<Point<F>>()).step_by(64).chain([size_of::<Point<F>>() - 1]) {
        // SAFETY: every x86-64 has SSE; a prefetch reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(byte)) };
    }
}
