//! From the sums of buckets to the sum of all: which partial sums the device makes, and their weights.
//!
//! A set is worth sum (i+1) B_i. With i = 8q + c, its buckets' rows V_q = sum_c B_(8q+c) and columns C_c = sum_q B_(8q+c),
//! sum i B_i = 8 sum q V_q + sum c C_c. Rows are a set again, an eighth as long; columns are plain sums, made in steps of
//! eight too. So every step consists of segments of eight points, which the accumulation kernel adds up in affine
//! coordinates, about two additions a bucket in all. What is left when little is left goes to groups: the sum of the
//! numbers that have a bit, for each bit, and plain sums.

/// Rows that are left when the steps end: below that a step's latency costs more than its work.
const ROWS_LEFT: u32 = 1 << 15;
/// Points of a group's part, added up by one block.
const GROUP_PART: u32 = 2048;
/// Segments are of that length.
pub const RADIX: u32 = 8;
/// log2 of it.
const RADIX_BITS: u32 = 3;

/// Points in the pool whose plain sum is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The query whose sum it is part of.
    pub query: usize,
    /// The first.
    pub source: u32,
    /// How many; a power of two.
    pub len: u32,
    /// What the sum is worth.
    pub weight: Weight,
}

/// Points in the pool of which number i counts (i 2^shift + 2^base) times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// The query whose sum it is part of.
    pub query: usize,
    /// The first.
    pub source: u32,
    /// How many; a power of two.
    pub len: u32,
    /// Worth of a point's number.
    pub shift: u32,
    /// Worth of a point in any place.
    pub base: u32,
}

/// factor * 2^shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// A small number.
    pub factor: u32,
    /// An exponent of two.
    pub shift: u32,
}

/// Segments of eight, number i beginning at `source + i * segment_stride`: as `msm_job` in the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the first segment.
    pub first_segment: u32,
    /// Place of its first point.
    pub source: u32,
    /// Points between the beginnings of neighbouring segments.
    pub segment_stride: u32,
    /// Whether a segment's points are [`RADIX`] apart, or next to each other.
    pub spread: bool,
}

/// One launch of the accumulation kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is added up.
    pub jobs: Vec<Job>,
    /// Segments of all jobs.
    pub segments: u32,
    /// Where their sums go.
    pub target: u32,
}

/// A sum made by one block: as `msm_group` in the kernels, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The query whose sum it is part of.
    pub query: usize,
    /// The first point.
    pub source: u32,
    /// Of the numbers that count, the first that is added.
    pub first: u32,
    /// And the first that is not.
    pub end: u32,
    /// Numbers count that have this bit; all of them if it is [`ALL`].
    pub bit: u32,
    /// What the sum is worth.
    pub weight: Weight,
}

/// Stands for a bit that all numbers have.
pub const ALL: u32 = 32;

/// The steps and the groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reduction {
    /// In order.
    pub steps: Vec<Step>,
    /// After the steps.
    pub groups: Vec<Group>,
    /// Points that the pool must have room for.
    pub pool: u32,
}

impl Reduction {
    /// The weighted sums of each query's `sets` and `runs`. Points of the pool from `used` on are free.
    pub fn plan(mut sets: Vec<Set>, mut runs: Vec<Run>, used: u32) -> Self {
        let mut plan = Self { pool: used, ..Self::default() };
        let left = |sets: &[Set], runs: &[Run]| {
            sets.iter().map(|set| set.len).chain(runs.iter().map(|run| run.len / RADIX)).max().unwrap_or(0)
        };
        while left(&sets, &runs) > ROWS_LEFT {
            plan.step(&mut sets, &mut runs);
        }
        for set in &sets {
            for bit in 0..set.len.trailing_zeros() {
                let weight = Weight { factor: 1, shift: set.shift + bit };
                plan.groups(set.len / 2, Group { query: set.query, source: set.source, first: 0, end: 0, bit, weight });
            }
            let weight = Weight { factor: 1, shift: set.base };
            plan.groups(set.len, Group { query: set.query, source: set.source, first: 0, end: 0, bit: ALL, weight });
        }
        for run in &runs {
            let (query, source, weight) = (run.query, run.source, run.weight);
            plan.groups(run.len, Group { query, source, first: 0, end: 0, bit: ALL, weight });
        }
        plan
    }

    /// One step: sets become rows and columns, runs shrink to an eighth. Small ones stay for a later launch.
    fn step(&mut self, sets: &mut [Set], runs: &mut Vec<Run>) {
        let mut step = Step { jobs: Vec::new(), segments: 0, target: self.pool };
        let mut job = |source, segment_stride, spread, segments| {
            let first_segment = step.segments;
            step.jobs.push(Job { first_segment, source, segment_stride, spread });
            step.segments += segments;
            step.target + first_segment
        };
        let mut columns = Vec::new();
        for set in sets.iter_mut().filter(|set| set.len >= RADIX * RADIX) {
            for column in 1..RADIX {
                let len = set.len / (RADIX * RADIX);
                let source = job(set.source + column, RADIX * RADIX, true, len);
                columns.push(Run {
                    query: set.query,
                    source,
                    len,
                    weight: Weight { factor: column, shift: set.shift },
                });
            }
            set.source = job(set.source, RADIX, false, set.len / RADIX);
            set.len /= RADIX;
            set.shift += RADIX_BITS;
        }
        for run in runs.iter_mut().filter(|run| run.len >= RADIX * RADIX) {
            run.source = job(run.source, RADIX, false, run.len / RADIX);
            run.len /= RADIX;
        }
        runs.extend(columns);
        self.pool += step.segments;
        self.steps.push(step);
    }

    /// Groups of at most [`GROUP_PART`] of `numbers` points, else like `group`.
    fn groups(&mut self, numbers: u32, group: Group) {
        for first in (0..numbers).step_by(GROUP_PART as usize) {
            self.groups.push(Group { first, end: numbers.min(first + GROUP_PART), ..group });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a plan over integers in place of points.
    fn run(plan: &Reduction, pool: &mut Vec<u64>) -> u64 {
        pool.resize(plan.pool as usize, 0);
        for step in &plan.steps {
            for g in 0..step.segments {
                let job = step.jobs.iter().rfind(|job| job.first_segment <= g).expect("jobs begin at 0");
                let start = job.source + (g - job.first_segment) * job.segment_stride;
                let stride = if job.spread { RADIX } else { 1 };
                let sum = (0..RADIX).fold(0u64, |sum, s| sum.wrapping_add(pool[(start + s * stride) as usize]));
                pool[(step.target + g) as usize] = sum;
            }
        }
        plan.groups.iter().fold(0, |total, group| {
            let numbers = (0u32..).filter(|i| group.bit == ALL || i >> group.bit & 1 == 1);
            let part = numbers.skip(group.first as usize).take((group.end - group.first) as usize);
            let sum = part.fold(0u64, |sum, i| sum.wrapping_add(pool[(group.source + i) as usize]));
            let weight = u64::from(group.weight.factor).wrapping_shl(group.weight.shift);
            total.wrapping_add(sum.wrapping_mul(weight))
        })
    }

    #[test]
    fn the_plan_computes_the_weighted_sum() {
        // Sets of 2^19, 2^6 and 1 buckets, and runs of 2^20 and 4 points, with weights that fit 64 bits.
        let lens = [1 << 19, 1 << 6, 1, 1 << 20, 4];
        let mut pool: Vec<u64> =
            (0..lens.iter().sum::<u64>()).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).collect();
        let sources: Vec<u64> = lens.iter().scan(0, |sum, len| Some(std::mem::replace(sum, *sum + len))).collect();
        let sets: Vec<Set> = (0..3)
            .map(|i| Set {
                query: 0,
                source: sources[i] as u32,
                len: lens[i] as u32,
                shift: 7 * i as u32,
                base: 7 * i as u32,
            })
            .collect();
        let runs: Vec<Run> = (3..5)
            .map(|i| Run {
                query: 0,
                source: sources[i] as u32,
                len: lens[i] as u32,
                weight: Weight { factor: i as u32, shift: 1 },
            })
            .collect();
        let expected = (0..3).fold(0u64, |total, i| {
            let bucket = |b: u64| pool[(sources[i] + b) as usize].wrapping_mul(b + 1) << (7 * i);
            (0..lens[i]).fold(total, |total, b| total.wrapping_add(bucket(b)))
        });
        let expected = (3..5).fold(expected, |total, i| {
            (0..lens[i]).fold(total, |total, b| total.wrapping_add(pool[(sources[i] + b) as usize] * i as u64 * 2))
        });
        let plan = Reduction::plan(sets, runs, pool.len() as u32);
        assert!(plan.steps.len() >= 2);
        assert_eq!(run(&plan, &mut pool), expected);
    }
}
