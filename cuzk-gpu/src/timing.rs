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
