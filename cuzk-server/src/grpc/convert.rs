//! Wire types to the engine's and back. Checks only what the wire types leave open; the rest is for `Proving::admit`.

use std::time::Duration;

use cuzk_proto::v1::{
    AwaitProofResponse, GetStatusResponse, GpuStatus, Priority as WirePriority, ProofKind, QueueStatus, SrsStatus,
    SubmitProofRequest, SubmitProofResponse, await_proof_response, srs_status,
};
use cuzk_synth::circuit::{CircuitId, CircuitKind};

use crate::{
    core::job::{JobStatus, Outcome, Priority},
    engine::{Awaited, EngineStatus, Lifecycle, Submission, Submitted},
    proving::{ProofRequest, Refusal},
};

/// A submission. The payload is shared with the message, not copied.
pub(super) fn submission(wire: SubmitProofRequest) -> Result<Submission, Refusal> {
    let kind = kind(wire.proof_kind)?;
    let priority = priority(wire.priority)?;
    Ok(Submission {
        request_id: wire.request_id,
        priority,
        request: ProofRequest {
            kind,
            sector_size: wire.sector_size,
            registered_proof: wire.registered_proof,
            sector_number: wire.sector_number,
            miner_id: wire.miner_id,
            randomness: wire.randomness,
            partition_index: wire.partition_index,
            vanilla_proof: wire.vanilla_proof,
            vanilla_proofs: wire.vanilla_proofs,
            comm_r_old: wire.comm_r_old,
            comm_r_new: wire.comm_r_new,
            comm_d_new: wire.comm_d_new,
        },
    })
}

/// A circuit id as clients write it.
pub(super) fn circuit(text: &str) -> Result<CircuitId, Refusal> {
    let cut: String = text.chars().take(64).collect();
    cut.parse().map_err(|error| Refusal::invalid("circuit_id", format!("{error}")))
}

pub(super) fn submitted(submitted: Submitted) -> SubmitProofResponse {
    SubmitProofResponse {
        job_id: submitted.job_id,
        queue_position: submitted.queue_position,
        assigned_gpu: submitted.assigned_device,
    }
}

pub(super) fn awaited(job_id: String, awaited: &Awaited) -> AwaitProofResponse {
    match awaited {
        Awaited::Ended(outcome) => outcome_of(job_id, outcome),
        Awaited::TimedOut => AwaitProofResponse {
            job_id,
            status: await_proof_response::Status::Timeout.into(),
            ..AwaitProofResponse::default()
        },
    }
}

pub(super) fn outcome_of(job_id: String, outcome: &Outcome) -> AwaitProofResponse {
    let status = match outcome.status {
        JobStatus::Completed => await_proof_response::Status::Completed,
        JobStatus::Failed => await_proof_response::Status::Failed,
        JobStatus::Cancelled => await_proof_response::Status::Cancelled,
    };
    let t = &outcome.timings;
    AwaitProofResponse {
        job_id,
        status: status.into(),
        proof: outcome.proof.clone(),
        error_message: outcome.error.clone(),
        queue_wait_ms: millis(t.queue_wait),
        srs_load_ms: millis(t.params_load),
        synthesis_ms: millis(t.synthesis),
        gpu_compute_ms: millis(t.compute),
        total_ms: millis(t.total),
        devices: outcome.devices.clone(),
    }
}

pub(super) fn status(status: EngineStatus) -> GetStatusResponse {
    let gpus = status.devices.into_iter().map(|device| GpuStatus {
        ordinal: device.info.ordinal,
        name: device.info.name,
        vram_total_bytes: device.info.memory_total_bytes,
        vram_free_bytes: device.info.memory_free_bytes,
        current_job_id: device.job_id,
        current_proof_kind: device.kind.map(kind_name).unwrap_or_default(),
        pci_address: device.info.pci,
        ..GpuStatus::default()
    });
    let hot = status.hot;
    let loaded_srs = status.params.into_iter().map(|(circuit, size_bytes, ref_count)| SrsStatus {
        circuit_id: circuit.to_string(),
        tier: if hot.contains(&circuit) { srs_status::Tier::Hot } else { srs_status::Tier::Warm }.into(),
        size_bytes,
        ref_count,
        ..SrsStatus::default()
    });
    let queues = status.queues.into_iter().map(|(kind, pending, in_progress)| QueueStatus {
        proof_kind: kind_name(kind),
        pending,
        in_progress,
    });
    GetStatusResponse {
        gpus: gpus.collect(),
        loaded_srs: loaded_srs.collect(),
        queues: queues.collect(),
        total_proofs_completed: status.completed,
        total_proofs_failed: status.failed,
        uptime_seconds: status.uptime.as_secs(),
        pinned_memory_bytes: status.pinned.bytes,
        pinned_memory_limit_bytes: status.pinned.limit_bytes,
        state: match status.lifecycle {
            Lifecycle::Starting(_) => "starting",
            Lifecycle::Serving => "serving",
            Lifecycle::Draining => "draining",
        }
        .to_owned(),
        warnings: status.warnings,
        provable_circuits: status.provable_circuits.iter().map(CircuitId::to_string).collect(),
        ..GetStatusResponse::default()
    }
}

/// Rounded up, so that what took any time does not look like nothing; saturates.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

pub(super) fn kind(number: i32) -> Result<CircuitKind, Refusal> {
    match ProofKind::try_from(number) {
        Ok(ProofKind::PorepSealCommit) => Ok(CircuitKind::Porep),
        Ok(ProofKind::SnapDealsUpdate) => Ok(CircuitKind::Snap),
        Ok(ProofKind::WindowPostPartition) => Ok(CircuitKind::WindowPost),
        Ok(ProofKind::WinningPost) => Ok(CircuitKind::WinningPost),
        Ok(ProofKind::Unspecified) => Err(Refusal::invalid("proof_kind", "is not given")),
        Err(_) => Err(Refusal::invalid("proof_kind", format!("{number} is no kind of this protocol (1 to 4)"))),
    }
}

fn priority(number: i32) -> Result<Option<Priority>, Refusal> {
    match WirePriority::try_from(number) {
        Ok(WirePriority::Unspecified) => Ok(None),
        Ok(WirePriority::Low) => Ok(Some(Priority::Low)),
        Ok(WirePriority::Normal) => Ok(Some(Priority::Normal)),
        Ok(WirePriority::High) => Ok(Some(Priority::High)),
        Ok(WirePriority::Critical) => Ok(Some(Priority::Critical)),
        Err(_) => Err(Refusal::invalid("priority", format!("{number} is no priority of this protocol (0 to 4)"))),
    }
}

/// The wire enum's own name.
fn kind_name(kind: CircuitKind) -> String {
    wire_kind(kind).as_str_name().to_owned()
}

pub(super) fn wire_kind(kind: CircuitKind) -> ProofKind {
    match kind {
        CircuitKind::Porep => ProofKind::PorepSealCommit,
        CircuitKind::Snap => ProofKind::SnapDealsUpdate,
        CircuitKind::WindowPost => ProofKind::WindowPostPartition,
        CircuitKind::WinningPost => ProofKind::WinningPost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_kind_and_priority() {
        assert_eq!(
            CircuitKind::ALL.map(kind_name),
            ["POREP_SEAL_COMMIT", "SNAP_DEALS_UPDATE", "WINDOW_POST_PARTITION", "WINNING_POST"]
        );
        for (number, expected) in (1..).zip(CircuitKind::ALL) {
            assert_eq!(kind(number), Ok(expected));
        }
        for wrong in [0, 5, -1] {
            assert!(kind(wrong).unwrap_err().to_string().starts_with("proof_kind: "));
        }
        assert_eq!(priority(0), Ok(None));
        for (number, expected) in (1..).zip(Priority::ALL) {
            assert_eq!(priority(number), Ok(Some(expected)));
        }
        assert!(priority(5).is_err());
    }

    #[test]
    fn payloads_are_shared_not_copied() {
        let wire =
            SubmitProofRequest { proof_kind: 1, vanilla_proof: vec![7; 1000].into(), ..SubmitProofRequest::default() };
        let at = wire.vanilla_proof.as_ptr();
        assert_eq!(submission(wire).unwrap().request.vanilla_proof.as_ptr(), at);
    }

    #[test]
    fn circuit_ids_read() {
        assert_eq!(circuit("porep-32g").unwrap().to_string(), "porep-32g");
        assert!(circuit("../etc").unwrap_err().to_string().contains("unknown circuit id"));
    }

    #[test]
    fn milliseconds_round_up() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(5)), 5);
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }
}
