//! The port between the engine and whatever keeps its jobs through a crash.
//!
//! The engine holds a new job back until [`JobStore::accept`] has returned, and only then answers the client and lets
//! the job be scheduled. What happens to it afterwards is told by [`JobStore::record`], from one thread, in order.
//! With no store, jobs live in memory only. [`durable`] is the store that there is.

pub mod durable;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    core::{
        NewJob,
        identity::Identity,
        job::{JobKey, Outcome},
    },
    metrics::Histogram,
    proving::{PartitionProof, ProofRequest},
};

/// Keeps jobs. All methods block, are called from ordinary threads, never under a lock of the engine, and must not
/// panic.
pub trait JobStore: Send + Sync + 'static {
    /// What was kept, asked once, before any other call. Payloads are left where they are.
    fn recover(&self) -> Result<Recovered, StoreError>;

    /// Reads the request of an unfinished job back, as it was given to [`Self::accept`].
    fn request(&self, job: JobKey) -> Result<ProofRequest, StoreError>;

    /// Keeps a new job with its payload. When this returns `Ok`, both survive a crash. Called from several threads at
    /// once. After an error nothing of the job is left.
    fn accept(&self, job: &KeptJob, request: &ProofRequest) -> Result<(), StoreError>;

    /// Notes what has become of jobs, in order. Called from one thread; every job in it was accepted or recovered.
    /// After an error the store tries again by itself; a job whose end is not kept by the next start runs once more.
    fn record(&self, events: &[StoreEvent]) -> Result<(), StoreError>;

    /// What there is to tell of it. Answers from memory.
    fn status(&self) -> StoreStatus;
}

/// A job as it is kept.
#[derive(Clone, Debug)]
pub struct KeptJob {
    /// Its number, unique in the life of the store.
    pub key: JobKey,
    /// All that the queue needs to know.
    pub new: NewJob,
    /// When it was accepted, by the wall clock.
    pub accepted: SystemTime,
}

/// What has become of a job.
#[derive(Clone, Debug)]
pub enum StoreEvent {
    /// One of its partitions has a verified proof, which need not be made again after a restart.
    Proved(JobKey, usize, PartitionProof),
    /// It has ended; its payload is needed no more. A completed one's proof is kept until it is forgotten.
    Ended(Arc<Outcome>),
    /// Its outcome is not kept any longer (number, bytes or age of what is kept).
    Forgotten(JobKey),
}

/// What a store held when it was opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// What all job ids of this store begin with; chosen when the store was made, never changed.
    pub ids: String,
    /// Greater than the key of every job ever accepted, also of those forgotten.
    pub next_key: u64,
    /// Jobs without an end, by key.
    pub unfinished: Vec<Unfinished>,
    /// Ended jobs that are not forgotten, oldest end first.
    pub finished: Vec<KeptOutcome>,
}

/// A job without an end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// As it was accepted.
    pub job: KeptJob,
    /// The partitions that are proven, and their proofs.
    pub proofs: Vec<(usize, PartitionProof)>,
}

/// An ended job as it is kept.
#[derive(Clone, Debug)]
pub struct KeptOutcome {
    /// What it is the same as.
    pub identity: Identity,
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// How long ago, by the wall clock; zero if that has been set back.
    pub age: Duration,
}

/// Why something was not kept or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Who has to do what about it.
    pub kind: StoreErrorKind,
    /// What was tried, where, and what came of it.
    pub reason: String,
}

/// Who has to do what about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// There is no room: it comes with time, or by an operator's hand.
    Full,
    /// The disk cannot be written or read: an operator must look at it.
    Broken,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.kind {
            StoreErrorKind::Full => "make room on its disk",
            StoreErrorKind::Broken => "look at its disk",
        };
        write!(f, "{} ({remedy})", self.reason)
    }
}

impl std::error::Error for StoreError {}

/// A point-in-time picture of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStatus {
    /// Unfinished jobs in it.
    pub jobs: usize,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Bytes of payloads written since the start.
    pub spooled_bytes: u64,
    /// Unfinished jobs found at the start.
    pub resumed: u64,
    /// Jobs found at the start that could not go on.
    pub lost: u64,
    /// Writes that failed since the start.
    pub errors: u64,
    /// Changes that are not on the disk yet because writes fail.
    pub pending: usize,
    /// How long commits took, sync included.
    pub commits: Histogram,
    /// What went wrong at the latest write; `None` if it succeeded.
    pub trouble: Option<String>,
}
