//! Figures from single measurements. Pure.

use std::time::Duration;

use cuzk_proto::v1::{Job, PhaseTime};

/// How long proofs took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Latency {
    /// Of all these; zeros of none.
    pub(super) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut seconds: Vec<f64> = times.into_iter().map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let at = |percent| percentile(&seconds, percent).unwrap_or(0.0);
        let mean = if seconds.is_empty() { 0.0 } else { seconds.iter().sum::<f64>() / seconds.len() as f64 };
        Self { mean, p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }
}

/// The least value that so many percent of the values do not exceed (nearest rank); `None` of none.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (percent * sorted.len()).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// One phase of the provers, over all partitions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PhaseShare {
    pub(super) name: String,
    /// Milliseconds of one partition.
    pub(super) partition_ms: f64,
    /// Its part of the time in which the device's lock was held; for phases outside of it, too.
    pub(super) of_lock: f64,
}

/// The time during which a device's lock is held.
pub(super) const LOCK_HOLD: &str = "lock_hold";

/// Where the time of a partition goes, in the order in which phases run.
pub(super) fn phases(jobs: &[&Job]) -> Vec<PhaseShare> {
    let partitions: usize = jobs.iter().map(|job| partitions(job)).sum();
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for PhaseTime { name, duration_us } in jobs.iter().flat_map(|job| &job.phases) {
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += duration_us,
            None => sums.push((name, *duration_us)),
        }
    }
    let lock = sums.iter().find(|(name, _)| *name == LOCK_HOLD).map_or(0, |(_, sum)| *sum);
    let share = |sum: u64| if lock == 0 { 0.0 } else { sum as f64 / lock as f64 };
    let phase = |(name, sum): (&str, u64)| PhaseShare {
        name: name.to_owned(),
        partition_ms: sum as f64 / 1000.0 / partitions.max(1) as f64,
        of_lock: share(sum),
    };
    sums.into_iter().map(phase).collect()
}

/// How many a job has.
pub(super) fn partitions(job: &Job) -> usize {
    crate::commands::text::partitions(job) as usize
}

/// What the daemon held at most, in bytes, as far as it was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Peaks {
    /// Host memory in all, and the most that might be used.
    pub(super) host: u64,
    pub(super) host_limit: u64,
    /// By use.
    pub(super) uses: Vec<(String, u64)>,
    /// By device: name, peak, and all that it has.
    pub(super) devices: Vec<(String, u64, u64)>,
}

impl Peaks {
    /// One more look at the daemon.
    pub(super) fn see(&mut self, status: &cuzk_proto::v1::GetStatusResponse) {
        if let Some(memory) = &status.memory {
            self.host = self.host.max(memory.uses.iter().map(|of| of.used_bytes).sum());
            self.host_limit = memory.shares.iter().map(|share| share.limit_bytes).sum();
            for of in &memory.uses {
                match self.uses.iter_mut().find(|(name, _)| *name == of.name) {
                    Some((_, peak)) => *peak = (*peak).max(of.used_bytes),
                    None => self.uses.push((of.name.clone(), of.used_bytes)),
                }
            }
        }
        for (i, gpu) in status.gpus.iter().enumerate() {
            let used = gpu.vram_total_bytes.saturating_sub(gpu.vram_free_bytes);
            match self.devices.get_mut(i) {
                Some((_, peak, _)) => *peak = (*peak).max(used),
                None => self.devices.push((gpu.name.clone(), used, gpu.vram_total_bytes)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{GetStatusResponse, GpuStatus, MemoryStatus, StageCounts, memory_status::Use};

    use super::*;

    #[test]
    fn percentiles_are_of_values_that_there_are() {
        let seconds = |values: &[u64]| Latency::of(values.iter().map(|s| Duration::from_secs(*s)));
        let ten = seconds(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(ten, Latency { mean: 5.5, p50: 5.0, p90: 9.0, p99: 10.0, max: 10.0 });
        assert_eq!(seconds(&[3]), Latency { mean: 3.0, p50: 3.0, p90: 3.0, p99: 3.0, max: 3.0 });
        assert_eq!(seconds(&[]), Latency::default());
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!((seconds(&hundred).p50, seconds(&hundred).p99), (50.0, 99.0));
    }

    #[test]
    fn phases_are_of_a_partition_and_of_the_lock() {
        let job = |hold: u64, h: u64| Job {
            stages: Some(StageCounts { proved: 2, ..StageCounts::default() }),
            phases: [("stage", 1000), (LOCK_HOLD, hold), ("msm_h", h)]
                .map(|(name, duration_us)| PhaseTime { name: name.to_owned(), duration_us })
                .into(),
            ..Job::default()
        };
        let (a, b) = (job(4000, 2000), job(8000, 4000));
        let phases = phases(&[&a, &b]);
        let shown: Vec<_> = phases.iter().map(|p| (p.name.as_str(), p.partition_ms, p.of_lock)).collect();
        assert_eq!(shown, [("stage", 0.5, 2000.0 / 12000.0), (LOCK_HOLD, 3.0, 1.0), ("msm_h", 1.5, 0.5)]);
        assert!(super::phases(&[]).is_empty());
    }

    #[test]
    fn peaks_are_the_most_of_each() {
        let status = |params: u64, witness: u64, free: u64| GetStatusResponse {
            memory: Some(MemoryStatus {
                uses: [("params", params), ("witness", witness)]
                    .map(|(name, used_bytes)| Use { name: name.to_owned(), used_bytes, share: String::new() })
                    .into(),
                ..MemoryStatus::default()
            }),
            gpus: vec![GpuStatus {
                name: "G".into(),
                vram_total_bytes: 100,
                vram_free_bytes: free,
                ..GpuStatus::default()
            }],
            ..GetStatusResponse::default()
        };
        let mut peaks = Peaks::default();
        [status(5, 1, 90), status(2, 6, 30), status(1, 1, 60)].iter().for_each(|status| peaks.see(status));
        assert_eq!(peaks.host, 8);
        assert_eq!(peaks.uses, [("params".to_owned(), 5), ("witness".to_owned(), 6)]);
        assert_eq!(peaks.devices, [("G".to_owned(), 70, 100)]);
    }
}
