//! The segments of a bucket reduction, one segment per lane: see [`crate::arith::msm::reduce`].

use super::batch::{Additions, Batch};
use super::point_field::{PointField, Row};
use crate::arith::msm::lists::Sums;
use crate::arith::msm::reduce::SEGMENT;
use crate::arith::parallel::{Scattered, drain};

/// Vectors of segments per task.
const TASK: usize = 128;

/// See [`crate::arith::msm::Engine::reduce_segments`].
///
/// # Safety
/// The machine has the AVX-512 features.
pub unsafe fn reduce_segments<F: PointField>(
    buckets: &Sums<Row<F>>,
    from_one: bool,
    runs: &mut Sums<Row<F>>,
    accs: &mut Sums<Row<F>>,
) {
    let vectors = runs.rows.len() / 8;
    let targets = [runs, accs].map(|s| (Scattered::new(&mut s.rows), Scattered::new(&mut s.identity)));
    let task = TASK.min(vectors.div_ceil(rayon::current_num_threads())).max(8);
    drain(
        vectors.div_ceil(task),
        // SAFETY: the caller vouches for the features.
        || unsafe { Batch::new() },
        |batch, i| {
            let range = task * i..vectors.min(task * (i + 1));
            // SAFETY: the segments of the range belong to this task.
            unsafe {
                let mut lanes = Lanes::new(buckets, range.start, range.len());
                lanes.accumulate(batch, from_one);
                lanes.store(&targets[0], &targets[1]);
            }
        },
    );
}

/// Eight running points.
#[derive(Clone, Copy)]
struct Running<F> {
    x: F,
    y: F,
    identity: u8,
}

/// The segments of one task, eight per vector.
struct Lanes<'a, F: PointField> {
    buckets: &'a Sums<Row<F>>,
    /// First segment, divided by eight.
    first: usize,
    run: Vec<Running<F>>,
    acc: Vec<Running<F>>,
}

impl<'a, F: PointField> Lanes<'a, F> {
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn new(buckets: &'a Sums<Row<F>>, first: usize, vectors: usize) -> Self {
        // SAFETY: features as above.
        let nothing = unsafe { Running { x: F::one(), y: F::one(), identity: 0xff } };
        Self { buckets, first, run: vec![nothing; vectors], acc: vec![nothing; vectors] }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn accumulate(&mut self, batch: &mut Batch<F>, from_one: bool) {
        for j in (0..SEGMENT).rev() {
            // SAFETY: each running point is in one addition of a list.
            unsafe {
                if !from_one && j + 1 < SEGMENT {
                    batch.run(&mut AccPlusRun { acc: &mut self.acc, run: &self.run });
                }
                batch.run(&mut RunPlusBucket { buckets: self.buckets, first: 8 * self.first, j, run: &mut self.run });
                if from_one {
                    batch.run(&mut AccPlusRun { acc: &mut self.acc, run: &self.run });
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store(&self, runs: &Target<F>, accs: &Target<F>) {
        for (running, (rows, identity)) in [(&self.run, runs), (&self.acc, accs)] {
            for (v, point) in running.iter().enumerate() {
                let segment = 8 * (self.first + v);
                // SAFETY: the segments of this task.
                unsafe {
                    point.x.store_rows(core::array::from_fn(|l| &raw mut (*rows.at(segment + l)).x));
                    point.y.store_rows(core::array::from_fn(|l| &raw mut (*rows.at(segment + l)).y));
                    for l in 0..8 {
                        *identity.at(segment + l) = point.identity >> l & 1 == 1;
                    }
                }
            }
        }
    }
}

type Target<F> = (Scattered<Row<F>>, Scattered<bool>);

/// run\[s\] += B\[16 s + j\].
struct RunPlusBucket<'a, F: PointField> {
    buckets: &'a Sums<Row<F>>,
    /// First segment.
    first: usize,
    j: usize,
    run: &'a mut [Running<F>],
}

impl<F: PointField> RunPlusBucket<'_, F> {
    #[inline]
    fn bucket(&self, v: usize, l: usize) -> usize {
        SEGMENT * (self.first + 8 * v + l) + self.j
    }
}

// SAFETY: bucket rows are sums or zero, below 2.01p; additions write their own running point.
unsafe impl<F: PointField> Additions<F> for RunPlusBucket<'_, F> {
    fn count(&self) -> usize {
        self.run.len()
    }

    fn identities(&self, v: usize) -> (u8, u8) {
        let empty = (0..8).fold(0, |mask, l| mask | u8::from(self.buckets.identity[self.bucket(v, l)]) << l);
        (self.run[v].identity, empty)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn x(&self, v: usize) -> (F, F) {
        // SAFETY: rows of live buckets.
        let x = unsafe { F::load_rows(core::array::from_fn(|l| &raw const self.buckets.rows[self.bucket(v, l)].x)) };
        (self.run[v].x, x)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn y(&self, v: usize) -> (F, F) {
        // SAFETY: rows of live buckets.
        let y = unsafe { F::load_rows(core::array::from_fn(|l| &raw const self.buckets.rows[self.bucket(v, l)].y)) };
        (self.run[v].y, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store(&mut self, v: usize, x: F, y: F, identity: u8) {
        self.run[v] = Running { x, y, identity };
    }
}

/// acc\[s\] += run\[s\]; at first, and after empty buckets, a copy or a doubling.
struct AccPlusRun<'a, F> {
    acc: &'a mut [Running<F>],
    run: &'a [Running<F>],
}

// SAFETY: running points are sums, below 2.01p; additions write their own.
unsafe impl<F: PointField> Additions<F> for AccPlusRun<'_, F> {
    fn count(&self) -> usize {
        self.acc.len()
    }

    fn identities(&self, v: usize) -> (u8, u8) {
        (self.acc[v].identity, self.run[v].identity)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn x(&self, v: usize) -> (F, F) {
        (self.acc[v].x, self.run[v].x)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn y(&self, v: usize) -> (F, F) {
        (self.acc[v].y, self.run[v].y)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn store(&mut self, v: usize, x: F, y: F, identity: u8) {
        self.acc[v] = Running { x, y, identity };
    }
}
