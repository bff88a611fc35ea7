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
        let n = self.entries.len();
        if self.points.len() < n {
            self.points.resize(n, Point::default());
        }
        let load = |points: &mut [Point<F>], place: usize| {
            if let Some(&later) = self.entries.get(place + AHEAD) {
                prefetch(&table[row(later)]);
            }
            let entry = self.entries[place];
            let mut point = table[row(entry)];
            if entry & NEGATIVE != 0 {
                point.y = F::sub(&F::default(), &point.y);
            }
            points[place] = point;
        };
        list_pairs(&self.places, 1, &mut self.pairs);
        self.batch.load_and_add(&mut self.points, &self.pairs, |points, (a, b)| {
            load(points, a as usize);
            load(points, b as usize);
        });
        for &(first, count) in &self.places {
            if count % 2 == 1 {
                load(&mut self.points, (first + count - 1) as usize);
            }
        }
        for k in 1.. {
            list_pairs(&self.places, 1 << k, &mut self.pairs);
            if self.pairs.is_empty() {
                return;
            }
            self.batch.add(&mut self.points, &self.pairs);
        }
    }
}

/// Row number of an entry.
fn row(entry: u32) -> usize {
    (entry & !NEGATIVE) as usize
}

/// The additions of a round: in each list, places 0, 2d, 4d, .. with those at `distance` d behind them.
fn list_pairs(places: &[(u32, u32)], distance: u32, pairs: &mut Vec<(u32, u32)>) {
    pairs.clear();
    for &(first, count) in places {
        let starts = (0..count.saturating_sub(distance)).step_by(2 * distance as usize);
        pairs.extend(starts.map(|i| (first + i, first + i + distance)));
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
