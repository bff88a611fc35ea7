//! `status`: what a running daemon does, as a table or as JSON.

use std::fmt::Write;

use cuzk_proto::v1::{GetStatusResponse, gpu_status::Health};

use super::{json, remote, text};
use crate::{cli::StatusArgs, client::one_line, exit::Failure};

/// Asks and prints.
pub(super) async fn status(args: &StatusArgs) -> Result<(), Failure> {
    let answer = remote::status(&args.client).await?;
    match args.json {
        true => println!("{:#}", json::status(&answer)),
        false => print!("{}", as_table(&answer, text::now_ms())),
    }
    Ok(())
}

/// For people.
pub(super) fn as_table(status: &GetStatusResponse, now_ms: u64) -> String {
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
    let busy = status.queues.iter().filter(|queue| queue.pending + queue.in_progress > 0);
    if busy.clone().next().is_none() {
        line("queue", "empty".to_owned());
    }
    for queue in busy {
        line("queue", format!("{}: {} pending, {} in progress", queue.proof_kind, queue.pending, queue.in_progress));
    }
    for gpu in &status.gpus {
        let (free, total) = (text::bytes(gpu.vram_free_bytes), text::bytes(gpu.vram_total_bytes));
        let work = match (gpu.busy_workers.is_empty(), gpu.current_job_id.as_str()) {
            (false, _) => text::work(gpu, now_ms),
            (true, "") => "idle".to_owned(),
            // A daemon of another make tells no more.
            (true, job) => format!("{} {job}", gpu.current_proof_kind),
        };
        let fenced = if gpu.health() == Health::Fenced { ", FENCED" } else { "" };
        line("device", format!("{} {}: {free} of {total} free{fenced}, {work}", gpu.ordinal, gpu.name));
    }
    for srs in &status.loaded_srs {
        let (tier, size) = (text::tier(srs), text::bytes(srs.size_bytes));
        line("parameters", format!("{}: {tier}, {size}, in use by {} jobs", srs.circuit_id, srs.ref_count));
    }
    if let Some(memory) = &status.memory {
        for share in &memory.shares {
            let used: u64 = memory.uses.iter().filter(|u| u.share == share.name).map(|u| u.used_bytes).sum();
            line("memory", format!("{}: {} of {}", share.name, text::bytes(used), text::bytes(share.limit_bytes)));
        }
    }
    if let Some(store) = &status.store {
        let trouble = if store.trouble.is_empty() { String::new() } else { format!(", {}", store.trouble) };
        line("job store", format!("{} jobs, {}{trouble}", store.jobs, text::bytes(store.payload_bytes)));
    }
    if !status.provable_circuits.is_empty() {
        line("provable", status.provable_circuits.join(", "));
    }
    for incident in status.incidents.iter().take(INCIDENTS) {
        let ago = text::millis(now_ms.saturating_sub(incident.at_unix_ms));
        let about = [&incident.job_id, &incident.device].into_iter().find(|about| !about.is_empty());
        line("incident", format!("{ago} ago, {}: {}", about.map_or("", String::as_str), incident.text));
    }
    for warning in &status.warnings {
        line("warning", warning.clone());
    }
    out
}

/// So many of the latest incidents are shown.
const INCIDENTS: usize = 5;

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
    use cuzk_proto::v1::{
        GpuStatus, Incident, MemoryStatus, QueueStatus, SrsStatus, StoreStatus, memory_status, srs_status::Tier,
    };

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
        let table = as_table(&sample(), 0);
        for text in [
            "serving, up 1h 2m",
            "7 completed, 0 failed",
            "POREP_SEAL_COMMIT: 2 pending, 1 in progress",
            "0 CPU: 0 B of 8.0 GiB free, POREP_SEAL_COMMIT j-1",
            "porep-2k: warm, 1.0 GiB, in use by 1 jobs",
            "development parameters in use",
        ] {
            assert!(table.contains(text), "{text:?} in {table}");
        }
        assert_eq!(table.lines().count(), 6);
        let idle = GetStatusResponse { queues: vec![QueueStatus::default(); 4], ..sample() };
        let table = as_table(&idle, 0);
        assert!(table.contains("queue       empty") && table.lines().count() == 6, "{table}");
    }

    #[test]
    fn json_has_the_protocols_names() {
        let json = json::status(&sample());
        assert_eq!(json["queues"][0]["pending"], 2);
        assert_eq!(json["loaded_srs"][0]["tier"], "warm");
        assert_eq!(json["gpus"][0]["current_job_id"], "j-1");
        assert_eq!(json["state"], "serving");
    }

    #[test]
    fn memory_store_and_incidents_have_lines() {
        let status = GetStatusResponse {
            memory: Some(MemoryStatus {
                shares: vec![memory_status::Share { name: "work".into(), limit_bytes: 4 << 30 }],
                uses: ["params", "witness"]
                    .map(|name| memory_status::Use { name: name.into(), used_bytes: 1 << 30, share: "work".into() })
                    .into(),
            }),
            store: Some(StoreStatus { jobs: 2, trouble: "disk full".into(), ..StoreStatus::default() }),
            incidents: vec![Incident {
                at_unix_ms: 1000,
                device: "GPU-1".into(),
                text: "lost".into(),
                ..Incident::default()
            }],
            ..sample()
        };
        let table = as_table(&status, 3000);
        for text in ["work: 2.0 GiB of 4.0 GiB", "2 jobs, 0 B, disk full", "2.0s ago, GPU-1: lost"] {
            assert!(table.contains(text), "{text:?} in {table}");
        }
    }

    #[test]
    fn uptimes() {
        assert_eq!(uptime(59), "0m 59s");
        assert_eq!(uptime(90_061), "1d 1h 1m");
    }
}
