//! Who gets in: attach to a job that exists, replay its proof, start a new one, or refuse.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_synth::circuit::{CircuitId, CircuitKind};

use super::{
    Core,
    identity::Identity,
    job::{Job, JobKey, JobStatus, JobTimings, Outcome, Partition, Priority},
};
use crate::{
    memory::{Reservation, Use},
    metrics::SubmissionResult,
    proving::PhaseTimings,
};

/// A checked request that is no job yet.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What it is the same as.
    pub identity: Identity,
    /// The client's name for it, fit for a log.
    pub label: String,
    /// What proves it.
    pub circuit: CircuitId,
    /// How urgent it is.
    pub priority: Priority,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Number of partitions, at least 1.
    pub partitions: usize,
    /// Host memory of one synthesized partition, in bytes.
    pub partition_bytes: u64,
    /// Host memory of the circuit's parameters, in bytes.
    pub params_bytes: u64,
}

/// How a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// It stays and waits (`Prove`): counted as a waiter until [`Core::handle_waiter_gone`].
    Waiting,
    /// It goes, and comes back for the result (`SubmitProof`).
    Detached,
}

/// The job that a submission got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which.
    pub key: JobKey,
    /// How it came by it.
    pub kind: TicketKind,
    /// Queued jobs ahead of it.
    pub queue_position: u32,
}

/// How a submission came by its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketKind {
    /// A new job.
    New,
    /// The same job was there and unfinished.
    Attached,
    /// The same job was there and completed.
    Replayed(Arc<Outcome>),
}

/// Why a checked request does not become a job now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many wait.
    #[error("the queue is full: {jobs} jobs wait of at most {limit}; retry in {} s", retry_after.as_secs())]
    QueueFull {
        /// How many.
        jobs: usize,
        /// The bound.
        limit: usize,
        /// When a place may be free.
        retry_after: Duration,
    },
    /// Too much payload waits.
    #[error(
        "the queue is full: unfinished jobs hold {held} payload bytes, this one has {payload}, the limit is {limit}; \
         retry in {} s", retry_after.as_secs()
    )]
    BytesFull {
        /// Held by unfinished jobs.
        held: u64,
        /// Of this request.
        payload: u64,
        /// The bound.
        limit: u64,
        /// When there may be room.
        retry_after: Duration,
    },
    /// It can never be proven with this budget.
    #[error(
        "{circuit} needs {params} bytes of host memory for its parameters and {partition} for one partition; \
         {work} bytes of the memory budget are for work: raise memory.total_budget"
    )]
    NeverFits {
        /// Its circuit.
        circuit: CircuitId,
        /// Bytes of its parameters.
        params: u64,
        /// Bytes of one partition.
        partition: u64,
        /// The budget's share for work.
        work: u64,
    },
    /// No device can prove it now.
    #[error("no device for {circuit}: {reason}; retry later")]
    NoDevice {
        /// Its circuit.
        circuit: CircuitId,
        /// Which devices there are, and what is wrong with them.
        reason: String,
    },
    /// The engine stops.
    #[error("the daemon is shutting down and takes no new jobs")]
    Draining,
}

impl Refused {
    /// All labels.
    pub const LABELS: [&str; 5] = ["queue_full", "bytes_full", "never_fits", "no_device", "draining"];

    /// For metrics.
    pub fn label(&self) -> &'static str {
        let [queue, bytes, fits, device, draining] = Self::LABELS;
        match self {
            Self::QueueFull { .. } => queue,
            Self::BytesFull { .. } => bytes,
            Self::NeverFits { .. } => fits,
            Self::NoDevice { .. } => device,
            Self::Draining => draining,
        }
    }
}

impl Core {
    /// Gives a submission the job that is there already: running, or completed. Nothing to parse then.
    ///
    /// Only a new job supersedes others of its request id: a client that repeats an older payload gets that payload's
    /// job, and stops nobody else's.
    pub fn attach(&mut self, identity: &Identity, priority: Priority, interest: Interest) -> Option<Ticket> {
        let key = *self.by_identity.get(identity)?;
        if let Some(outcome) = self.finished.get(key) {
            // A failed or cancelled job is never replayed: the client asks for another attempt.
            let replayed = (outcome.status == JobStatus::Completed).then(|| outcome.clone())?;
            self.metrics.submission(SubmissionResult::Replayed);
            return Some(Ticket { key, kind: TicketKind::Replayed(replayed), queue_position: 0 });
        }
        let job = self.jobs.get_mut(&key)?;
        job.superseded_by = None;
        job.abandon_at = None;
        job.note_interest(interest);
        if priority > job.priority {
            self.set_priority(key, priority);
        }
        self.metrics.submission(SubmissionResult::Attached);
        Some(Ticket { key, kind: TicketKind::Attached, queue_position: self.queue_position(key) })
    }

    /// Whether a new job with that much payload would be taken now. Asked before a request is parsed, to spare the work.
    pub fn check_room(&mut self, payload: u64) -> Result<(), Refused> {
        let refused = self.refusal(payload);
        refused.map_or(Ok(()), |refused| {
            self.metrics.refused(&refused);
            Err(refused)
        })
    }

    /// Turns a checked request into a job, or gives it the one that is there already.
    pub fn submit(&mut self, new: NewJob, interest: Interest, now: Instant) -> Result<Ticket, Refused> {
        let mut ticket = self.submit_held(new, interest, now)?;
        if ticket.kind == TicketKind::New {
            self.release(ticket.key, now);
            ticket.queue_position = self.queue_position(ticket.key);
        }
        Ok(ticket)
    }

    /// As [`Self::submit`], but a new job is held until [`Self::release`]: nothing is done for it, and it supersedes
    /// nothing, until a store has it.
    pub fn submit_held(&mut self, new: NewJob, interest: Interest, now: Instant) -> Result<Ticket, Refused> {
        if let Some(ticket) = self.attach(&new.identity, new.priority, interest) {
            return Ok(ticket);
        }
        self.check_room(new.payload_bytes)?;
        self.check_fit(&new).inspect_err(|refused| self.metrics.refused(refused))?;
        let queued = self.ledger.budget().try_reserve(Use::Queue, new.payload_bytes);
        let key = JobKey(self.next_key);
        self.next_key += 1;
        let mut job = Job::accepted(new, queued, now);
        job.held = true;
        job.note_interest(interest);
        self.metrics.submission(SubmissionResult::Accepted);
        self.enqueue(key, job);
        Ok(Ticket { key, kind: TicketKind::New, queue_position: self.queue_position(key) })
    }

    /// Puts a job into the tables.
    pub(super) fn enqueue(&mut self, key: JobKey, job: Job) {
        let identity = job.identity;
        self.order.insert((Reverse(job.priority), key));
        self.by_identity.insert(identity, key);
        self.metrics.accepted(job.circuit, job.priority);
        self.jobs.insert(key, job);
    }

    /// The job `key` makes the earlier unfinished jobs of its request id out of date. They stop, except those that
    /// somebody waits for.
    pub(super) fn supersede_earlier(&mut self, identity: &Identity, key: JobKey, now: Instant) {
        if identity.request.is_none() {
            return; // Clients that give no id must not stop each other's jobs.
        }
        let mut others: Vec<JobKey> = self
            .jobs
            .iter()
            .filter(|(k, job)| **k < key && job.identity.request == identity.request && job.superseded_by.is_none())
            .map(|(k, _)| *k)
            .collect();
        others.sort_unstable();
        for other in others {
            self.metrics.superseded();
            if let Some(job) = self.jobs.get_mut(&other) {
                job.superseded_by = Some(key);
                if job.waiters == 0 {
                    self.end_superseded(other, now);
                }
            }
        }
    }

    /// Jobs that wait for their first synthesis and come before this one.
    pub(super) fn queue_position(&self, key: JobKey) -> u32 {
        let ahead = self.order.iter().take_while(|(_, k)| *k != key);
        ahead.filter(|(_, k)| self.jobs[k].started.is_none()).count() as u32
    }

    fn refusal(&self, payload: u64) -> Option<Refused> {
        let retry_after = self.metrics.typical_job().clamp(Duration::from_secs(1), Duration::from_secs(60));
        let waiting = self.jobs.values().filter(|job| job.started.is_none()).count();
        let held = self.queued_bytes();
        let limit = self.ledger.budget().shares().queue;
        if self.draining {
            Some(Refused::Draining)
        } else if waiting >= self.limits.queued_jobs {
            Some(Refused::QueueFull { jobs: waiting, limit: self.limits.queued_jobs, retry_after })
        } else if held.saturating_add(payload) > limit {
            Some(Refused::BytesFull { held, payload, limit, retry_after })
        } else {
            None
        }
    }

    /// Whether a job can be proven with this budget and these devices.
    fn check_fit(&self, new: &NewJob) -> Result<(), Refused> {
        let NewJob { circuit, partition_bytes: partition, params_bytes: params, .. } = *new;
        let work = self.ledger.budget().shares().work;
        if params.saturating_add(partition) > work {
            return Err(Refused::NeverFits { circuit, params, partition, work });
        }
        if !self.devices.iter().any(|device| device.serves(circuit)) {
            return Err(Refused::NoDevice { circuit, reason: "every device is reserved for other circuits".into() });
        }
        if !self.is_available(circuit) {
            return Err(Refused::NoDevice { circuit, reason: self.fences() });
        }
        Ok(())
    }

    /// Moves an unfinished job to another place in the order.
    pub(super) fn set_priority(&mut self, key: JobKey, priority: Priority) {
        if let Some(job) = self.jobs.get_mut(&key) {
            self.order.remove(&(Reverse(job.priority), key));
            job.priority = priority;
            self.order.insert((Reverse(priority), key));
        }
    }
}

impl Job {
    pub(super) fn accepted(new: NewJob, queued: Option<Reservation>, now: Instant) -> Self {
        Self {
            identity: new.identity,
            label: new.label,
            circuit: new.circuit,
            priority: new.priority,
            payload_bytes: new.payload_bytes,
            _queued: queued,
            partition_bytes: new.partition_bytes,
            params_bytes: new.params_bytes,
            partitions: std::iter::repeat_with(Partition::new).take(new.partitions.max(1)).collect(),
            accepted: now,
            held: false,
            started: None,
            waiting_since: now,
            passed_since: None,
            overdue: false,
            whole_failures: 0,
            waiters: 0,
            detached: false,
            superseded_by: None,
            abandon_at: None,
            timings: JobTimings::default(),
            phases: PhaseTimings::default(),
            subject: None,
            devices: BTreeSet::new(),
        }
    }

    fn note_interest(&mut self, interest: Interest) {
        match interest {
            Interest::Waiting => self.waiters += 1,
            Interest::Detached => self.detached = true,
        }
    }

    /// What is to be proven.
    pub(super) fn kind(&self) -> CircuitKind {
        self.circuit.kind
    }
}
