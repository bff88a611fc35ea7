//! `status`: what a running daemon does, as a table or as JSON.

use std::fmt::Write;

use cuzk_proto::v1::{GetStatusRequest, GetStatusResponse, srs_status::Tier};
use serde_json::{Value, json};
use tonic::Request;

use crate::{
    cli::StatusArgs,
    client::{self, QUICK, one_line},
    exit::Failure,
};

/// Asks and prints.
pub(super) async fn status(args: &StatusArgs) -> Result<(), Failure> {
    let target = &args.client.addr;
    let mut client = client::open(&args.client).await?;
    let mut request = Request::new(GetStatusRequest {});
    request.set_timeout(QUICK);
    let answer = client
        .get_status(request)
        .await
        .map_err(|status| client::refused("get the status", target, &status))?
        .into_inner();
    match args.json {
        true => println!("{:#}", as_json(&answer)),
        false => print!("{}", as_table(&answer)),
    }
    Ok(())
}

/// For programs: the protocol's field names, with enums as words.
fn as_json(status: &GetStatusResponse) -> Value {
    let gpus = status.gpus.iter().map(|gpu| {
        json!({
            "ordinal": gpu.ordinal,
            "name": gpu.name,
            "vram_total_bytes": gpu.vram_total_bytes,
            "vram_free_bytes": gpu.vram_free_bytes,
            "current_job_id": gpu.current_job_id,
            "current_proof_kind": gpu.current_proof_kind,
        })
    });
    let loaded_srs = status.loaded_srs.iter().map(|srs| {
        json!({
            "circuit_id": srs.circuit_id,
            "tier": tier_name(srs.tier()),
            "size_bytes": srs.size_bytes,
            "ref_count": srs.ref_count,
        })
    });
    let queues = status.queues.iter().map(|queue| {
        json!({
            "proof_kind": queue.proof_kind,
            "pending": queue.pending,
            "in_progress": queue.in_progress,
        })
    });
    json!({
        "state": status.state,
        "uptime_seconds": status.uptime_seconds,
        "total_proofs_completed": status.total_proofs_completed,
        "total_proofs_failed": status.total_proofs_failed,
        "pinned_memory_bytes": status.pinned_memory_bytes,
        "pinned_memory_limit_bytes": status.pinned_memory_limit_bytes,
        "gpus": gpus.collect::<Vec<_>>(),
        "loaded_srs": loaded_srs.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "provable_circuits": status.provable_circuits,
        "warnings": status.warnings,
    })
}

/// For people.
fn as_table(status: &GetStatusResponse) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: String| {
        writeln!(out, "{label:<11} {}", one_line(&text)).expect("writing to a string");
    };
    let state = match status.state.as_str() {
        // A daemon of another make does not tell.
        "" => "answering",
        state => state,
    };
    line("state", format!("{state}, up {}", uptime(status.uptime_seconds)));
    line("proofs", format!("{} completed, {} failed", status.total_proofs_completed, status.total_proofs_failed));
    for queue in &status.queues {
        line("queue", format!("{}: {} pending, {} in progress", queue.proof_kind, queue.pending, queue.in_progress));
    }
    for gpu in &status.gpus {
        let (free, total) = (gib(gpu.vram_free_bytes), gib(gpu.vram_total_bytes));
        let work = match gpu.current_job_id.as_str() {
            "" => "idle".to_owned(),
            job => format!("{} {job}", gpu.current_proof_kind),
        };
        line("device", format!("{} {}: {free} of {total} free, {work}", gpu.ordinal, gpu.name));
    }
    for srs in &status.loaded_srs {
        line(
            "parameters",
            format!(
                "{}: {}, {}, in use by {} jobs",
                srs.circuit_id,
                tier_name(srs.tier()),
                gib(srs.size_bytes),
                srs.ref_count
            ),
        );
    }
    if !status.provable_circuits.is_empty() {
        line("provable", status.provable_circuits.join(", "));
    }
    for warning in &status.warnings {
        line("warning", warning.clone());
    }
    out
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Hot => "hot",
        Tier::Warm => "warm",
        Tier::Cold => "cold",
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m {}s", seconds % 60),
        (0, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h {minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{GpuStatus, QueueStatus, SrsStatus};

    use super::*;

    fn sample() -> GetStatusResponse {
        GetStatusResponse {
            state: "serving".into(),
            uptime_seconds: 3_725,
            total_proofs_completed: 7,
            gpus: vec![GpuStatus {
                name: "CPU".into(),
                vram_total_bytes: 8 << 30,
                current_job_id: "j-1".into(),
                current_proof_kind: "POREP_SEAL_COMMIT".into(),
                ..Default::default()
            }],
            loaded_srs: vec![SrsStatus {
                circuit_id: "porep-2k".into(),
                tier: Tier::Warm as i32,
                size_bytes: 1 << 30,
                ref_count: 1,
                ..Default::default()
            }],
            queues: vec![QueueStatus { proof_kind: "POREP_SEAL_COMMIT".into(), pending: 2, in_progress: 1 }],
            warnings: vec!["development parameters\nin use".into()],
            ..Default::default()
        }
    }

    #[test]
    fn the_table_has_a_line_for_everything() {
        let table = as_table(&sample());
        for text in [
            "serving, up 1h 2m",
            "7 completed, 0 failed",
            "POREP_SEAL_COMMIT: 2 pending, 1 in progress",
            "0 CPU: 0.0 GiB of 8.0 GiB free, POREP_SEAL_COMMIT j-1",
            "porep-2k: warm, 1.0 GiB, in use by 1 jobs",
            "development parameters in use",
        ] {
            assert!(table.contains(text), "{text:?} in {table}");
        }
        assert_eq!(table.lines().count(), 6);
    }

    #[test]
    fn json_has_the_protocols_names() {
        let json = as_json(&sample());
        assert_eq!(json["queues"][0]["pending"], 2);
        assert_eq!(json["loaded_srs"][0]["tier"], "warm");
        assert_eq!(json["gpus"][0]["current_job_id"], "j-1");
        assert_eq!(json["state"], "serving");
    }

    #[test]
    fn uptimes() {
        assert_eq!(uptime(59), "0m 59s");
        assert_eq!(uptime(90_061), "1d 1h 1m");
    }
}
