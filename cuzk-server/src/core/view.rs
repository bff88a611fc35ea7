//! What jobs look like at a moment, for people who watch: unfinished ones and those that ended and are still kept.

use std::time::Instant;

use cuzk_synth::circuit::{CircuitId, CircuitKind};

use super::{
    Core,
    job::{Job, JobKey, JobStatus, JobTimings, Outcome, Partition, Priority, Stage},
    ledger::{Place, Run},
};
use crate::proving::PhaseTimings;

/// What a proof is about, as the client's request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The miner's actor id.
    pub miner_id: u64,
    /// The sector's number within its miner.
    pub sector_number: u64,
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobState {
    /// Waits for its first synthesis.
    Queued,
    /// After the start of its first synthesis.
    Running,
    /// Ended.
    Ended(JobStatus),
}

impl JobState {
    /// All, in the order of a life.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Running,
        Self::Ended(JobStatus::Completed),
        Self::Ended(JobStatus::Failed),
        Self::Ended(JobStatus::Cancelled),
    ];

    /// For logs, tables and filters.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended(status) => status.label(),
        }
    }

    /// Whether nothing more comes of it.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// How many partitions of a job are at each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCounts {
    /// For a synthesis thread.
    pub waiting: u32,
    /// In a synthesis thread.
    pub synthesizing: u32,
    /// Synthesized, for a prover.
    pub ready: u32,
    /// In a prover.
    pub proving: u32,
    /// Proven and verified.
    pub proved: u32,
}

impl StageCounts {
    fn of(partitions: &[Partition]) -> Self {
        let mut counts = Self::default();
        for partition in partitions {
            *match partition.stage {
                Stage::Waiting => &mut counts.waiting,
                Stage::Synthesizing => &mut counts.synthesizing,
                Stage::Ready => &mut counts.ready,
                Stage::Proving => &mut counts.proving,
                Stage::Proved => &mut counts.proved,
            } += 1;
        }
        counts
    }

    /// Partitions in all.
    pub fn total(&self) -> u32 {
        self.waiting + self.synthesizing + self.ready + self.proving + self.proved
    }
}

/// One partition at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSnapshot {
    /// Where it is on its way.
    pub stage: Stage,
    /// Since when, where somebody works at it or it waits for a prover.
    pub since: Option<Instant>,
    /// The index of the device that works at it or has proven it.
    pub device: Option<usize>,
    /// The number of the attempt that is under way or comes next, from 0.
    pub attempt: u32,
    /// Why each failed attempt failed, and where.
    pub failures: Vec<String>,
}

/// One job at a moment. What is not known of a job of an earlier life that has ended is `None` or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSnapshot {
    /// Which.
    pub key: JobKey,
    /// The client's name for it, fit for a log.
    pub label: String,
    /// What is to be proven.
    pub kind: CircuitKind,
    /// What proves it.
    pub circuit: Option<CircuitId>,
    /// The sector that it is about.
    pub subject: Option<Subject>,
    /// Where it stands in the order, or stood at its end.
    pub priority: Option<Priority>,
    /// Where it is in its life.
    pub state: JobState,
    /// When it was accepted.
    pub accepted: Option<Instant>,
    /// When its first synthesis began.
    pub started: Option<Instant>,
    /// When it ended.
    pub ended: Option<Instant>,
    /// Jobs that come before it, as long as it is queued.
    pub queue_position: Option<u32>,
    /// Its partitions by stage.
    pub counts: StageCounts,
    /// Each partition; empty in lists.
    pub partitions: Vec<PartitionSnapshot>,
    /// Where the time went, up to now.
    pub timings: JobTimings,
    /// The phases of the provers, summed over partitions.
    pub phases: PhaseTimings,
    /// Why it has no proof, if it ended without.
    pub error: String,
    /// Ids of the devices that proved a partition.
    pub devices: Vec<String>,
}

/// Which jobs a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs in one of these states; empty: all.
    pub states: Vec<JobState>,
    /// Only jobs of this kind.
    pub kind: Option<CircuitKind>,
    /// At most so many.
    pub limit: usize,
}

impl JobFilter {
    fn takes(&self, state: JobState, kind: CircuitKind) -> bool {
        (self.states.is_empty() || self.states.contains(&state)) && self.kind.is_none_or(|only| only == kind)
    }
}

impl Core {
    /// Tells what an unfinished job is about, for those who look.
    pub fn describe(&mut self, key: JobKey, subject: Subject) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.subject = Some(subject);
        }
    }

    /// One job with all its partitions, unfinished or ended and still kept.
    pub fn snapshot(&self, key: JobKey, now: Instant) -> Option<JobSnapshot> {
        match self.jobs.get(&key) {
            Some(job) => {
                let mut snapshot = self.unfinished_snapshot(key, job, now);
                snapshot.queue_position = job.started.is_none().then(|| self.queue_position(key));
                snapshot.partitions = self.partition_snapshots(key, job);
                Some(snapshot)
            }
            None => self.finished.snapshot(key),
        }
    }

    /// The jobs that a filter takes, without their partitions: unfinished ones in their order, then ended ones, the
    /// latest end first.
    pub fn list(&self, filter: &JobFilter, now: Instant) -> Vec<JobSnapshot> {
        let mut found = Vec::new();
        let mut ahead = 0;
        for (_, key) in &self.order {
            if found.len() >= filter.limit {
                return found;
            }
            let job = &self.jobs[key]; // `order` holds the keys of `jobs`
            if filter.takes(state_of(job), job.kind()) {
                let mut snapshot = self.unfinished_snapshot(*key, job, now);
                snapshot.queue_position = job.started.is_none().then_some(ahead);
                found.push(snapshot);
            }
            ahead += u32::from(job.started.is_none());
        }
        let room = filter.limit - found.len();
        let takes = |outcome: &Outcome| filter.takes(JobState::Ended(outcome.status), outcome.kind);
        found.extend(self.finished.latest(takes).take(room));
        found
    }

    /// A job that is about to end, as it will be remembered. Its time, error and devices are in its outcome.
    pub(super) fn last_snapshot(&self, key: JobKey, status: JobStatus, now: Instant) -> Option<JobSnapshot> {
        let job = self.jobs.get(&key)?;
        Some(JobSnapshot {
            state: JobState::Ended(status),
            ended: Some(now),
            partitions: self.partition_snapshots(key, job),
            ..self.unfinished_snapshot(key, job, now)
        })
    }

    fn unfinished_snapshot(&self, key: JobKey, job: &Job, now: Instant) -> JobSnapshot {
        let mut timings = job.timings;
        timings.total = now.saturating_duration_since(job.accepted);
        if job.started.is_none() {
            timings.queue_wait = timings.total;
        }
        JobSnapshot {
            key,
            label: job.label.clone(),
            kind: job.kind(),
            circuit: Some(job.circuit),
            subject: job.subject,
            priority: Some(job.priority),
            state: state_of(job),
            accepted: Some(job.accepted),
            started: job.started,
            ended: None,
            queue_position: None,
            counts: StageCounts::of(&job.partitions),
            partitions: Vec::new(),
            timings,
            phases: job.phases.clone(),
            error: String::new(),
            devices: job.devices.iter().map(|d| self.devices[*d].spec.id.clone()).collect(),
        }
    }

    fn partition_snapshots(&self, job: JobKey, state: &Job) -> Vec<PartitionSnapshot> {
        let snapshot = |(partition, state): (usize, &Partition)| {
            let slot = self.ledger.get(Run { job, partition, attempt: state.attempt });
            let place = slot.map(|slot| slot.place);
            PartitionSnapshot {
                stage: state.stage,
                since: slot.map(|slot| slot.since),
                device: match place {
                    Some(Place::Device(device) | Place::Verification(device)) => Some(device),
                    _ => state.proved_on,
                },
                attempt: state.attempt,
                failures: state.failures.clone(),
            }
        };
        state.partitions.iter().enumerate().map(snapshot).collect()
    }
}

fn state_of(job: &Job) -> JobState {
    if job.started.is_some() { JobState::Running } else { JobState::Queued }
}

impl JobSnapshot {
    /// What is left to know of a job when only its outcome was kept.
    pub(super) fn of_outcome(outcome: &Outcome, ended: Instant) -> Self {
        Self {
            key: outcome.key,
            label: String::new(),
            kind: outcome.kind,
            circuit: None,
            subject: None,
            priority: None,
            state: JobState::Ended(outcome.status),
            accepted: ended.checked_sub(outcome.timings.total),
            started: None,
            ended: Some(ended),
            queue_position: None,
            counts: StageCounts::default(),
            partitions: Vec::new(),
            timings: outcome.timings,
            phases: PhaseTimings::default(),
            error: outcome.error.clone(),
            devices: outcome.devices.clone(),
        }
    }

    /// About how much memory it takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let failures = |p: &PartitionSnapshot| p.failures.iter().map(String::len).sum::<usize>();
        let partitions: usize = self.partitions.iter().map(|p| size_of::<PartitionSnapshot>() + failures(p)).sum();
        (size_of::<Self>() + self.label.len() + partitions) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::{
        NewJob, ProofFailure,
        tests::{Bench, CIRCUIT, job, limits, secs},
    };

    fn all() -> JobFilter {
        JobFilter { limit: 100, ..JobFilter::default() }
    }

    #[test]
    fn a_job_is_seen_from_the_queue_to_its_end() {
        let mut b = Bench::new(limits(), 1);
        let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
        b.core.describe(key, Subject { miner_id: 1000, sector_number: 7 });
        b.pass(secs(3));
        let queued = b.core.snapshot(key, b.now).unwrap();
        assert_eq!((queued.state, queued.queue_position), (JobState::Queued, Some(0)));
        assert_eq!(queued.timings.queue_wait, secs(3));
        assert_eq!(queued.counts, StageCounts { waiting: 2, ..StageCounts::default() });
        assert_eq!(queued.subject, Some(Subject { miner_id: 1000, sector_number: 7 }));
        assert_eq!(queued.circuit, Some(CIRCUIT));

        let first = b.synth().unwrap();
        b.synth_done(first);
        let order = b.prove(0).unwrap();
        let running = b.core.snapshot(key, b.now).unwrap();
        assert_eq!((running.state, running.queue_position), (JobState::Running, None));
        assert_eq!((running.partitions[0].stage, running.partitions[0].device), (Stage::Proving, Some(0)));
        assert_eq!(running.partitions[0].since, Some(b.now));
        b.proved(order, 0, Err(ProofFailure::Device("a cable".into())));
        let again = b.core.snapshot(key, b.now).unwrap();
        assert_eq!(again.partitions[0].attempt, 1);
        assert!(again.partitions[0].failures[0].ends_with("a cable"), "{:?}", again.partitions[0].failures);

        b.finish_all(6);
        b.pass(secs(5));
        let ended = b.core.snapshot(key, b.now).unwrap();
        assert_eq!(ended.state, JobState::Ended(JobStatus::Completed));
        assert_eq!(ended.counts, StageCounts { proved: 2, ..StageCounts::default() });
        assert_eq!(ended.partitions[1].device, Some(0));
        assert_eq!(ended.ended, Some(b.now - secs(5)));
        assert_eq!(ended.phases.get(PhaseTimings::LOCK_HOLD), ended.timings.compute);
        assert_eq!(ended.partitions[0].failures.len(), 1, "what went wrong is remembered");
        assert_eq!(b.core.list(&all(), b.now)[0].partitions, [], "lists are short");
        b.pass(Duration::from_secs(1000));
        assert_eq!(b.core.snapshot(key, b.now), None, "forgotten");
    }

    #[test]
    fn lists_are_in_order_filtered_and_bounded() {
        let mut b = Bench::new(limits(), 1);
        let done = b.accept(job(1, 1));
        b.finish_all(1);
        let failed = b.accept(job(2, 1));
        b.core.give_up(failed, "no".to_owned(), b.now);
        let waits = b.accept(job(3, 1));
        let urgent = b.accept(NewJob { priority: Priority::Critical, ..job(4, 1) });
        let keys = |filter: &JobFilter| b.core.list(filter, b.now).iter().map(|j| j.key).collect::<Vec<_>>();
        assert_eq!(keys(&all()), [urgent, waits, failed, done]);
        assert_eq!(keys(&JobFilter { limit: 3, ..all() }), [urgent, waits, failed]);
        let only = |state| JobFilter { states: vec![state], ..all() };
        assert_eq!(keys(&only(JobState::Ended(JobStatus::Failed))), [failed]);
        assert_eq!(keys(&only(JobState::Running)), []);
        assert_eq!(keys(&JobFilter { kind: Some(CircuitKind::Snap), ..all() }), []);
        let positions: Vec<_> = b.core.list(&all(), b.now).iter().map(|j| j.queue_position).collect();
        assert_eq!(positions, [Some(0), Some(1), None, None]);
        assert_eq!(b.core.list(&all(), b.now)[2].error, "no");
    }
}
