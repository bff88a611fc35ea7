//! The engine's views as wire types.

use std::time::{SystemTime, UNIX_EPOCH};

use cuzk_proto::v1;
use cuzk_synth::circuit::CircuitId;

use super::convert::{self, millis, wire_kind};
use crate::{
    core::{
        job::{JobStatus, Priority, Stage},
        view::{JobFilter, JobState},
    },
    engine::view::{
        DeviceView, EngineView, Incident, JobView, MemoryView, PartitionTimesView, PartitionView, WorkerView,
    },
    memory::Use,
    proving::Refusal,
    store::StoreStatus,
};

/// Jobs in a list that names no limit.
const LIMIT: u32 = 100;
/// Jobs in a list at most: about a quarter of a megabyte.
pub(super) const MOST: u32 = 1000;

/// The filter of a request. It finds one more than is asked for, to tell whether there are more.
pub(super) fn filter(wire: &v1::ListJobsRequest) -> Result<JobFilter, Refusal> {
    let kind = match wire.proof_kind {
        0 => None,
        number => Some(convert::kind(number)?),
    };
    let state = |number: &i32| {
        let all = JobState::ALL.into_iter();
        all.clone().find(|state| wire_state(*state) as i32 == *number).ok_or_else(|| {
            Refusal::invalid("states", format!("{number} is no state of this protocol (1 to {})", all.len()))
        })
    };
    let states = wire.states.iter().map(state).collect::<Result<_, _>>()?;
    Ok(JobFilter { states, kind, limit: limit(wire.limit) as usize + 1 })
}

/// How many jobs an answer has.
pub(super) fn limit(asked: u32) -> u32 {
    if asked == 0 { LIMIT } else { asked.min(MOST) }
}

pub(super) fn jobs(mut found: Vec<JobView>, limit: u32) -> v1::ListJobsResponse {
    let truncated = found.len() > limit as usize;
    found.truncate(limit as usize);
    v1::ListJobsResponse { jobs: found.into_iter().map(job).collect(), truncated }
}

/// A job as clients see it.
pub fn job(view: JobView) -> v1::Job {
    let counts = view.counts;
    let phases = view.phases.iter().map(|(name, took)| v1::PhaseTime {
        name: name.to_owned(),
        duration_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    });
    v1::Job {
        job_id: view.job_id,
        request_id: view.request_id,
        proof_kind: wire_kind(view.kind).into(),
        circuit_id: view.circuit.map(|circuit| circuit.to_string()).unwrap_or_default(),
        miner_id: view.subject.map_or(0, |subject| subject.miner_id),
        sector_number: view.subject.map_or(0, |subject| subject.sector_number),
        priority: view.priority.map_or(v1::Priority::Unspecified, wire_priority).into(),
        state: wire_state(view.state).into(),
        accepted_unix_ms: unix_ms(view.accepted),
        started_unix_ms: unix_ms(view.started),
        ended_unix_ms: unix_ms(view.ended),
        queue_position: view.queue_position.unwrap_or(0),
        stages: Some(v1::StageCounts {
            waiting: counts.waiting,
            synthesizing: counts.synthesizing,
            ready: counts.ready,
            proving: counts.proving,
            proved: counts.proved,
        }),
        queue_wait_ms: millis(view.timings.queue_wait),
        srs_load_ms: millis(view.timings.params_load),
        synthesis_ms: millis(view.timings.synthesis),
        gpu_compute_ms: millis(view.timings.compute),
        total_ms: millis(view.timings.total),
        phases: phases.collect(),
        partitions: view.partitions.into_iter().map(partition).collect(),
        error_message: view.error,
        devices: view.devices,
    }
}

/// The whole picture as clients see it.
pub fn status(view: EngineView) -> v1::GetStatusResponse {
    let EngineView { status, devices, loading, memory, store, incidents, waiting: _, revision: _ } = view;
    let mut wire = convert::status(status);
    for (gpu, device) in wire.gpus.iter_mut().zip(devices) {
        describe(gpu, device);
    }
    wire.loaded_srs.extend(loading.into_iter().map(|(circuit, percent)| loading_srs(circuit, percent)));
    wire.memory = Some(memory_status(&memory));
    wire.store = store.map(store_status);
    wire.incidents = incidents.into_iter().map(incident).collect();
    wire.version = env!("CARGO_PKG_VERSION").to_owned();
    wire
}

fn describe(gpu: &mut v1::GpuStatus, device: DeviceView) {
    gpu.uuid = device.id;
    gpu.workers = device.workers;
    gpu.busy_workers = device.busy.into_iter().map(worker).collect();
    gpu.health = match &device.fence {
        None => v1::gpu_status::Health::Available,
        Some(_) => v1::gpu_status::Health::Fenced,
    }
    .into();
    if let Some((since, reason)) = device.fence {
        gpu.fence_reason = reason;
        gpu.fenced_since_unix_ms = unix_ms(Some(since));
    }
}

fn loading_srs(circuit: CircuitId, percent: Option<u64>) -> v1::SrsStatus {
    v1::SrsStatus {
        circuit_id: circuit.to_string(),
        tier: v1::srs_status::Tier::Cold.into(),
        loading: true,
        loaded_percent: percent.unwrap_or(0) as u32,
        ..v1::SrsStatus::default()
    }
}

fn worker(view: WorkerView) -> v1::Worker {
    v1::Worker {
        job_id: view.job_id,
        partition: view.partition,
        phase: view.phase.to_owned(),
        since_unix_ms: unix_ms(Some(view.since)),
    }
}

fn partition(view: PartitionView) -> v1::Partition {
    let stage = match view.stage {
        Stage::Waiting => v1::partition::Stage::Waiting,
        Stage::Synthesizing => v1::partition::Stage::Synthesizing,
        Stage::Ready => v1::partition::Stage::Ready,
        Stage::Proving => v1::partition::Stage::Proving,
        Stage::Proved => v1::partition::Stage::Proved,
    };
    v1::Partition {
        index: view.index,
        stage: stage.into(),
        since_unix_ms: unix_ms(view.since),
        device: view.device,
        phase: view.phase.unwrap_or_default().to_owned(),
        attempt: view.attempt,
        failures: view.failures,
    }
}

fn memory_status(memory: &MemoryView) -> v1::MemoryStatus {
    let shares = [("body", memory.shares.bodies), ("queue", memory.shares.queue), ("work", memory.shares.work)];
    let share = |what: Use| match what {
        Use::Body => "body",
        Use::Queue => "queue",
        Use::Params | Use::Witness | Use::Device => "work",
    };
    v1::MemoryStatus {
        shares: shares
            .into_iter()
            .map(|(name, limit_bytes)| v1::memory_status::Share { name: name.to_owned(), limit_bytes })
            .collect(),
        uses: memory
            .used
            .into_iter()
            .map(|(what, used_bytes)| v1::memory_status::Use {
                name: what.label().to_owned(),
                used_bytes,
                share: share(what).to_owned(),
            })
            .collect(),
    }
}

fn store_status(store: StoreStatus) -> v1::StoreStatus {
    v1::StoreStatus {
        jobs: store.jobs as u64,
        payload_bytes: store.payload_bytes,
        errors: store.errors,
        pending: store.pending as u64,
        trouble: store.trouble.unwrap_or_default(),
    }
}

fn incident(incident: Incident) -> v1::Incident {
    v1::Incident {
        at_unix_ms: unix_ms(Some(incident.at)),
        job_id: incident.job_id,
        device: incident.device,
        text: incident.text,
    }
}

/// When the phases of partitions ran, as clients see it.
pub(super) fn partition_times(partitions: Vec<PartitionTimesView>) -> v1::GetTimelineResponse {
    let phase = |(name, begin, end): (&str, SystemTime, SystemTime)| v1::PhaseInterval {
        name: name.to_owned(),
        begin_unix_us: unix_us(begin),
        end_unix_us: unix_us(end),
    };
    let partition = |times: PartitionTimesView| v1::PartitionTimes {
        number: times.number,
        device: times.device,
        lane: times.lane,
        phases: times.phases.into_iter().map(phase).collect(),
    };
    v1::GetTimelineResponse { partitions: partitions.into_iter().map(partition).collect() }
}

fn wire_state(state: JobState) -> v1::JobState {
    match state {
        JobState::Queued => v1::JobState::JobQueued,
        JobState::Running => v1::JobState::JobRunning,
        JobState::Ended(JobStatus::Completed) => v1::JobState::JobCompleted,
        JobState::Ended(JobStatus::Failed) => v1::JobState::JobFailed,
        JobState::Ended(JobStatus::Cancelled) => v1::JobState::JobCancelled,
    }
}

fn wire_priority(priority: Priority) -> v1::Priority {
    match priority {
        Priority::Low => v1::Priority::Low,
        Priority::Normal => v1::Priority::Normal,
        Priority::High => v1::Priority::High,
        Priority::Critical => v1::Priority::Critical,
    }
}

/// 0 for what has no time.
pub(crate) fn unix_ms(at: Option<SystemTime>) -> u64 {
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn unix_us(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use cuzk_synth::circuit::CircuitKind;

    use super::*;

    #[test]
    fn filters_are_checked_and_bounded() {
        let all = filter(&v1::ListJobsRequest::default()).unwrap();
        assert_eq!(all, JobFilter { states: vec![], kind: None, limit: 101 });
        let request = v1::ListJobsRequest { states: vec![2, 4], proof_kind: 1, limit: 5000 };
        let some = filter(&request).unwrap();
        assert_eq!(some.states, [JobState::Running, JobState::Ended(JobStatus::Failed)]);
        assert_eq!((some.kind, some.limit), (Some(CircuitKind::Porep), 1001));
        for wrong in [0, 6, -1] {
            let request = v1::ListJobsRequest { states: vec![wrong], ..v1::ListJobsRequest::default() };
            assert!(filter(&request).unwrap_err().to_string().starts_with("states: "), "{wrong}");
        }
        let request = v1::ListJobsRequest { proof_kind: 9, ..v1::ListJobsRequest::default() };
        assert!(filter(&request).unwrap_err().to_string().starts_with("proof_kind: "));
    }

    #[test]
    fn times_that_are_not_known_are_zero() {
        assert_eq!(unix_ms(None), 0);
        assert_eq!(unix_ms(Some(UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123))), 1_700_000_000_123);
    }
}
