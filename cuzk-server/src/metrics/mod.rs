//! What is counted, and how it is shown to Prometheus.
//!
//! Counters and histograms only grow. Label values come from the fixed sets of this program (kinds, priorities, phases,
//! circuits, devices), never from a request.

mod exposition;
mod histogram;
mod render;
mod requests;

use std::{collections::BTreeMap, time::Duration};

use cuzk_synth::circuit::CircuitId;

pub(crate) use self::render::{Scrape, render};
pub use self::{histogram::Histogram, requests::Requests};
use crate::{
    core::{
        Refused,
        job::{JobStatus, JobTimings, Priority},
    },
    proving::PhaseTimings,
};

/// What became of a submission that was well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubmissionResult {
    /// A new job.
    Accepted,
    /// The same job was running.
    Attached,
    /// The same job had completed.
    Replayed,
    /// No room, or shutting down.
    Refused,
    /// The request was wrong, or cannot be proven here.
    Invalid,
}

/// What became of one partition in a prover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionResult {
    /// A verified proof.
    Proved,
    /// The prover failed.
    Failed,
    /// A proof that does not verify.
    BadProof,
    /// Its job had ended meanwhile.
    Dropped,
}

/// Whose time a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worker {
    /// A worker of the device with this index, its CPU tail included.
    Device(usize),
    /// The host's synthesis and loading threads.
    Host,
}

/// Everything that is counted since the start.
#[derive(Clone, Debug)]
pub struct Metrics {
    submissions: BTreeMap<SubmissionResult, u64>,
    /// Refused submissions by reason.
    refused: BTreeMap<&'static str, u64>,
    accepted: BTreeMap<(CircuitId, Priority), u64>,
    finished: BTreeMap<(CircuitId, Priority, JobStatus), u64>,
    superseded: u64,
    stalled: u64,
    bad_wholes: u64,
    /// By device index.
    fenced: Vec<u64>,
    /// By device index.
    revived: Vec<u64>,
    /// By device index: time in kernel phases.
    busy: Vec<Duration>,
    /// By device index.
    partitions: Vec<BTreeMap<PartitionResult, u64>>,
    params_loads: BTreeMap<(CircuitId, bool), u64>,
    phases: BTreeMap<(CircuitId, Worker, &'static str), Histogram>,
    queue_wait: BTreeMap<(CircuitId, Priority), Histogram>,
    job_seconds: BTreeMap<(CircuitId, Priority), Histogram>,
    /// Smoothed time from the first synthesis of a job to its completion.
    typical_job: Option<Duration>,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new(devices: usize) -> Self {
        Self {
            submissions: BTreeMap::new(),
            accepted: BTreeMap::new(),
            finished: BTreeMap::new(),
            superseded: 0,
            stalled: 0,
            bad_wholes: 0,
            refused: BTreeMap::new(),
            fenced: vec![0; devices],
            revived: vec![0; devices],
            busy: vec![Duration::ZERO; devices],
            partitions: vec![BTreeMap::new(); devices],
            params_loads: BTreeMap::new(),
            phases: BTreeMap::new(),
            queue_wait: BTreeMap::new(),
            job_seconds: BTreeMap::new(),
            typical_job: None,
        }
    }

    /// Counts a submission.
    pub fn submission(&mut self, result: SubmissionResult) {
        *self.submissions.entry(result).or_default() += 1;
    }

    /// Counts a submission for which there is no room.
    pub fn refused(&mut self, why: &Refused) {
        self.submission(SubmissionResult::Refused);
        *self.refused.entry(why.label()).or_default() += 1;
    }

    /// Counts a new job.
    pub fn accepted(&mut self, circuit: CircuitId, priority: Priority) {
        *self.accepted.entry((circuit, priority)).or_default() += 1;
    }

    /// Counts a job whose request id another one took over.
    pub fn superseded(&mut self) {
        self.superseded += 1;
    }

    /// Counts a partition that was in one place for too long.
    pub fn stalled(&mut self) {
        self.stalled += 1;
    }

    /// Counts a proof that is wrong as a whole.
    pub fn bad_whole(&mut self) {
        self.bad_wholes += 1;
    }

    /// Counts a device that is given no more work.
    pub fn fenced(&mut self, device: usize) {
        self.fenced[device] += 1;
    }

    /// Counts a device that is given work again.
    pub fn revived(&mut self, device: usize) {
        self.revived[device] += 1;
    }

    /// Counts a job's end.
    pub fn finished(&mut self, circuit: CircuitId, priority: Priority, status: JobStatus, timings: &JobTimings) {
        *self.finished.entry((circuit, priority, status)).or_default() += 1;
        if status == JobStatus::Completed {
            self.job_seconds.entry((circuit, priority)).or_default().observe(timings.total);
            let took = timings.total.saturating_sub(timings.queue_wait);
            // An eighth of each new value: follows a change within some ten jobs.
            self.typical_job = Some(self.typical_job.map_or(took, |before| (before * 7 + took) / 8));
        }
    }

    /// Counts a prover's result.
    pub fn partition(&mut self, device: usize, result: PartitionResult) {
        *self.partitions[device].entry(result).or_default() += 1;
    }

    /// Counts a load of parameters.
    pub fn params_load(&mut self, circuit: CircuitId, ok: bool) {
        *self.params_loads.entry((circuit, ok)).or_default() += 1;
    }

    /// Times one phase of one partition, or a load of parameters.
    pub fn phase(&mut self, circuit: CircuitId, worker: Worker, phase: &'static str, took: Duration) {
        self.phases.entry((circuit, worker, phase)).or_default().observe(took);
        if let (Worker::Device(device), PhaseTimings::LOCK_HOLD) = (worker, phase) {
            self.busy[device] += took;
        }
    }

    /// Times a job's wait for its first synthesis.
    pub fn queue_wait(&mut self, circuit: CircuitId, priority: Priority, took: Duration) {
        self.queue_wait.entry((circuit, priority)).or_default().observe(took);
    }

    /// Jobs that ended in a way.
    pub fn finished_as(&self, status: JobStatus) -> u64 {
        self.finished.iter().filter(|((.., s), _)| *s == status).map(|(_, n)| n).sum()
    }

    /// How long a job takes once it has begun; 10 s as long as none has completed.
    pub fn typical_job(&self) -> Duration {
        self.typical_job.unwrap_or(Duration::from_secs(10))
    }
}

impl SubmissionResult {
    const ALL: [Self; 5] = [Self::Accepted, Self::Attached, Self::Replayed, Self::Refused, Self::Invalid];

    const fn label(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Attached => "attached",
            Self::Replayed => "replayed",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
        }
    }
}

impl PartitionResult {
    const ALL: [Self; 4] = [Self::Proved, Self::Failed, Self::BadProof, Self::Dropped];

    const fn label(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Failed => "failed",
            Self::BadProof => "bad_proof",
            Self::Dropped => "dropped",
        }
    }
}
