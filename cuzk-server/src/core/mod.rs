//! The engine's decisions: no thread, no clock, no network, no mathematics.
//!
//! Whoever drives a [`Core`] tells it what happened (`handle_*`, with the time), asks it for work (`poll_*`), and
//! carries out the [`Effect`]s it leaves behind. Every accepted job ends exactly once, with one [`Effect::Ended`].
//!
//! * [`identity`]: which submissions are the same job
//! * [`job`], [`finished`]: a job before and after its end
//! * [`ledger`], [`params`]: host memory, and the proving parameters in it
//! * `admission`: submit, attach, replay, supersede, refuse
//! * `pipeline`: which partition is synthesized and proven next, and what its result means
//! * `restore`: jobs that wait to be kept, and those that come back after a restart
//! * `lifetime`: waiters, cancellation, time-outs, the end of a job

mod admission;
pub mod finished;
pub mod identity;
pub mod job;
pub mod ledger;
mod lifetime;
pub mod params;
mod pipeline;
mod restore;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

pub use admission::{Interest, NewJob, Refused, Ticket, TicketKind};
use cuzk_synth::circuit::{CircuitId, CircuitKind};
use finished::{Finished, Retention};
use identity::Identity;
use job::{Job, JobKey, Outcome, Priority};
use ledger::{Ledger, Place};
use params::{ParamsState, ParamsTable};
pub use pipeline::{ProofFailure, ProofOrder, SynthesisFailure, SynthesisOrder};

use crate::metrics::Metrics;

/// The bounds a core keeps. See [`crate::EngineConfig`] for most of them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs waiting for their first synthesis.
    pub queued_jobs: usize,
    /// Payload bytes of unfinished jobs.
    pub queued_bytes: u64,
    /// Bytes of synthesized partitions.
    pub memory_budget: u64,
    /// Partitions synthesized ahead of the provers.
    pub handover_depth: usize,
    /// Ended jobs kept.
    pub retention: Retention,
    /// See [`crate::EngineConfig::abandon_grace`].
    pub abandon_grace: Duration,
    /// See [`crate::EngineConfig::promote_after`].
    pub promote_after: Duration,
    /// See [`crate::EngineConfig::stage_limit`].
    pub stage_limit: Duration,
}

/// What the driver has to do because of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A job's first synthesis begins.
    Started {
        /// Which job.
        job: JobKey,
        /// How long it had waited.
        queue_wait: Duration,
    },
    /// A job has ended: wake who waits, let go of its task.
    Ended {
        /// How.
        outcome: Arc<Outcome>,
        /// The client's name for it, fit for a log.
        label: String,
    },
    /// The outcomes of these jobs are not kept any longer.
    Forgotten(Vec<JobKey>),
    /// Drop a synthesized partition from the hand-over.
    Discard {
        /// Of which job.
        job: JobKey,
        /// Which partition.
        partition: usize,
    },
    /// A partition failed on a device and is done again.
    Retried {
        /// Of which job.
        job: JobKey,
        /// Which partition.
        partition: usize,
        /// The device's index.
        device: usize,
        /// What went wrong.
        reason: String,
    },
    /// A partition has been in one place for too long.
    Stalled {
        /// Of which job.
        job: JobKey,
        /// Which partition.
        partition: usize,
        /// Where.
        place: Place,
        /// For how long.
        age: Duration,
    },
    /// Load the parameters of a circuit and report with [`Core::handle_params_loaded`].
    LoadParams(CircuitId),
    /// Release the parameters of a circuit.
    DropParams(CircuitId),
}

/// The state of the engine.
#[derive(Debug)]
pub struct Core {
    limits: Limits,
    /// Ids of the devices, by index.
    devices: Vec<String>,
    next_key: u64,
    /// The unfinished jobs.
    jobs: HashMap<JobKey, Job>,
    /// The keys of `jobs`, most urgent first, then by acceptance.
    order: BTreeSet<(Reverse<Priority>, JobKey)>,
    /// The latest job of each identity, as long as it is in `jobs` or in `finished`.
    by_identity: HashMap<Identity, JobKey>,
    finished: Finished,
    ledger: Ledger,
    params: ParamsTable,
    draining: bool,
    metrics: Metrics,
    effects: Vec<Effect>,
}

/// A point-in-time picture for `GetStatus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreStatus {
    /// By kind: jobs waiting for their first synthesis, and jobs after it.
    pub queues: Vec<(CircuitKind, u32, u32)>,
    /// By device index: the job it has worked for longest, and that job's kind.
    pub device_jobs: Vec<Option<(JobKey, Option<CircuitKind>)>>,
    /// Parameters in memory: circuit, bytes, running jobs that hold them.
    pub params: Vec<(CircuitId, u64, u32)>,
    /// Circuits whose parameters are being loaded.
    pub loading: Vec<CircuitId>,
    /// Jobs completed since the start.
    pub completed: u64,
    /// Jobs failed since the start.
    pub failed: u64,
    /// Partitions that have been in one place for too long, in words.
    pub stalled: Vec<String>,
    /// Whether new jobs are refused.
    pub draining: bool,
}

impl Core {
    /// An empty engine with devices of these ids.
    pub fn new(limits: Limits, devices: Vec<String>) -> Self {
        Self {
            limits,
            next_key: 1,
            jobs: HashMap::new(),
            order: BTreeSet::new(),
            by_identity: HashMap::new(),
            finished: Finished::new(limits.retention),
            ledger: Ledger::new(limits.memory_budget, limits.handover_depth),
            params: ParamsTable::default(),
            draining: false,
            metrics: Metrics::new(devices.len()),
            effects: Vec::new(),
            devices,
        }
    }

    /// What the decisions since the last call ask for, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// How many jobs are unfinished.
    pub fn unfinished(&self) -> usize {
        self.jobs.len()
    }

    /// Whether a job is unfinished.
    pub fn is_unfinished(&self, job: JobKey) -> bool {
        self.jobs.contains_key(&job)
    }

    /// How a job ended, if it did and is still known.
    pub fn outcome(&self, job: JobKey) -> Option<Arc<Outcome>> {
        self.finished.get(job).cloned()
    }

    /// The client's name for an unfinished job, fit for a log.
    pub fn label(&self, job: JobKey) -> Option<&str> {
        self.jobs.get(&job).map(|job| job.label.as_str())
    }

    /// Counters and histograms.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// To count what happens outside the core.
    pub fn metrics_mut(&mut self) -> &mut Metrics {
        &mut self.metrics
    }

    /// Who holds how much host memory.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Ended jobs kept, and their bytes.
    pub fn retained(&self) -> (usize, u64) {
        (self.finished.count(), self.finished.bytes())
    }

    /// The ids of the devices, by index.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Payload bytes of all unfinished jobs.
    pub fn queued_bytes(&self) -> u64 {
        self.jobs.values().map(|job| job.payload_bytes).sum()
    }

    /// Jobs waiting for their first synthesis, by priority.
    pub fn waiting(&self, priority: Priority) -> usize {
        self.jobs.values().filter(|j| j.started.is_none() && j.priority == priority).count()
    }

    /// What `GetStatus` answers. Cost: one pass over the unfinished jobs.
    pub fn status(&self, now: Instant) -> CoreStatus {
        let count = |kind: CircuitKind, started: bool| {
            let of_kind = |j: &&Job| j.circuit.kind == kind && j.started.is_some() == started;
            self.jobs.values().filter(of_kind).count() as u32
        };
        let mut params = Vec::new();
        let mut loading = Vec::new();
        for (circuit, state) in self.params.iter() {
            match state {
                ParamsState::Loaded { bytes, .. } => {
                    params.push((circuit, bytes, self.holders(circuit)));
                }
                ParamsState::Loading { .. } => loading.push(circuit),
                ParamsState::Absent => {}
            }
        }
        CoreStatus {
            queues: CircuitKind::ALL.into_iter().map(|kind| (kind, count(kind, false), count(kind, true))).collect(),
            device_jobs: (0..self.devices.len()).map(|d| self.job_on(d)).collect(),
            params,
            loading,
            completed: self.metrics.finished_as(job::JobStatus::Completed),
            failed: self.metrics.finished_as(job::JobStatus::Failed),
            stalled: self
                .ledger
                .iter()
                .filter(|(_, slot)| slot.stalled)
                .map(|((_, partition), slot)| {
                    let age = now.saturating_duration_since(slot.since).as_secs();
                    format!("{} has not answered for {age} s (partition {partition})", self.place(slot.place))
                })
                .collect(),
            draining: self.draining,
        }
    }

    /// Running jobs of a circuit: they hold its parameters.
    fn holders(&self, circuit: CircuitId) -> u32 {
        let holds = |j: &&Job| j.circuit == circuit && j.started.is_some();
        self.jobs.values().filter(holds).count() as u32
    }

    fn job_on(&self, device: usize) -> Option<(JobKey, Option<CircuitKind>)> {
        let on_device = self.ledger.iter().filter(|(_, s)| s.place == Place::Device(device));
        let ((key, _), _) = on_device.min_by_key(|(_, slot)| slot.since)?;
        // The job may have been cancelled; the device still works for it.
        Some((key, self.jobs.get(&key).map(|job| job.circuit.kind)))
    }

    /// A place in words, for messages.
    pub fn place(&self, place: Place) -> String {
        match place {
            Place::Synthesis => "a synthesis thread".to_owned(),
            Place::Handover => "the hand-over".to_owned(),
            Place::Device(device) => format!("device {}", self.devices[device]),
        }
    }
}
