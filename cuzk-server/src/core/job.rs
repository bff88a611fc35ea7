//! One job: its states, its partitions, and what is left of it when it has ended.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cuzk_synth::circuit::{CircuitId, CircuitKind};

use super::{identity::Identity, ledger::Run, view::Subject};
use crate::{
    memory::Reservation,
    proving::{PartitionProof, PhaseTimings},
};

/// A job's number within this process; the order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub u64);

/// Which job goes first. Ordered: `Low < Critical`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// When nothing else waits.
    Low,
    /// Sealing.
    Normal,
    /// WindowPoSt.
    High,
    /// WinningPoSt: waits for one running partition at most.
    Critical,
}

impl Priority {
    /// All priorities, ascending.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// What a client that does not say gets.
    pub const fn default_for(kind: CircuitKind) -> Self {
        match kind {
            CircuitKind::WinningPost => Self::Critical,
            CircuitKind::WindowPost => Self::High,
            CircuitKind::Porep | CircuitKind::Snap => Self::Normal,
        }
    }

    /// The next priority up, where waiting can lift a job to it. Nothing becomes CRITICAL by waiting.
    pub const fn promoted(self) -> Option<Self> {
        match self {
            Self::Low => Some(Self::Normal),
            Self::Normal => Some(Self::High),
            Self::High | Self::Critical => None,
        }
    }

    /// The next priority up.
    pub const fn above(self) -> Option<Self> {
        match self {
            Self::Low => Some(Self::Normal),
            Self::Normal => Some(Self::High),
            Self::High => Some(Self::Critical),
            Self::Critical => None,
        }
    }

    /// For logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobStatus {
    /// The proof is there and verified.
    Completed,
    /// It could not be proven.
    Failed,
    /// Somebody or something stopped it.
    Cancelled,
}

impl JobStatus {
    /// All, in the order of [`Self::label`]'s metric values.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// For logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Where a job's time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimings {
    /// From acceptance to the start of the first synthesis.
    pub queue_wait: Duration,
    /// Waiting for proving parameters to be loaded.
    pub params_load: Duration,
    /// Synthesis, summed over partitions.
    pub synthesis: Duration,
    /// Inside device locks, summed over partitions.
    pub compute: Duration,
    /// From acceptance to the end.
    pub total: Duration,
}

/// An ended job, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which job.
    pub key: JobKey,
    /// What was to be proven.
    pub kind: CircuitKind,
    /// How it ended.
    pub status: JobStatus,
    /// The verified proof if completed, otherwise empty.
    pub proof: Bytes,
    /// Why not, if not completed.
    pub error: String,
    /// Where the time went.
    pub timings: JobTimings,
    /// Ids of the devices that proved its partitions.
    pub devices: Vec<String>,
}

/// Where one partition is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// For a synthesis thread.
    Waiting,
    /// In a synthesis thread.
    Synthesizing,
    /// Synthesized, for a prover.
    Ready,
    /// In a prover.
    Proving,
    /// Done.
    Proved,
}

/// One partition of a job.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) stage: Stage,
    /// Set exactly if `stage` is [`Stage::Proved`].
    pub(super) proof: Option<PartitionProof>,
    /// The number of the attempt that is under way or comes next. Rises with each, also with those that did not fail.
    pub(super) attempt: u32,
    /// Why each failed attempt failed, and where.
    pub(super) failures: Vec<String>,
    /// The device that proved it.
    pub(super) proved_on: Option<usize>,
    /// The devices that failed on it; another one is better where there is another one.
    pub(super) tried: BTreeSet<usize>,
}

/// An unfinished job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) identity: Identity,
    /// The client's name for it, fit for a log.
    pub(super) label: String,
    pub(super) circuit: CircuitId,
    /// Where it stands in the order; rises with waiting and with more urgent resubmission.
    pub(super) priority: Priority,
    pub(super) payload_bytes: u64,
    /// The memory of its checked request.
    pub(super) _queued: Option<Reservation>,
    /// Host memory of one synthesized partition.
    pub(super) partition_bytes: u64,
    /// Host memory of the circuit's parameters.
    pub(super) params_bytes: u64,
    pub(super) partitions: Vec<Partition>,
    pub(super) accepted: Instant,
    /// Not to be worked at yet: a store has still to keep it, or its request has still to be read back.
    pub(super) held: bool,
    /// When the first synthesis began: the border between queued and running.
    pub(super) started: Option<Instant>,
    /// When it was accepted or last promoted.
    pub(super) waiting_since: Instant,
    /// Since when jobs behind it are taken first, because its parameters would have to take the place of theirs.
    pub(super) passed_since: Option<Instant>,
    /// Whether that has been for long enough.
    pub(super) overdue: bool,
    /// How often every partition's proof was right, but not the whole.
    pub(super) whole_failures: u32,
    /// Clients that wait for it at this moment.
    pub(super) waiters: u32,
    /// Whether `SubmitProof` asked for it: then it goes on with nobody waiting.
    pub(super) detached: bool,
    /// The job that took over its request id. Then it goes on only for those who wait.
    pub(super) superseded_by: Option<JobKey>,
    /// When it will be cancelled, if nobody comes back before.
    pub(super) abandon_at: Option<Instant>,
    pub(super) timings: JobTimings,
    /// The phases of the provers, summed over partitions.
    pub(super) phases: PhaseTimings,
    /// What it is about, as far as that was told.
    pub(super) subject: Option<Subject>,
    /// Indexes of the devices that proved a partition.
    pub(super) devices: BTreeSet<usize>,
}

impl Job {
    /// The first partition at a stage.
    pub(super) fn first_at(&self, stage: Stage) -> Option<usize> {
        self.partitions.iter().position(|p| p.stage == stage)
    }

    /// The partition that a run is the latest attempt at.
    pub(super) fn latest(&mut self, run: Run) -> Option<&mut Partition> {
        self.partitions.get_mut(run.partition).filter(|p| p.attempt == run.attempt)
    }

    /// The whole proof, if every partition has its own.
    pub(super) fn whole_proof(&self) -> Option<Vec<u8>> {
        let proofs: Option<Vec<PartitionProof>> = self.partitions.iter().map(|p| p.proof).collect();
        proofs.map(|proofs| proofs.concat())
    }

    /// Whether it goes on although nobody waits at this moment.
    pub(super) fn runs_unattended(&self) -> bool {
        self.detached && self.superseded_by.is_none()
    }
}

impl Partition {
    /// A partition that nothing was done for yet.
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Waiting,
            proof: None,
            attempt: 0,
            failures: Vec::new(),
            proved_on: None,
            tried: BTreeSet::new(),
        }
    }

    /// Begins anew: whatever an earlier attempt still brings is dropped.
    pub(super) fn start_over(&mut self) {
        self.stage = Stage::Waiting;
        self.proof = None;
        self.proved_on = None;
        self.attempt += 1;
    }
}
