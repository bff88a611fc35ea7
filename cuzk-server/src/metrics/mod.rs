//! What is counted, and how it is shown to Prometheus.
//!
//! Counters and histograms only grow. Label values come from the fixed sets of this program (kinds, priorities, phases,
//! circuits, devices), never from a request.

mod exposition;
mod histogram;

use std::{collections::BTreeMap, time::Duration};

use cuzk_synth::circuit::{CircuitId, CircuitKind};
use exposition::Exposition;
pub use histogram::Histogram;

use crate::{
    core::{
        Core, CoreStatus,
        job::{JobStatus, Outcome, Priority},
    },
    memory::Use,
    store::StoreStatus,
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

/// Everything that is counted since the start.
#[derive(Clone, Debug)]
pub struct Metrics {
    submissions: BTreeMap<SubmissionResult, u64>,
    accepted: BTreeMap<CircuitKind, u64>,
    finished: BTreeMap<(CircuitKind, JobStatus), u64>,
    superseded: u64,
    stalled: u64,
    bad_wholes: u64,
    /// By device index.
    fenced: Vec<u64>,
    /// By device index.
    partitions: Vec<BTreeMap<PartitionResult, u64>>,
    params_loads: BTreeMap<(CircuitId, bool), u64>,
    phases: BTreeMap<&'static str, Histogram>,
    queue_wait: BTreeMap<Priority, Histogram>,
    job_seconds: BTreeMap<CircuitKind, Histogram>,
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
            fenced: vec![0; devices],
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

    /// Counts a new job.
    pub fn accepted(&mut self, kind: CircuitKind) {
        *self.accepted.entry(kind).or_default() += 1;
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

    /// Counts a job's end.
    pub fn finished(&mut self, outcome: &Outcome) {
        *self.finished.entry((outcome.kind, outcome.status)).or_default() += 1;
        if outcome.status == JobStatus::Completed {
            self.job_seconds.entry(outcome.kind).or_default().observe(outcome.timings.total);
            let took = outcome.timings.total.saturating_sub(outcome.timings.queue_wait);
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

    /// Times one phase of one partition.
    pub fn phase(&mut self, phase: &'static str, took: Duration) {
        self.phases.entry(phase).or_default().observe(took);
    }

    /// Times a job's wait for its first synthesis.
    pub fn queue_wait(&mut self, priority: Priority, took: Duration) {
        self.queue_wait.entry(priority).or_default().observe(took);
    }

    /// Jobs that ended in a way.
    pub fn finished_as(&self, status: JobStatus) -> u64 {
        self.finished.iter().filter(|((_, s), _)| *s == status).map(|(_, n)| n).sum()
    }

    /// How long a job takes once it has begun; 10 s as long as none has completed.
    pub fn typical_job(&self) -> Duration {
        self.typical_job.unwrap_or(Duration::from_secs(10))
    }
}

/// The whole exposition text.
pub(crate) fn render(core: &Core, status: &CoreStatus, uptime: Duration) -> String {
    let mut out = Exposition::default();
    render_jobs(&mut out, core, status);
    render_partitions(&mut out, core);
    render_memory(&mut out, core, status);
    out.gauge("cuzk_uptime_seconds", "Seconds since the engine was started.").sample(&[], uptime.as_secs());
    out.gauge("cuzk_draining", "1 while the engine takes no new jobs because it is shutting down.")
        .sample(&[], u64::from(status.draining));
    out.finish()
}

fn render_jobs(out: &mut Exposition, core: &Core, status: &CoreStatus) {
    let metrics = core.metrics();
    out.counter("cuzk_submissions_total", "Submissions by what became of them.");
    for result in SubmissionResult::ALL {
        out.sample(&[("result", result.label())], get(&metrics.submissions, &result));
    }
    out.counter("cuzk_jobs_accepted_total", "New jobs.");
    for kind in CircuitKind::ALL {
        out.sample(&[("kind", kind.prefix())], get(&metrics.accepted, &kind));
    }
    out.counter("cuzk_jobs_finished_total", "Ended jobs by how they ended.");
    for kind in CircuitKind::ALL {
        for outcome in JobStatus::ALL {
            let labels = [("kind", kind.prefix()), ("outcome", outcome.label())];
            out.sample(&labels, get(&metrics.finished, &(kind, outcome)));
        }
    }
    out.counter("cuzk_jobs_superseded_total", "Unfinished jobs whose request id was submitted with another payload.")
        .sample(&[], metrics.superseded);
    out.gauge("cuzk_jobs", "Unfinished jobs: pending before their first synthesis, in progress after it.");
    for (kind, pending, in_progress) in &status.queues {
        let kind = ("kind", kind.prefix());
        out.sample(&[kind, ("state", "pending")], u64::from(*pending));
        out.sample(&[kind, ("state", "in_progress")], u64::from(*in_progress));
    }
    out.gauge("cuzk_jobs_waiting", "Jobs waiting for their first synthesis, by priority.");
    for priority in Priority::ALL {
        out.sample(&[("priority", priority.label())], core.waiting(priority) as u64);
    }
    out.histogram("cuzk_queue_wait_seconds", "From acceptance to the first synthesis.");
    for priority in Priority::ALL {
        out.buckets(&[("priority", priority.label())], &get_histogram(&metrics.queue_wait, &priority));
    }
    out.histogram("cuzk_job_seconds", "From acceptance to completion.");
    for kind in CircuitKind::ALL {
        out.buckets(&[("kind", kind.prefix())], &get_histogram(&metrics.job_seconds, &kind));
    }
}

fn render_partitions(out: &mut Exposition, core: &Core) {
    let metrics = core.metrics();
    out.counter("cuzk_partitions_total", "Partitions that left a prover, by what became of them.");
    for (device, counts) in core.devices().zip(&metrics.partitions) {
        for result in PartitionResult::ALL {
            out.sample(&[("device", &device.id), ("outcome", result.label())], get(counts, &result));
        }
    }
    out.counter("cuzk_verify_failures_total", "Proofs of partitions that did not verify.");
    for (device, counts) in core.devices().zip(&metrics.partitions) {
        out.sample(&[("device", &device.id)], get(counts, &PartitionResult::BadProof));
    }
    out.counter("cuzk_whole_verify_failures_total", "Proofs whose partitions verify one by one, but not together.")
        .sample(&[], metrics.bad_wholes);
    out.counter("cuzk_device_fenced_total", "Times that a device was given no more work because it was sick.");
    for (device, count) in core.devices().zip(&metrics.fenced) {
        out.sample(&[("device", &device.id)], *count);
    }
    out.gauge("cuzk_device_available", "1 while a device gets work.");
    for (index, device) in core.devices().enumerate() {
        out.sample(&[("device", &device.id)], u64::from(core.fence_of(index).is_none()));
    }
    out.counter("cuzk_stalled_partitions_total", "Partitions that stayed in one stage beyond its limit.")
        .sample(&[], metrics.stalled);
    out.histogram("cuzk_phase_seconds", "Time of each phase of one partition, and of loading parameters.");
    for (phase, histogram) in &metrics.phases {
        out.buckets(&[("phase", phase)], histogram);
    }
}

fn render_memory(out: &mut Exposition, core: &Core, status: &CoreStatus) {
    let budget = core.ledger().budget();
    let shares = budget.shares();
    out.gauge("cuzk_memory_budget_bytes", "Host memory that may be taken, by share.");
    for (share, bytes) in [("bodies", shares.bodies), ("queue", shares.queue), ("work", shares.work)] {
        out.sample(&[("share", share)], bytes);
    }
    out.gauge("cuzk_memory_used_bytes", "Host memory that is taken, by use.");
    for what in Use::ALL {
        out.sample(&[("use", what.label())], budget.used_for(what));
    }
    out.gauge("cuzk_queued_payload_bytes", "Payload bytes of unfinished jobs.").sample(&[], core.queued_bytes());
    let (jobs, bytes) = core.retained();
    out.gauge("cuzk_retained_jobs", "Ended jobs kept for clients that come back.").sample(&[], jobs as u64);
    out.gauge("cuzk_retained_bytes", "Bytes of ended jobs that are kept.").sample(&[], bytes);
    out.gauge("cuzk_params_bytes", "Proving parameters in memory.");
    for (circuit, bytes, _) in &status.params {
        out.sample(&[("circuit", &circuit.to_string())], *bytes);
    }
    out.counter("cuzk_params_loads_total", "Loads of proving parameters by outcome.");
    for ((circuit, ok), count) in &core.metrics().params_loads {
        let outcome = if *ok { "loaded" } else { "failed" };
        out.sample(&[("circuit", &circuit.to_string()), ("outcome", outcome)], *count);
    }
}

/// What a job store adds to the exposition text.
pub(crate) fn render_store(store: &StoreStatus) -> String {
    let mut out = Exposition::default();
    out.gauge("cuzk_store_jobs", "Unfinished jobs in the job store.").sample(&[], store.jobs as u64);
    out.gauge("cuzk_store_payload_bytes", "Payload bytes of the unfinished jobs in the job store.")
        .sample(&[], store.payload_bytes);
    out.counter("cuzk_store_spooled_bytes_total", "Payload bytes written to the job store.")
        .sample(&[], store.spooled_bytes);
    out.counter("cuzk_store_jobs_found_total", "Unfinished jobs found at the start, by what became of them.")
        .sample(&[("outcome", "resumed")], store.resumed)
        .sample(&[("outcome", "lost")], store.lost);
    out.counter("cuzk_store_errors_total", "Writes to the job store that failed.").sample(&[], store.errors);
    out.gauge("cuzk_store_pending_changes", "Changes that the job store has still to write because writes fail.")
        .sample(&[], store.pending as u64);
    out.histogram("cuzk_store_commit_seconds", "Time of a commit of the job store, sync included.")
        .buckets(&[], &store.commits);
    out.finish()
}

fn get<K: Ord>(counts: &BTreeMap<K, u64>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

fn get_histogram<K: Ord>(histograms: &BTreeMap<K, Histogram>, key: &K) -> Histogram {
    histograms.get(key).cloned().unwrap_or_default()
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
