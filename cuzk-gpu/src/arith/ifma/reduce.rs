//! Bucket reduction: sum of (b + 1) B\[b\] over the buckets of every window, all windows together.
//!
//! Buckets are cut into segments of 16; segment s is a lane. With run = 0, acc = 0 and j = 15 .. 0:
//! run\[s\] += B\[16 s + j\], acc\[s\] += run\[s\]. Then acc\[s\] = sum (j + 1) B\[16 s + j\], run\[s\] = sum B\[16 s + j\], and
//!
//!   sum (b + 1) B\[b\] = sum acc\[s\] + 16 sum s run\[s\].
//!
//! The last sum is of the same kind with weights from 0, for which acc is advanced *before* run. 2.2 batched additions
//! per bucket, all in the vector form; below [`SCALAR_BELOW`] buckets a window goes on in blst.

use group::Group;
use rayon::prelude::*;

use super::batch::{Additions, Batch};
use super::point_field::{PointField, Row};
use super::rows::affine_from_rows;
use super::tree::{PIECE, Segment, Sums, sum_lists, without_identities};
use crate::arith::curve::Curve;
use crate::arith::parallel::{Scattered, drain};

/// Buckets per segment.
const SEGMENT: usize = 16;

/// Windows with fewer buckets are reduced by blst (a vector needs eight segments).
const SCALAR_BELOW: usize = 8 * SEGMENT;

/// Vectors of segments per task.
const TASK: usize = 128;

/// The weighted sum of each window; window w has the `buckets` (a power of two) buckets from row `w * buckets`.
///
/// # Safety
/// The machine has the AVX-512 features.
pub unsafe fn reduce_windows<C: Curve>(sums: &Sums<C::Field>, buckets: usize) -> Vec<C::Projective> {
    // SAFETY: the caller's.
    unsafe { reduce::<C>(sums, buckets, true) }
}

/// As [`reduce_windows`], with weights b + 1 (`from_one`) or b.
unsafe fn reduce<C: Curve>(sums: &Sums<C::Field>, buckets: usize, from_one: bool) -> Vec<C::Projective> {
    if buckets < SCALAR_BELOW {
        let windows: Vec<usize> = (0..sums.rows.len() / buckets).collect();
        // SAFETY: the caller vouches for the features.
        return windows
            .par_iter()
            .map(|w| unsafe { reduce_scalar::<C>(sums, w * buckets, buckets, from_one) })
            .collect();
    }
    let segments = sums.rows.len() / SEGMENT;
    let mut runs = Sums::identities(segments);
    let mut accs = Sums::identities(segments);
    {
        let targets = [&mut runs, &mut accs].map(|s| (Scattered::new(&mut s.rows), Scattered::new(&mut s.identity)));
        let vectors = segments / 8;
        let task = TASK.min(vectors.div_ceil(rayon::current_num_threads())).max(8);
        drain(
            vectors.div_ceil(task),
            // SAFETY: the caller vouches for the features.
            || unsafe { Batch::new() },
            |batch, i| {
                let range = task * i..vectors.min(task * (i + 1));
                // SAFETY: the segments of the range belong to this task.
                unsafe {
                    let mut lanes = Lanes::new(sums, range.start, range.len());
                    lanes.accumulate(batch, from_one);
                    lanes.store(&targets[0], &targets[1]);
                }
            },
        );
    }
    let per_window = buckets / SEGMENT;
    let windows = segments / per_window;
    let lists: Vec<Segment> = (0..windows)
        .map(|w| Segment { start: (w * per_window) as u32, len: per_window as u32, result: w as u32 })
        .collect();
    let (entries, lists) = without_identities(&accs, &lists);
    let mut totals = Sums::identities(windows);
    // SAFETY: entries are the rows of `accs` that are points.
    let (totals, higher) = unsafe {
        sum_lists(&accs.rows, &entries, &lists, PIECE, &mut totals);
        (totals, reduce::<C>(&runs, per_window, false))
    };
    let total = |(w, higher): (usize, C::Projective)| {
        let mut sum = (0..SEGMENT.trailing_zeros()).fold(higher, |sum, _| sum.double());
        if !totals.identity[w] {
            // SAFETY: the caller vouches for the features.
            let point = unsafe { affine_from_rows::<C>(&totals.rows[w..=w]) }.next();
            C::add_affine(&mut sum, &point.expect("one row, one point"));
        }
        sum
    };
    higher.into_iter().enumerate().map(total).collect()
}

/// The same by running sums in blst.
unsafe fn reduce_scalar<C: Curve>(
    sums: &Sums<C::Field>,
    first: usize,
    buckets: usize,
    from_one: bool,
) -> C::Projective {
    let (mut run, mut acc) = (C::Projective::identity(), C::Projective::identity());
    for b in (first..first + buckets).rev() {
        if !from_one {
            acc += run;
        }
        if !sums.identity[b] {
            // SAFETY: the caller vouches for the features.
            let point = unsafe { affine_from_rows::<C>(&sums.rows[b..=b]) }.next();
            C::add_affine(&mut run, &point.expect("one row, one point"));
        }
        if from_one {
            acc += run;
        }
    }
    acc
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
    buckets: &'a Sums<F>,
    /// First segment, divided by eight.
    first: usize,
    run: Vec<Running<F>>,
    acc: Vec<Running<F>>,
}

impl<'a, F: PointField> Lanes<'a, F> {
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn new(buckets: &'a Sums<F>, first: usize, vectors: usize) -> Self {
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
    buckets: &'a Sums<F>,
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
