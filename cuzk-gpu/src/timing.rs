//! When each phase of a partition ran.

use std::time::{Duration, Instant};

/// The phases of one partition, in the order in which they usually run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Preparing the inputs, outside the device's lock.
    Stage,
    /// Waiting for the device's lock.
    LockWait,
    /// Holding the device's lock.
    LockHold,
    /// Copying the witness to the device.
    Upload,
    /// Bringing it there into the form in which the matrices look it up.
    Expand,
    /// A·w and B·w.
    Rows,
    /// The transforms that give H, and the passes over rows between them.
    Quotient,
    /// Multi-scalar multiplication over the `h` query.
    MsmH,
    /// Over the `l` query.
    MsmL,
    /// Over the `a` query.
    MsmA,
    /// Over the `b_g1` query.
    MsmBG1,
    /// Over the `l`, `a` and `b_g1` queries together.
    MsmWitness,
    /// What the device still tells before its lock is released.
    Download,
    /// Over the `b_g2` query, outside the lock.
    MsmBG2,
    /// Putting the proof together, outside the lock.
    Epilogue,
}

impl Phase {
    /// Name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::LockWait => "lock_wait",
            Self::LockHold => "lock_hold",
            Self::Upload => "upload",
            Self::Expand => "expand",
            Self::Rows => "spmv",
            Self::Quotient => "quotient",
            Self::MsmH => "msm_h",
            Self::MsmL => "msm_l",
            Self::MsmA => "msm_a",
            Self::MsmBG1 => "msm_b_g1",
            Self::MsmWitness => "msm_l_a_b_g1",
            Self::Download => "download",
            Self::MsmBG2 => "msm_b_g2",
            Self::Epilogue => "epilogue",
        }
    }
}

/// When a phase ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Which phase.
    pub phase: Phase,
    /// Its begin.
    pub begin: Instant,
    /// Its end.
    pub end: Instant,
}

impl Interval {
    /// Whether two intervals have any time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }
}

/// The phases of one partition.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    intervals: Vec<Interval>,
}

impl Timings {
    /// Runs `f` and notes when.
    pub fn measure<T>(&mut self, phase: Phase, f: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = f();
        self.push(phase, begin, Instant::now());
        result
    }

    /// Notes a phase.
    pub fn push(&mut self, phase: Phase, begin: Instant, end: Instant) {
        self.intervals.push(Interval { phase, begin, end });
    }

    /// All phases, in the order in which they ended.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Time spent in a phase.
    pub fn total(&self, phase: Phase) -> Duration {
        let spent = |i: &Interval| i.end - i.begin;
        self.intervals.iter().filter(|i| i.phase == phase).map(spent).sum()
    }
}

/// What the locks of one device did: whether kernel phases took turns, and how much of the CPU's part they hid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockUse {
    /// Two kernel phases that ran at the same time; there should be none.
    pub collision: Option<[Interval; 2]>,
    /// Partitions whose CPU part ran while another one's kernel phase did.
    pub hidden_tails: usize,
    /// From the first kernel phase's begin to the last one's end, and the part of it in which the lock was held.
    pub span: Duration,
    /// The time in which the lock was held.
    pub busy: Duration,
}

impl LockUse {
    /// Of all partitions of one device.
    pub fn of(partitions: &[Timings]) -> Self {
        let of_phase = |timings: &Timings, phase| timings.intervals().iter().find(|i| i.phase == phase).copied();
        let mut holds: Vec<_> = partitions.iter().filter_map(|t| of_phase(t, Phase::LockHold)).collect();
        holds.sort_by_key(|hold| hold.begin);
        let collision = holds.windows(2).find(|pair| pair[0].overlaps(&pair[1])).map(|pair| [pair[0], pair[1]]);
        let hidden = |timings: &&Timings| {
            of_phase(timings, Phase::MsmBG2).is_some_and(|tail| holds.iter().any(|hold| hold.overlaps(&tail)))
        };
        let ends = (holds.first().map(|hold| hold.begin), holds.last().map(|hold| hold.end));
        let span = if let (Some(begin), Some(end)) = ends { end - begin } else { Duration::ZERO };
        let busy = holds.iter().map(|hold| hold.end - hold.begin).sum();
        Self { collision, hidden_tails: partitions.iter().filter(hidden).count(), span, busy }
    }

    /// Share of the span in which the lock was held.
    pub fn busy_share(&self) -> f64 {
        if self.span.is_zero() { 1.0 } else { self.busy.as_secs_f64() / self.span.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(begin: Instant, [hold, tail, end]: [u64; 3]) -> Timings {
        let at = |ms| begin + Duration::from_millis(ms);
        let mut timings = Timings::default();
        timings.push(Phase::LockHold, at(hold), at(tail));
        timings.push(Phase::MsmBG2, at(tail), at(end));
        timings
    }

    #[test]
    fn turns_are_told_from_collisions() {
        let begin = Instant::now();
        let good = [[0, 10, 15], [10, 20, 22], [25, 30, 31]].map(|times| partition(begin, times));
        let lock_use = LockUse::of(&good);
        assert_eq!((lock_use.collision, lock_use.hidden_tails), (None, 1));
        assert_eq!(lock_use.busy_share(), 25.0 / 30.0);
        let bad = [[0, 10, 15], [9, 20, 22]].map(|times| partition(begin, times));
        assert!(LockUse::of(&bad).collision.is_some());
        assert_eq!(LockUse::of(&[]).busy_share(), 1.0);
    }
}
