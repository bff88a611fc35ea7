//! Pictures of a daemon as JSON for programs: the protocol's field names, with enums as words.

use cuzk_proto::v1::{
    GetStatusResponse, GpuStatus, Job, JobState, Partition, SrsStatus, StageCounts, gpu_status::Health,
};
use serde_json::{Value, json};

/// What `GetStatus` answers.
pub fn status(status: &GetStatusResponse) -> Value {
    let queues = status.queues.iter().map(|queue| {
        json!({
            "proof_kind": queue.proof_kind,
            "pending": queue.pending,
            "in_progress": queue.in_progress,
        })
    });
    let memory = status.memory.as_ref().map(|memory| {
        let shares = memory.shares.iter().map(|s| json!({"name": s.name, "limit_bytes": s.limit_bytes}));
        let uses = memory.uses.iter().map(|u| json!({"name": u.name, "used_bytes": u.used_bytes, "share": u.share}));
        json!({ "shares": shares.collect::<Vec<_>>(), "uses": uses.collect::<Vec<_>>() })
    });
    let store = status.store.as_ref().map(|store| {
        json!({
            "jobs": store.jobs,
            "payload_bytes": store.payload_bytes,
            "errors": store.errors,
            "pending": store.pending,
            "trouble": store.trouble,
        })
    });
    let incidents = status.incidents.iter().map(|incident| {
        json!({
            "at_unix_ms": incident.at_unix_ms,
            "job_id": incident.job_id,
            "device": incident.device,
            "text": incident.text,
        })
    });
    json!({
        "state": status.state,
        "version": status.version,
        "uptime_seconds": status.uptime_seconds,
        "total_proofs_completed": status.total_proofs_completed,
        "total_proofs_failed": status.total_proofs_failed,
        "pinned_memory_bytes": status.pinned_memory_bytes,
        "pinned_memory_limit_bytes": status.pinned_memory_limit_bytes,
        "gpus": gpus(&status.gpus),
        "loaded_srs": srs(&status.loaded_srs),
        "queues": queues.collect::<Vec<_>>(),
        "provable_circuits": status.provable_circuits,
        "memory": memory,
        "store": store,
        "incidents": incidents.collect::<Vec<_>>(),
        "warnings": status.warnings,
    })
}

/// Devices, and what they do.
pub fn gpus(gpus: &[GpuStatus]) -> Vec<Value> {
    let health = |gpu: &GpuStatus| match gpu.health() {
        Health::Unknown => "unknown",
        Health::Available => "available",
        Health::Fenced => "fenced",
    };
    let gpu = |gpu: &GpuStatus| {
        let busy = gpu.busy_workers.iter().map(|worker| {
            json!({
                "job_id": worker.job_id,
                "partition": worker.partition,
                "phase": worker.phase,
                "since_unix_ms": worker.since_unix_ms,
            })
        });
        json!({
            "ordinal": gpu.ordinal,
            "name": gpu.name,
            "uuid": gpu.uuid,
            "pci_address": gpu.pci_address,
            "vram_total_bytes": gpu.vram_total_bytes,
            "vram_free_bytes": gpu.vram_free_bytes,
            "current_job_id": gpu.current_job_id,
            "current_proof_kind": gpu.current_proof_kind,
            "health": health(gpu),
            "fence_reason": gpu.fence_reason,
            "fenced_since_unix_ms": gpu.fenced_since_unix_ms,
            "workers": gpu.workers,
            "busy_workers": busy.collect::<Vec<_>>(),
        })
    };
    gpus.iter().map(gpu).collect()
}

/// Parameters in memory.
pub fn srs(all: &[SrsStatus]) -> Vec<Value> {
    let srs = |srs: &SrsStatus| {
        json!({
            "circuit_id": srs.circuit_id,
            "tier": srs.tier().as_str_name().to_lowercase(),
            "size_bytes": srs.size_bytes,
            "ref_count": srs.ref_count,
            "loading": srs.loading,
            "loaded_percent": srs.loaded_percent,
        })
    };
    all.iter().map(srs).collect()
}

/// One job.
pub fn job(job: &Job) -> Value {
    let StageCounts { waiting, synthesizing, ready, proving, proved } = job.stages.unwrap_or_default();
    let partition = |p: &Partition| {
        json!({
            "index": p.index,
            "stage": p.stage().as_str_name().to_lowercase(),
            "since_unix_ms": p.since_unix_ms,
            "device": p.device,
            "phase": p.phase,
            "attempt": p.attempt,
            "failures": p.failures,
        })
    };
    let phases = job.phases.iter().map(|phase| json!({"name": phase.name, "duration_us": phase.duration_us}));
    json!({
        "job_id": job.job_id,
        "request_id": job.request_id,
        "proof_kind": job.proof_kind().as_str_name(),
        "circuit_id": job.circuit_id,
        "miner_id": job.miner_id,
        "sector_number": job.sector_number,
        "priority": priority_name(job.priority),
        "state": state_name(job.state()),
        "accepted_unix_ms": job.accepted_unix_ms,
        "started_unix_ms": job.started_unix_ms,
        "ended_unix_ms": job.ended_unix_ms,
        "queue_position": job.queue_position,
        "stages": {
            "waiting": waiting,
            "synthesizing": synthesizing,
            "ready": ready,
            "proving": proving,
            "proved": proved,
        },
        "partitions": job.partitions.iter().map(partition).collect::<Vec<_>>(),
        "queue_wait_ms": job.queue_wait_ms,
        "srs_load_ms": job.srs_load_ms,
        "synthesis_ms": job.synthesis_ms,
        "gpu_compute_ms": job.gpu_compute_ms,
        "total_ms": job.total_ms,
        "phases": phases.collect::<Vec<_>>(),
        "error_message": job.error_message,
        "devices": job.devices,
    })
}

/// In a word.
pub fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Unspecified => "unknown",
        JobState::JobQueued => "queued",
        JobState::JobRunning => "running",
        JobState::JobCompleted => "completed",
        JobState::JobFailed => "failed",
        JobState::JobCancelled => "cancelled",
    }
}

/// In a word; empty if it is not known.
pub fn priority_name(number: i32) -> &'static str {
    ["", "low", "normal", "high", "critical"].get(number as usize).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_protocols_names_and_enums_are_words() {
        let partitions = vec![Partition { stage: 4, phase: "stage".into(), ..Partition::default() }];
        let value = job(&Job { state: 2, priority: 4, proof_kind: 1, partitions, ..Job::default() });
        assert_eq!((&value["state"], &value["priority"]), (&json!("running"), &json!("critical")));
        assert_eq!(value["proof_kind"], "POREP_SEAL_COMMIT");
        assert_eq!((&value["partitions"][0]["stage"], &value["stages"]["proved"]), (&json!("proving"), &json!(0)));
    }
}
