//! The engine's decisions: no thread, no clock, no network, no mathematics.
//!
//! Whoever drives a [`Core`] tells it what happened (`handle_*`, with the time), asks it for work (`poll_*`), and
//! carries out the [`Effect`]s it leaves behind. Every accepted job ends exactly once, with one [`Effect::Ended`].
//!
//! * [`identity`]: which submissions are the same job
//! * [`job`], [`finished`]: a job before and after its end
//! * [`ledger`], [`params`], `loading`: host memory, and the proving parameters in it
//! * `admission`: submit, attach, replay, supersede, refuse
//! * `schedule`: which partition is synthesized and proven next
//! * `pipeline`: what the result means, and what is tried again
//! * [`devices`]: which of them get work
//! * [`watchdog`]: how long a stage may take
//! * `restore`: jobs that wait to be kept, and those that come back after a restart
//! * [`view`]: what jobs look like to those who watch
//! * `lifetime`: waiters, cancellation, time-outs, the end of a job

mod admission;
#[cfg(test)]
mod attempts_tests;
pub mod devices;
pub mod finished;
pub mod identity;
pub mod job;
pub mod ledger;
mod lifetime;
mod loading;
pub mod params;
mod pipeline;
mod restore;
mod schedule;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
pub mod view;
pub mod watchdog;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

pub use admission::{Interest, NewJob, Refused, Ticket, TicketKind};
use cuzk_synth::circuit::{CircuitId, CircuitKind};
use devices::{Device, DeviceSpec};
use finished::{Finished, Retention};
use identity::Identity;
use job::{Job, JobKey, Outcome, Priority};
use ledger::{Ledger, Place, Run};
use params::{ParamsState, ParamsTable};
pub use pipeline::{ProofFailure, SynthesisFailure};
pub use schedule::ProofOrder;

use crate::{
    memory::{Budget, Reservation},
    metrics::Metrics,
    proving::PartitionProof,
};

/// The bounds a core keeps. See [`crate::EngineConfig`] for most of them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs waiting for their first synthesis.
    pub queued_jobs: usize,
    /// Partitions synthesized at once.
    pub synthesis_workers: usize,
    /// Partitions ready ahead of the provers of each device; `None`: one for each prover.
    pub lookahead: Option<usize>,
    /// Attempts at one partition before its job fails. At least 1.
    pub attempts: u32,
    /// How long the order is bent so that parameters need not be exchanged.
    pub group_delay: Duration,
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
    /// A partition is proven and verified, and it is not the last of its job.
    Proved {
        /// Which.
        run: Run,
        /// Its proof.
        proof: PartitionProof,
    },
    /// The outcomes of these jobs are not kept any longer.
    Forgotten(Vec<JobKey>),
    /// Drop a synthesized partition from the hand-over.
    Discard(Run),
    /// Something failed and is done again.
    Retried {
        /// Of which job.
        job: JobKey,
        /// Which partition; `None`: all.
        partition: Option<usize>,
        /// Where, in words.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// A device gets no more work.
    Fenced {
        /// Its index.
        device: usize,
        /// Why.
        reason: String,
    },
    /// Try to revive a device, and report with [`Core::handle_revived`].
    Revive(usize),
    /// A device gets work again.
    Revived {
        /// Its index.
        device: usize,
        /// For how long it got none.
        out_for: Duration,
    },
    /// A partition has been in one place for too long.
    Stalled {
        /// Which.
        run: Run,
        /// Where.
        place: Place,
        /// For how long.
        age: Duration,
    },
    /// Load the parameters of a circuit and report with [`Core::handle_params_loaded`].
    LoadParams(CircuitId),
    /// Release the parameters of a circuit, and report with [`Core::handle_params_dropped`].
    DropParams(CircuitId),
}

/// The state of the engine.
#[derive(Debug)]
pub struct Core {
    limits: Limits,
    /// By index.
    devices: Vec<Device>,
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
    /// Parameters on their way out of memory, and the memory that they hold until then.
    leaving: Vec<(CircuitId, Reservation)>,
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
    /// Devices that get no work, since when and why, in words.
    pub fenced: Vec<String>,
    /// Whether new jobs are refused.
    pub draining: bool,
}

impl Core {
    /// An empty engine with these devices, on a budget.
    pub fn new(limits: Limits, budget: Budget, devices: Vec<DeviceSpec>) -> Self {
        Self {
            limits,
            next_key: 1,
            jobs: HashMap::new(),
            order: BTreeSet::new(),
            by_identity: HashMap::new(),
            finished: Finished::new(limits.retention),
            ledger: Ledger::new(budget),
            params: ParamsTable::default(),
            leaving: Vec::new(),
            draining: false,
            metrics: Metrics::new(devices.len()),
            effects: Vec::new(),
            devices: devices.into_iter().map(Device::new).collect(),
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

    /// The devices, by index.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceSpec> {
        self.devices.iter().map(|device| &device.spec)
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
                .map(|(run, slot)| {
                    let age = now.saturating_duration_since(slot.since).as_secs();
                    format!("{} has not answered for {age} s (partition {})", self.place(slot.place), run.partition)
                })
                .collect(),
            fenced: self
                .devices
                .iter()
                .filter_map(|device| {
                    let fence = device.fence.as_ref()?;
                    let age = now.saturating_duration_since(fence.since).as_secs();
                    Some(format!("device {} gets no work since {age} s: {}", device.spec.id, fence.reason))
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
        let (run, _) = on_device.min_by_key(|(_, slot)| slot.since)?;
        // The job may have been cancelled; the device still works for it.
        Some((run.job, self.jobs.get(&run.job).map(|job| job.circuit.kind)))
    }

    /// A place in words, for messages.
    pub fn place(&self, place: Place) -> String {
        match place {
            Place::Synthesis => "a synthesis thread".to_owned(),
            Place::Handover => "the hand-over".to_owned(),
            Place::Device(device) => format!("device {}", self.devices[device].spec.id),
            Place::Verification(_) => "a verification thread".to_owned(),
        }
    }
}
