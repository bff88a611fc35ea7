//! What people see of an engine: jobs, devices and memory at a moment, with ids and wall-clock times.
//!
//! Everything comes from memory. The engine's lock is held while the core's tables are copied, and never while anything
//! is formatted, sent or waited for.

use std::{
    collections::BTreeMap,
    time::{Instant, SystemTime},
};

use cuzk_synth::circuit::{CircuitId, CircuitKind};

use super::{EngineStatus, ids::JobIds, incidents::Noted, timeline::Interval};
use crate::{
    core::{
        job::{JobTimings, Priority, Stage},
        ledger::Run,
        view::{JobSnapshot, JobState, PartitionSnapshot, StageCounts, Subject},
    },
    memory::{Shares, Use},
    proving::{PartitionTimes, PhaseTimings},
    store::StoreStatus,
};

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Ours.
    pub job_id: String,
    /// The client's name for it, escaped and cut to 64 characters; empty if there is none, or it is not known any more.
    pub request_id: String,
    /// What is to be proven.
    pub kind: CircuitKind,
    /// What proves it, where that is known.
    pub circuit: Option<CircuitId>,
    /// The sector that it is about, where that is known.
    pub subject: Option<Subject>,
    /// Where it stands in the order, or stood at its end.
    pub priority: Option<Priority>,
    /// Where it is in its life.
    pub state: JobState,
    /// When it was accepted.
    pub accepted: Option<SystemTime>,
    /// When its first synthesis began.
    pub started: Option<SystemTime>,
    /// When it ended.
    pub ended: Option<SystemTime>,
    /// Jobs that come before it, as long as it is queued.
    pub queue_position: Option<u32>,
    /// Its partitions by stage.
    pub counts: StageCounts,
    /// Each partition; empty in lists.
    pub partitions: Vec<PartitionView>,
    /// Where the time went, up to now.
    pub timings: JobTimings,
    /// The phases of the provers, summed over partitions.
    pub phases: PhaseTimings,
    /// Why it has no proof, if it ended without.
    pub error: String,
    /// Ids of the devices that proved a partition.
    pub devices: Vec<String>,
}

/// One partition of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// Its number, from 0.
    pub index: u32,
    /// Where it is on its way.
    pub stage: Stage,
    /// Since when, where somebody works at it or it waits for a prover.
    pub since: Option<SystemTime>,
    /// The id of the device that works at it or has proven it; empty if there is none.
    pub device: String,
    /// What a device's worker does with it now.
    pub phase: Option<&'static str>,
    /// The number of the attempt that is under way or comes next, from 1.
    pub attempt: u32,
    /// Why each failed attempt failed, and where.
    pub failures: Vec<String>,
}

/// What one busy worker of a device does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The job it works for.
    pub job_id: String,
    /// Which partition.
    pub partition: u32,
    /// The phase it is in, named as in [`PhaseTimings`]; "begin" and "check" come before those, "verify" after.
    pub phase: &'static str,
    /// Since when it is in that phase.
    pub since: SystemTime,
}

/// What a device can do, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Its id.
    pub id: String,
    /// Partitions given to it at once.
    pub workers: u32,
    /// The workers that have a partition, longest first.
    pub busy: Vec<WorkerView>,
    /// Since when and why it gets no work, if so.
    pub fence: Option<(SystemTime, String)>,
}

/// When the phases of one proven partition ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTimesView {
    /// Counts proven partitions, from 0.
    pub number: u64,
    /// The device's id.
    pub device: String,
    /// The thread that proved it.
    pub lane: u32,
    /// Name, begin and end of each phase.
    pub phases: Vec<(&'static str, SystemTime, SystemTime)>,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// When.
    pub at: SystemTime,
    /// The job it concerns, or empty.
    pub job_id: String,
    /// The id of the device it concerns, or empty.
    pub device: String,
    /// What happened, in a line.
    pub text: String,
}

/// One phase of one partition in a worker of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalView {
    /// The device's index in [`EngineView::devices`].
    pub device: usize,
    /// The worker's number within the device. The one that only takes CRITICAL partitions comes last.
    pub worker: usize,
    /// The job it works for.
    pub job_id: String,
    /// Which partition.
    pub partition: usize,
    /// Named as in [`WorkerView::phase`].
    pub phase: &'static str,
    /// When it began.
    pub from: SystemTime,
    /// When it ended, if it has.
    pub to: Option<SystemTime>,
}

/// What the workers of the devices did lately: phases that ended are told once, with a number to go on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineView {
    /// What to ask with the next time.
    pub next: u64,
    /// Phases that have ended since the time that was asked with.
    pub past: Vec<IntervalView>,
    /// The phases, up to now, of the partitions that are being worked at.
    pub present: Vec<IntervalView>,
}

/// Host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryView {
    /// How it is divided.
    pub shares: Shares,
    /// What is reserved for each use, in bytes.
    pub used: [(Use, u64); Use::ALL.len()],
}

/// The whole picture.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineView {
    /// What `GetStatus` shows.
    pub status: EngineStatus,
    /// The devices' workers and health, in the order of `status.devices`.
    pub devices: Vec<DeviceView>,
    /// Parameters that are being loaded, and how far that is in percent.
    pub loading: Vec<(CircuitId, Option<u64>)>,
    /// Host memory.
    pub memory: MemoryView,
    /// The job store, if there is one.
    pub store: Option<StoreStatus>,
    /// What went wrong lately, the latest first.
    pub incidents: Vec<Incident>,
    /// Jobs that wait for their first synthesis, by priority.
    pub waiting: [(Priority, usize); Priority::ALL.len()],
    /// Rises with every change that could be seen.
    pub revision: u64,
}

/// Turns a core's times and numbers into what people read.
pub(super) struct Lens<'a> {
    pub(super) ids: &'a JobIds,
    pub(super) device_ids: &'a [String],
    /// A moment, and the wall clock then: always the same, so that a time reads the same in every picture.
    pub(super) then: Instant,
    pub(super) wall: SystemTime,
}

/// What the workers at attempts are at, and since when.
pub(super) type Phases = BTreeMap<Run, (&'static str, Instant)>;

impl Lens<'_> {
    pub(super) fn job(&self, job: JobSnapshot, phases: &Phases) -> JobView {
        let key = job.key;
        let partition = |(n, p): (usize, PartitionSnapshot)| {
            let phase = phases.get(&Run { job: key, partition: n, attempt: p.attempt });
            PartitionView {
                index: n as u32,
                stage: p.stage,
                since: p.since.map(|since| self.time(since)),
                device: p.device.map(|device| self.device_ids[device].clone()).unwrap_or_default(),
                phase: phase.filter(|_| p.stage == Stage::Proving && !job.state.is_ended()).map(|(name, _)| *name),
                attempt: p.attempt + 1,
                failures: p.failures,
            }
        };
        JobView {
            job_id: self.ids.text(key),
            request_id: job.label,
            kind: job.kind,
            circuit: job.circuit,
            subject: job.subject,
            priority: job.priority,
            state: job.state,
            accepted: job.accepted.map(|at| self.time(at)),
            started: job.started.map(|at| self.time(at)),
            ended: job.ended.map(|at| self.time(at)),
            queue_position: job.queue_position,
            counts: job.counts,
            partitions: job.partitions.into_iter().enumerate().map(partition).collect(),
            timings: job.timings,
            phases: job.phases,
            error: job.error,
            devices: job.devices,
        }
    }

    pub(super) fn worker(&self, run: Run, phase: &'static str, since: Instant) -> WorkerView {
        WorkerView { job_id: self.ids.text(run.job), partition: run.partition as u32, phase, since: self.time(since) }
    }

    pub(super) fn interval(&self, interval: &Interval) -> IntervalView {
        IntervalView {
            device: interval.device,
            worker: interval.worker,
            job_id: self.ids.text(interval.run.job),
            partition: interval.run.partition,
            phase: interval.phase,
            from: self.time(interval.from),
            to: interval.to.map(|to| self.time(to)),
        }
    }

    pub(super) fn incident(&self, noted: &Noted) -> Incident {
        Incident {
            at: self.time(noted.at),
            job_id: noted.job.map(|job| self.ids.text(job)).unwrap_or_default(),
            device: noted.device.map(|device| self.device_ids[device].clone()).unwrap_or_default(),
            text: noted.text.clone(),
        }
    }

    /// Nothing of a device that there is not.
    pub(super) fn times(&self, times: PartitionTimes) -> Option<PartitionTimesView> {
        let phases = times.phases.into_iter().map(|(name, begin, end)| (name, self.time(begin), self.time(end)));
        Some(PartitionTimesView {
            number: times.number,
            device: self.device_ids.get(times.device)?.clone(),
            lane: times.lane,
            phases: phases.collect(),
        })
    }

    /// The wall clock at a moment.
    pub(super) fn time(&self, at: Instant) -> SystemTime {
        let time = match at.checked_duration_since(self.then) {
            Some(after) => self.wall.checked_add(after),
            None => self.wall.checked_sub(self.then.saturating_duration_since(at)),
        };
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}
