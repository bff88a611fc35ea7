//! The lines an operator sees: one when a job is accepted, started and ended, at most two for retries. Payloads and
//! proofs never; what clients call their jobs only escaped and cut.

use std::time::Duration;

use tracing::{debug, error, info, warn};

use super::error::EngineError;
use crate::{
    core::{
        NewJob, Ticket,
        identity::log_label,
        job::{JobStatus, Outcome},
    },
    proving::PhaseTimings,
};

pub(super) fn accepted(job: &str, new: &NewJob, queue_position: u32) {
    info!(
        job,
        request = new.label,
        circuit = %new.circuit,
        priority = new.priority.label(),
        partitions = new.partitions,
        payload_bytes = new.payload_bytes,
        queue_position,
        "job accepted"
    );
}

/// At debug: clients may repeat a request as often as they like.
pub(super) fn attached(job: &str, request_id: &str, ticket: &Ticket) {
    let how = match ticket.kind {
        crate::core::TicketKind::Replayed(_) => "replayed",
        _ => "attached",
    };
    debug!(job, request = log_label(request_id), how, "same job submitted again");
}

/// At debug: the client is told, and may repeat it as often as it likes.
pub(super) fn refused(request_id: &str, error: &EngineError) {
    debug!(request = log_label(request_id), %error, "request refused");
}

pub(super) fn resumed(jobs: usize, took: Duration) {
    if jobs > 0 {
        info!(jobs, took_ms = took.as_millis() as u64, "jobs of an earlier life resumed");
    }
}

pub(super) fn started(job: &str, request: &str, queue_wait: Duration) {
    info!(job, request, queue_wait_ms = queue_wait.as_millis() as u64, "job started");
}

pub(super) fn ended(job: &str, request: &str, outcome: &Outcome) {
    let t = &outcome.timings;
    let ms = |d: Duration| d.as_millis() as u64;
    let devices = outcome.devices.join(",");
    macro_rules! line {
        ($level:ident) => {
            $level!(
                job,
                request,
                status = outcome.status.label(),
                devices,
                total_ms = ms(t.total),
                queue_wait_ms = ms(t.queue_wait),
                srs_load_ms = ms(t.params_load),
                synthesis_ms = ms(t.synthesis),
                gpu_compute_ms = ms(t.compute),
                reason = outcome.error,
                "job ended"
            )
        };
    }
    match outcome.status {
        JobStatus::Failed => line!(warn),
        JobStatus::Completed | JobStatus::Cancelled => line!(info),
    }
}

pub(super) fn retried(job: &str, partition: Option<usize>, place: &str, reason: &str, loud: bool) {
    if loud {
        warn!(job, partition, place, reason, "failed, trying again");
    } else {
        debug!(job, partition, place, reason, "failed, trying again");
    }
}

/// Always loud: whatever the cause is, somebody has to look at this device.
pub(super) fn bad_proof(job: &str, partition: usize, device: &str) {
    error!(job, partition, device, "a proof does not verify: it is not returned");
}

pub(super) fn fenced(device: &str, reason: &str) {
    error!(device, reason, "the device gets no more work until it is revived");
}

pub(super) fn revived(device: &str, out_for: Duration) {
    info!(device, out_for_s = out_for.as_secs(), "the device gets work again");
}

pub(super) fn stalled(job: &str, partition: usize, place: &str, age: Duration) {
    error!(job, partition, age_s = age.as_secs(), "{place} has not answered, the attempt is given up");
}

/// The target of lines with the times of partitions: on debug level, so that a job has few lines unless these are asked for.
const TIMINGS: &str = "cuzk_timing";

/// One line a partition with every phase, in the order in which they ran.
pub(super) fn timing(job: &str, partition: usize, device: &str, timings: &PhaseTimings) {
    if !tracing::enabled!(target: TIMINGS, tracing::Level::DEBUG) {
        return;
    }
    let phases: Vec<String> =
        timings.iter().map(|(phase, took)| format!("{phase}_ms={:.3}", took.as_secs_f64() * 1e3)).collect();
    debug!(target: TIMINGS, job, partition, device, "CUZK_TIMING {}", phases.join(" "));
}
