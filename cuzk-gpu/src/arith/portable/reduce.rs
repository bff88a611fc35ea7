//! The segments of a bucket reduction: see [`crate::arith::msm::reduce`].

use super::batch::Batch;
use super::coordinate::{Coordinate, Point};
use crate::arith::msm::lists::Sums;
use crate::arith::msm::reduce::SEGMENT;
use crate::arith::parallel::{Scattered, drain};

/// Segments per task: additions of a batch.
const TASK: usize = 1 << 10;

/// See [`crate::arith::msm::Engine::reduce_segments`].
pub fn reduce_segments<F: Coordinate>(
    buckets: &Sums<Point<F>>,
    from_one: bool,
    runs: &mut Sums<Point<F>>,
    accs: &mut Sums<Point<F>>,
) {
    let segments = runs.rows.len();
    assert!(accs.rows.len() == segments && buckets.rows.len() == SEGMENT * segments);
    let targets = [runs, accs].map(|s| (Scattered::new(&mut s.rows), Scattered::new(&mut s.identity)));
    let task = TASK.min(segments.div_ceil(rayon::current_num_threads()));
    drain(segments.div_ceil(task), Batch::new, |batch, i| {
        let range = task * i..segments.min(task * (i + 1));
        let sums = accumulate(batch, buckets, range.start, range.len(), from_one);
        for ((rows, identity), sums) in targets.iter().zip(sums.chunks(range.len())) {
            for (segment, sum) in range.clone().zip(sums) {
                // SAFETY: the segments of the range belong to this task.
                unsafe {
                    *rows.at(segment) = *sum;
                    *identity.at(segment) = sum.is_identity();
                }
            }
        }
    });
}

/// The running points of `n` segments from `first`, then their accumulated ones, then n places of scratch.
fn accumulate<F: Coordinate>(
    batch: &mut Batch<F>,
    buckets: &Sums<Point<F>>,
    first: usize,
    n: usize,
    from_one: bool,
) -> Vec<Point<F>> {
    let mut points = vec![Point::default(); 3 * n];
    let pairs = |to: usize, from: usize| -> Vec<(u32, u32)> {
        (0..n).map(|s| ((to * n + s) as u32, (from * n + s) as u32)).collect()
    };
    let (run_plus_bucket, acc_plus_run) = (pairs(0, 2), pairs(1, 0));
    for j in (0..SEGMENT).rev() {
        if !from_one {
            batch.add(&mut points, &acc_plus_run);
        }
        for (s, place) in points[2 * n..].iter_mut().enumerate() {
            let b = SEGMENT * (first + s) + j;
            *place = if buckets.identity[b] { Point::default() } else { buckets.rows[b] };
        }
        batch.add(&mut points, &run_plus_bucket);
        if from_one {
            batch.add(&mut points, &acc_plus_run);
        }
    }
    points
}
