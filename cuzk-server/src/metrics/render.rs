//! What is counted, as text.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use cuzk_synth::circuit::CircuitId;

use super::{PartitionResult, Requests, SubmissionResult, Worker, exposition::Exposition};
use crate::{
    core::{
        Core, CoreStatus, Refused,
        job::{JobStatus, Priority},
    },
    memory::Use,
    proving::{DeviceInfo, PinnedMemory},
    store::StoreStatus,
};

/// What the text says that the core does not know.
pub(crate) struct Scrape<'a> {
    /// The wall clock at the start.
    pub(crate) started: SystemTime,
    /// Whether jobs are taken and can be proven.
    pub(crate) ready: bool,
    /// The devices, by index.
    pub(crate) devices: &'a [DeviceInfo],
    pub(crate) pinned: PinnedMemory,
    /// Circuits that devices have in their memory too.
    pub(crate) hot: &'a BTreeSet<CircuitId>,
    /// Who follows changes.
    pub(crate) watchers: usize,
    pub(crate) requests: &'a Requests,
    pub(crate) store: Option<StoreStatus>,
}

/// The whole exposition text.
pub(crate) fn render(core: &Core, status: &CoreStatus, scrape: &Scrape<'_>) -> String {
    let mut out = Exposition::default();
    render_daemon(&mut out, status, scrape);
    render_jobs(&mut out, core, status);
    render_partitions(&mut out, core);
    render_devices(&mut out, core, scrape);
    render_memory(&mut out, core, scrape);
    render_params(&mut out, core, status, scrape);
    if let Some(store) = &scrape.store {
        render_store(&mut out, store);
    }
    out.finish()
}

fn render_daemon(out: &mut Exposition, status: &CoreStatus, scrape: &Scrape<'_>) {
    out.gauge("cuzk_build_info", "1; the version is a label.").sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = scrape.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.gauge("cuzk_start_time_seconds", "When the engine was started, in seconds since 1970.")
        .sample(&[], started.as_secs());
    out.gauge("cuzk_ready", "1 while jobs are taken and what is to be preloaded is loaded.")
        .sample(&[], u64::from(scrape.ready));
    out.gauge("cuzk_draining", "1 while the engine takes no new jobs because it is shutting down.")
        .sample(&[], u64::from(status.draining));
    out.counter("cuzk_requests_total", "gRPC calls answered, or begun if they stream, by method and code.");
    for ((method, code), count) in scrape.requests.counted() {
        out.sample(&[("method", method), ("code", code)], count);
    }
    out.gauge("cuzk_watchers", "Clients and pages that follow changes.").sample(&[], scrape.watchers as u64);
}

fn render_jobs(out: &mut Exposition, core: &Core, status: &CoreStatus) {
    let metrics = core.metrics();
    out.counter("cuzk_submissions_total", "Submissions by what became of them.");
    for result in SubmissionResult::ALL {
        out.sample(&[("result", result.label())], get(&metrics.submissions, &result));
    }
    out.counter("cuzk_submissions_refused_total", "Submissions for which there was no room, by reason.");
    for reason in Refused::LABELS {
        out.sample(&[("reason", reason)], get(&metrics.refused, &reason));
    }
    out.counter("cuzk_jobs_accepted_total", "New jobs, by what they were accepted as.");
    for ((circuit, priority), count) in &metrics.accepted {
        out.sample(&Of::job(*circuit, *priority).labels(), *count);
    }
    out.counter("cuzk_jobs_finished_total", "Ended jobs by how they ended; waiting may have raised their priority.");
    // All outcomes of what was ever accepted, so that the first failure shows as a rise from 0.
    let ended = metrics.finished.keys().map(|(circuit, priority, _)| (*circuit, *priority));
    let seen: BTreeSet<(CircuitId, Priority)> = metrics.accepted.keys().copied().chain(ended).collect();
    for (circuit, priority) in seen {
        for outcome in JobStatus::ALL {
            let of = Of::job(circuit, priority);
            let labels = of.labels();
            let labels = [labels[0], labels[1], labels[2], ("outcome", outcome.label())];
            out.sample(&labels, get(&metrics.finished, &(circuit, priority, outcome)));
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
    for ((circuit, priority), histogram) in &metrics.queue_wait {
        out.buckets(&Of::job(*circuit, *priority).labels(), histogram);
    }
    out.histogram("cuzk_job_seconds", "From acceptance to completion.");
    for ((circuit, priority), histogram) in &metrics.job_seconds {
        out.buckets(&Of::job(*circuit, *priority).labels(), histogram);
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
    out.counter("cuzk_stalled_partitions_total", "Partitions that stayed in one stage beyond its limit.")
        .sample(&[], metrics.stalled);
    out.histogram("cuzk_phase_seconds", "Time of each phase of one partition, and of loading parameters.");
    let devices: Vec<_> = core.devices().collect();
    for ((circuit, worker, phase), histogram) in &metrics.phases {
        let device = match worker {
            Worker::Device(device) => devices[*device].id.as_str(),
            Worker::Host => "host",
        };
        out.buckets(&[("circuit", &circuit.to_string()), ("device", device), ("phase", phase)], histogram);
    }
}

fn render_devices(out: &mut Exposition, core: &Core, scrape: &Scrape<'_>) {
    let metrics = core.metrics();
    out.counter("cuzk_device_fenced_total", "Times that a device was given no more work because it was sick.");
    for (device, count) in core.devices().zip(&metrics.fenced) {
        out.sample(&[("device", &device.id)], *count);
    }
    out.gauge("cuzk_device_available", "1 while a device gets work.");
    for (index, device) in core.devices().enumerate() {
        out.sample(&[("device", &device.id)], u64::from(core.fence_of(index).is_none()));
    }
    out.counter("cuzk_device_revived_total", "Times that a device was given work again.");
    for (device, count) in core.devices().zip(&metrics.revived) {
        out.sample(&[("device", &device.id)], *count);
    }
    out.counter("cuzk_device_busy_seconds_total", "Time in kernel phases: one at a time on a device.");
    for (device, busy) in core.devices().zip(&metrics.busy) {
        out.seconds(&[("device", &device.id)], *busy);
    }
    out.gauge("cuzk_device_memory_bytes", "Memory of a device.");
    for (device, info) in core.devices().zip(scrape.devices) {
        out.sample(&[("device", &device.id)], info.memory_total_bytes);
    }
    out.gauge("cuzk_device_memory_free_bytes", "Memory of a device that nobody has taken.");
    for (device, info) in core.devices().zip(scrape.devices) {
        out.sample(&[("device", &device.id)], info.memory_free_bytes);
    }
}

fn render_memory(out: &mut Exposition, core: &Core, scrape: &Scrape<'_>) {
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
    out.gauge("cuzk_pinned_memory_bytes", "Page-locked host memory.").sample(&[], scrape.pinned.bytes);
}

fn render_params(out: &mut Exposition, core: &Core, status: &CoreStatus, scrape: &Scrape<'_>) {
    out.gauge("cuzk_params_bytes", "Proving parameters in memory; hot ones are on a device or page-locked.");
    for (circuit, bytes, _) in &status.params {
        let tier = if scrape.hot.contains(circuit) { "hot" } else { "warm" };
        out.sample(&[("circuit", &circuit.to_string()), ("tier", tier)], *bytes);
    }
    out.counter("cuzk_params_loads_total", "Loads of proving parameters by outcome.");
    let loads = &core.metrics().params_loads;
    let circuits: BTreeSet<CircuitId> = loads.keys().map(|(circuit, _)| *circuit).collect();
    for circuit in circuits {
        for (ok, outcome) in [(true, "loaded"), (false, "failed")] {
            out.sample(&[("circuit", &circuit.to_string()), ("outcome", outcome)], get(loads, &(circuit, ok)));
        }
    }
}

fn render_store(out: &mut Exposition, store: &StoreStatus) {
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
    out.gauge("cuzk_store_trouble", "1 while the job store takes no jobs.")
        .sample(&[], u64::from(store.trouble.is_some()));
}

fn get<K: Ord>(counts: &BTreeMap<K, u64>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

/// The labels of what is counted by job.
struct Of {
    kind: &'static str,
    circuit: String,
    priority: &'static str,
}

impl Of {
    fn job(circuit: CircuitId, priority: Priority) -> Self {
        Self { kind: circuit.kind.prefix(), circuit: circuit.to_string(), priority: priority.label() }
    }

    fn labels(&self) -> [(&str, &str); 3] {
        [("kind", self.kind), ("circuit", &self.circuit), ("priority", self.priority)]
    }
}
