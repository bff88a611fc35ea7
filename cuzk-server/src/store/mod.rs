//! The port between the engine and whatever keeps its jobs through a crash.
//!
//! The engine holds a new job back until [`JobStore::accept`] has returned, and only then answers the client and lets
//! the job be scheduled. What happens to it afterwards is told by [`JobStore::record`], from one thread, in order.
//! With no store, jobs live in memory only.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    core::{
        NewJob,
        identity::Identity,
        job::{JobKey, Outcome},
    },
    proving::ProofRequest,
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
    /// An error is logged, and the events are not told again: a job whose end is not kept runs once more after a restart.
    fn record(&self, events: &[StoreEvent]) -> Result<(), StoreError>;
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
    pub unfinished: Vec<KeptJob>,
    /// Ended jobs that are not forgotten, oldest end first.
    pub finished: Vec<KeptOutcome>,
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

/// Why something was not kept or read, with the path and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);
