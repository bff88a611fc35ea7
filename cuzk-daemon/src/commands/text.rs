//! Pictures of a daemon as text for people: pure functions, a line a thing, nothing a terminal could take for a command.

use std::time::{SystemTime, UNIX_EPOCH};

use cuzk_proto::v1::{
    GetStatusResponse, GpuStatus, Job, JobState, Partition, SrsStatus, gpu_status::Health, srs_status,
};

pub(super) use cuzk_server::json::{priority_name, state_name};

use crate::client::one_line;

/// Columns under headings, padded to the widest cell; the last column is not padded.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &[String]| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>();
    let mut lines = vec![headings.iter().map(|&heading| heading.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| cells(row)));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        out += padded.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// Jobs, a line each.
pub(super) fn jobs(jobs: &[Job], now_ms: u64) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let row = |job: &Job| {
        vec![
            job.job_id.clone(),
            state_name(job.state()).to_owned(),
            job.circuit_id.clone(),
            sector(job),
            priority_name(job.priority).to_owned(),
            proved(job),
            age(now_ms, job.accepted_unix_ms),
            job_note(job),
        ]
    };
    let rows: Vec<_> = jobs.iter().map(row).collect();
    table(&["JOB", "STATE", "CIRCUIT", "SECTOR", "PRIORITY", "PROVED", "AGE", "NOTE"], &rows)
}

/// One job with its partitions.
pub(super) fn job(job: &Job, now_ms: u64) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: String| {
        if !text.is_empty() {
            out += &format!("{label:<11} {}\n", one_line(&text));
        }
    };
    line("job", job.job_id.clone());
    line("request", job.request_id.clone());
    line("state", format!("{}{}", state_name(job.state()), queue_note(job)));
    line("circuit", job.circuit_id.clone());
    line("sector", sector(job));
    line("priority", priority_name(job.priority).to_owned());
    line("accepted", age(now_ms, job.accepted_unix_ms) + " ago");
    line("partitions", job.stages.map(|_| stages(job)).unwrap_or_default());
    line("devices", job.devices.join(", "));
    line(
        "time",
        format!(
            "{} in all: queue {}, parameters {}, synthesis {}, device {}",
            millis(job.total_ms),
            millis(job.queue_wait_ms),
            millis(job.srs_load_ms),
            millis(job.synthesis_ms),
            millis(job.gpu_compute_ms)
        ),
    );
    let phases = job.phases.iter().map(|phase| format!("{} {}", phase.name, millis(phase.duration_us.div_ceil(1000))));
    line("phases", phases.collect::<Vec<_>>().join(", "));
    line("error", job.error_message.clone());
    if !job.partitions.is_empty() {
        let row = |p: &Partition| {
            let since = if p.since_unix_ms == 0 { String::new() } else { age(now_ms, p.since_unix_ms) };
            vec![p.index.to_string(), stage(p), since, p.device.clone(), p.attempt.to_string(), p.failures.join("; ")]
        };
        out.push('\n');
        out += &table(
            &["PARTITION", "STAGE", "SINCE", "DEVICE", "ATTEMPT", "FAILURES"],
            &job.partitions.iter().map(row).collect::<Vec<_>>(),
        );
    }
    out
}

/// Devices, a line each.
pub(super) fn gpus(gpus: &[GpuStatus], now_ms: u64) -> String {
    let row = |gpu: &GpuStatus| {
        vec![
            gpu.ordinal.to_string(),
            gpu.name.clone(),
            gpu.uuid.clone(),
            gpu.pci_address.clone(),
            format!("{} of {}", bytes(gpu.vram_free_bytes), bytes(gpu.vram_total_bytes)),
            health(gpu, now_ms),
            work(gpu, now_ms),
        ]
    };
    table(&["NO", "NAME", "UUID", "PCI", "FREE", "HEALTH", "WORK"], &gpus.iter().map(row).collect::<Vec<_>>())
}

/// Parameters, a line each, those that could be loaded included.
pub(super) fn srs(status: &GetStatusResponse) -> String {
    let mut rows: Vec<Vec<String>> = status.loaded_srs.iter().map(srs_row).collect();
    let known = |circuit: &String| status.loaded_srs.iter().any(|srs| srs.circuit_id == *circuit);
    let on_disk = status.provable_circuits.iter().filter(|circuit| !known(circuit));
    rows.extend(on_disk.map(|circuit| vec![circuit.clone(), "cold".to_owned(), String::new(), "0".to_owned()]));
    if rows.is_empty() {
        return "no parameters are loaded, and none are on the disk\n".to_owned();
    }
    table(&["CIRCUIT", "TIER", "SIZE", "JOBS"], &rows)
}

fn srs_row(srs: &SrsStatus) -> Vec<String> {
    let size = if srs.size_bytes == 0 { String::new() } else { bytes(srs.size_bytes) };
    vec![srs.circuit_id.clone(), tier(srs), size, srs.ref_count.to_string()]
}

/// Where parameters are, or how far their load is.
pub(super) fn tier(srs: &SrsStatus) -> String {
    match (srs.loading, srs.tier()) {
        (true, _) => format!("loading, {} %", srs.loaded_percent),
        (false, srs_status::Tier::Hot) => "hot".to_owned(),
        (false, srs_status::Tier::Warm) => "warm".to_owned(),
        (false, srs_status::Tier::Cold) => "cold".to_owned(),
    }
}

/// How many partitions are at which stage, in words; only those stages where there are any.
pub(super) fn stages(job: &Job) -> String {
    let counts = job.stages.unwrap_or_default();
    let named = [
        (counts.proved, "proved"),
        (counts.proving, "proving"),
        (counts.ready, "ready"),
        (counts.synthesizing, "synthesizing"),
        (counts.waiting, "waiting"),
    ];
    let some = named.into_iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}"));
    some.collect::<Vec<_>>().join(", ")
}

/// Partitions in all.
pub(super) fn partitions(job: &Job) -> u32 {
    let counts = job.stages.unwrap_or_default();
    counts.waiting + counts.synthesizing + counts.ready + counts.proving + counts.proved
}

/// What a device's workers do.
pub(super) fn work(gpu: &GpuStatus, now_ms: u64) -> String {
    let busy = gpu.busy_workers.iter().map(|worker| {
        let since = age(now_ms, worker.since_unix_ms);
        format!("{}/{} {} {since}", worker.job_id, worker.partition, worker.phase)
    });
    let busy: Vec<_> = busy.collect();
    if busy.is_empty() { "idle".to_owned() } else { busy.join(", ") }
}

/// In binary units.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0);
    fitting.map_or(format!("{bytes} B"), |(shift, unit)| format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64))
}

/// A span of milliseconds, in one or two units.
pub(super) fn millis(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m {}s", ms / 60_000, ms / 1000 % 60),
        3_600_000..86_400_000 => format!("{}h {}m", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{}d {}h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}

/// The wall clock, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn age(now_ms: u64, at_ms: u64) -> String {
    // The two clocks may differ.
    millis(now_ms.saturating_sub(at_ms))
}

fn sector(job: &Job) -> String {
    if job.miner_id == 0 { String::new() } else { format!("t0{}/{}", job.miner_id, job.sector_number) }
}

fn proved(job: &Job) -> String {
    match partitions(job) {
        0 => String::new(),
        of => format!("{} of {of}", job.stages.unwrap_or_default().proved),
    }
}

fn job_note(job: &Job) -> String {
    match job.state() {
        JobState::JobQueued => queue_note(job).trim_start_matches(", ").to_owned(),
        JobState::JobRunning => stages(job),
        _ => job.error_message.clone(),
    }
}

fn queue_note(job: &Job) -> String {
    match job.state() {
        JobState::JobQueued => format!(", {} ahead of it", job.queue_position),
        _ => String::new(),
    }
}

fn stage(partition: &Partition) -> String {
    let name = partition.stage().as_str_name().to_lowercase();
    if partition.phase.is_empty() { name } else { format!("{name}: {}", partition.phase) }
}

fn health(gpu: &GpuStatus, now_ms: u64) -> String {
    match gpu.health() {
        Health::Unknown => String::new(),
        Health::Available => "available".to_owned(),
        Health::Fenced => format!("fenced for {}: {}", age(now_ms, gpu.fenced_since_unix_ms), gpu.fence_reason),
    }
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{StageCounts, Worker};

    use super::*;

    fn sample() -> Job {
        Job {
            job_id: "s-1".into(),
            circuit_id: "porep-32g".into(),
            miner_id: 1000,
            sector_number: 7,
            priority: 2,
            state: JobState::JobRunning.into(),
            accepted_unix_ms: 1_000_000,
            stages: Some(StageCounts { proved: 3, proving: 1, waiting: 6, ..StageCounts::default() }),
            partitions: vec![Partition {
                index: 4,
                stage: 4,
                since_unix_ms: 1_060_000,
                device: "GPU-1".into(),
                phase: "lock_hold".into(),
                attempt: 2,
                failures: vec!["device GPU-0: out of memory".into()],
            }],
            ..Job::default()
        }
    }

    #[test]
    fn a_list_has_a_line_a_job_and_its_columns_stand_under_each_other() {
        let ended = Job {
            job_id: "s-2".into(),
            state: JobState::JobFailed.into(),
            error_message: "no\x1b[31m\nway".into(),
            ..Job::default()
        };
        let text = jobs(&[sample(), ended], 1_061_500);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let columns = ["porep-32g", "t01000/7", "normal", "3 of 10", "1m 1s", "3 proved, 1 proving, 6 waiting"];
        columns.into_iter().for_each(|cell| assert!(lines[1].contains(cell), "{cell} in {text}"));
        assert_eq!(lines[0].find("STATE"), lines[1].find("running"));
        assert!(lines[2].contains("failed") && lines[2].ends_with("no [31m way"), "{text}");
        assert_eq!(jobs(&[], 0), "no jobs\n");
    }

    #[test]
    fn one_job_shows_each_partition_with_its_failures() {
        let text = job(&sample(), 1_061_500);
        for part in ["sector      t01000/7", "4          proving: lock_hold  1.5s", "GPU-1", "GPU-0: out of memory"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        let queued = Job { state: JobState::JobQueued.into(), queue_position: 3, partitions: vec![], ..sample() };
        assert!(job(&queued, 0).contains("queued, 3 ahead of it"));
    }

    #[test]
    fn devices_tell_their_health_and_what_each_worker_does() {
        let gpu = GpuStatus {
            name: "H200".into(),
            vram_free_bytes: 1 << 30,
            vram_total_bytes: 2 << 30,
            health: Health::Fenced.into(),
            fence_reason: "lost".into(),
            fenced_since_unix_ms: 1000,
            busy_workers: vec![Worker {
                job_id: "s-1".into(),
                partition: 4,
                phase: "msm_b_g2".into(),
                since_unix_ms: 2000,
            }],
            ..GpuStatus::default()
        };
        let text = gpus(&[gpu], 4000);
        for part in ["1.0 GiB of 2.0 GiB", "fenced for 3.0s: lost", "s-1/4 msm_b_g2 2.0s"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn parameters_are_listed_with_those_on_the_disk() {
        let loading =
            SrsStatus { circuit_id: "porep-2k".into(), loading: true, loaded_percent: 40, ..SrsStatus::default() };
        let status = GetStatusResponse {
            loaded_srs: vec![loading],
            provable_circuits: vec!["porep-2k".into(), "porep-32g".into()],
            ..GetStatusResponse::default()
        };
        let text = srs(&status);
        assert!(text.contains("porep-2k   loading, 40 %") && text.contains("porep-32g  cold"), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(srs(&GetStatusResponse::default()).starts_with("no parameters"));
    }

    #[test]
    fn spans_and_sizes() {
        let spans = [0, 999, 1500, 61_000, 3_660_000, 90_000_000].map(millis);
        assert_eq!(spans, ["0ms", "999ms", "1.5s", "1m 1s", "1h 1m", "1d 1h"]);
        assert_eq!([0, 1023, 1536, 3 << 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "3.0 GiB"]);
    }
}
