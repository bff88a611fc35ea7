//! What came out, as text for people; [`super::json`] has it for programs. Pure.

use super::{
    drive::{Measured, Proven},
    stats::{self, LOCK_HOLD, Latency, Peaks, PhaseShare},
    times::{self, DeviceUse, Wait},
    verify::Verified,
};
use crate::commands::text;

/// Everything that is told.
pub(super) struct Report {
    pub(super) circuit: String,
    pub(super) daemon: String,
    pub(super) version: String,
    pub(super) concurrency: usize,
    pub(super) inputs: usize,
    pub(super) wall_s: f64,
    pub(super) first_s: f64,
    pub(super) latency: Latency,
    pub(super) busy: Busy,
    pub(super) phases: Vec<PhaseShare>,
    /// Waiting in the queue, for parameters, and in synthesis: milliseconds of one proof.
    pub(super) before_ms: [f64; 3],
    pub(super) devices: Vec<DeviceUse>,
    /// Partitions that were proven, and those whose times are known.
    pub(super) partitions: [usize; 2],
    pub(super) peaks: Peaks,
    pub(super) refusals: usize,
    pub(super) verified: Verified,
    pub(super) proofs: Vec<Proven>,
}

/// How much of the time kernels ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Busy {
    /// Of the time from the first submission to the last proof, by all devices that proved.
    pub(super) of_wall: f64,
    /// Of the time between the first kernel and the last one; only a timeline tells it.
    pub(super) of_span: Option<f64>,
}

impl Report {
    /// Puts the figures together.
    pub(super) fn new(measured: Measured, verified: Verified, about: About) -> Self {
        let Measured { first, proofs, wall, refusals, peaks, timeline } = measured;
        let devices = times::devices(timeline.as_deref().unwrap_or_default());
        let jobs: Vec<_> = proofs.iter().map(|proven| &proven.job).collect();
        let proven: usize = jobs.iter().map(|job| stats::partitions(job)).sum();
        let phases = stats::phases(&jobs);
        let mean = |of: fn(&cuzk_proto::v1::Job) -> u64| {
            jobs.iter().map(|job| of(job)).sum::<u64>() as f64 / jobs.len().max(1) as f64
        };
        let before_ms = [mean(|job| job.queue_wait_ms), mean(|job| job.srs_load_ms), mean(|job| job.synthesis_ms)];
        let wall_s = wall.as_secs_f64();
        let busy = busy(&jobs, wall_s, &devices);
        let latency = Latency::of(proofs.iter().map(|proven| proven.latency));
        let About { circuit, daemon, version, concurrency, inputs } = about;
        Self {
            circuit,
            daemon,
            version,
            concurrency,
            inputs,
            wall_s,
            first_s: first.latency.as_secs_f64(),
            latency,
            busy,
            phases,
            before_ms,
            devices,
            partitions: [proven, timeline.map_or(0, |partitions| partitions.len())],
            peaks,
            refusals,
            verified,
            proofs,
        }
    }

    /// Seconds from one proof to the next.
    pub(super) fn seconds_a_proof(&self) -> f64 {
        self.wall_s / self.proofs.len().max(1) as f64
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut out = format!(
            "{}: {} proofs, {} at once, of {} different inputs, by {}{}\n\n",
            self.circuit,
            self.proofs.len(),
            self.concurrency,
            self.inputs,
            self.daemon,
            if self.version.is_empty() { String::new() } else { format!(" (version {})", self.version) },
        );
        let mut line = |label: &str, text: String| out += &format!("{label:<14} {text}\n");
        let Latency { mean, p50, p90, p99, max } = self.latency;
        let each = self.seconds_a_proof();
        line("throughput", format!("{each:.3} s a proof, {:.1} an hour; {:.3} s in all", 3600.0 / each, self.wall_s));
        line("latency", format!("p50 {p50:.3} s, p90 {p90:.3}, p99 {p99:.3}, max {max:.3}; mean {mean:.3}"));
        line("first proof", format!("{:.3} s, not counted", self.first_s));
        line("device busy", self.busy_text());
        for device in &self.devices {
            line("", waits_text(device));
        }
        let [queue, params, synthesis] = self.before_ms;
        line(
            "of a proof",
            format!("queue {queue:.0} ms, parameters {params:.0} ms, synthesis {synthesis:.0} ms (summed)"),
        );
        line("host memory", host_text(&self.peaks));
        // The CPU has no memory of its own.
        for (name, peak, total) in self.peaks.devices.iter().filter(|(_, peak, _)| *peak > 0) {
            line("device memory", format!("{} at the peak of {}, {name}", text::bytes(*peak), text::bytes(*total)));
        }
        if self.refusals > 0 {
            line("refused", format!("{} submissions for want of room, sent again", self.refusals));
        }
        line("verified", self.verified_text());
        if !self.phases.is_empty() {
            let row = |phase: &PhaseShare| {
                vec![
                    phase.name.clone(),
                    format!("{:.3} ms", phase.partition_ms),
                    format!("{:.1} %", phase.of_lock * 100.0),
                ]
            };
            let rows: Vec<_> = self.phases.iter().map(row).collect();
            out += &format!("\n{}", text::table(&["PHASE", "A PARTITION", "OF THE LOCK"], &rows));
        }
        out
    }

    pub(super) fn busy_text(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        match self.busy.of_span {
            Some(span) => {
                let wall = percent(self.busy.of_wall);
                format!("{} from the first kernel to the last one ({wall} of all the time)", percent(span))
            }
            None => format!("{} of all the time", percent(self.busy.of_wall)),
        }
    }

    fn verified_text(&self) -> String {
        match &self.verified {
            Verified::NoKey(reason) => format!("NOT VERIFIED here, only by the daemon: no verifying key: {reason}"),
            Verified::Checked { valid, invalid } => {
                let bad: Vec<_> = invalid.iter().map(|(n, why)| format!("; proof {n}: {why}")).collect();
                format!("{valid} of {} proofs are valid{}", valid + invalid.len(), bad.concat())
            }
        }
    }
}

/// What the run was about.
pub(super) struct About {
    pub(super) circuit: String,
    pub(super) daemon: String,
    pub(super) version: String,
    pub(super) concurrency: usize,
    pub(super) inputs: usize,
}

fn busy(jobs: &[&cuzk_proto::v1::Job], wall_s: f64, devices: &[DeviceUse]) -> Busy {
    let us = |phase: &&cuzk_proto::v1::PhaseTime| phase.name == LOCK_HOLD;
    let held: u64 = jobs.iter().flat_map(|job| &job.phases).filter(us).map(|phase| phase.duration_us).sum();
    // A daemon of another make tells milliseconds alone.
    let held = if held > 0 { held } else { 1000 * jobs.iter().map(|job| job.gpu_compute_ms).sum::<u64>() };
    let proved: std::collections::BTreeSet<_> = jobs.iter().flat_map(|job| &job.devices).collect();
    let (busy, span) = devices.iter().fold((0, 0), |(b, s), device| (b + device.busy, s + device.end - device.begin));
    Busy {
        of_wall: held as f64 / 1e6 / wall_s.max(1e-9) / proved.len().max(1) as f64,
        of_span: (span > 0).then(|| busy as f64 / span as f64),
    }
}

fn waits_text(device: &DeviceUse) -> String {
    let ms = |us: u64| us as f64 / 1000.0;
    let sum: u64 = device.waits.iter().map(Wait::length).sum();
    let begin = format!(
        "{}: busy {:.1} %, {} waits of {:.1} ms together",
        device.device,
        device.busy_share() * 100.0,
        device.waits.len(),
        ms(sum)
    );
    match device.longest_wait() {
        None => begin,
        Some(wait) => format!("{begin}, the longest {:.1} ms ({})", ms(wait.length()), meanwhile_text(wait)),
    }
}

/// What a device waited for.
pub(super) fn meanwhile_text(wait: &Wait) -> String {
    match &wait.meanwhile {
        Some(phase) => format!("its threads were in {phase}"),
        None => "no partition was ready for it".to_owned(),
    }
}

fn host_text(peaks: &Peaks) -> String {
    if peaks.host_limit == 0 {
        return "the daemon does not tell".to_owned();
    }
    let uses: Vec<_> = peaks
        .uses
        .iter()
        .filter(|(_, peak)| *peak > 0)
        .map(|(name, peak)| format!("{name} {}", text::bytes(*peak)))
        .collect();
    let (peak, limit) = (text::bytes(peaks.host), text::bytes(peaks.host_limit));
    format!("{peak} at the peak of {limit}, as the daemon accounts for it ({})", uses.join(", "))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use cuzk_proto::v1::{Job, PhaseTime, StageCounts};

    use super::{super::times::tests::partition, *};

    pub(in super::super) fn report(verified: Verified) -> Report {
        let job = Job {
            job_id: "s-1".into(),
            stages: Some(StageCounts { proved: 1, ..StageCounts::default() }),
            phases: vec![PhaseTime { name: LOCK_HOLD.into(), duration_us: 250_000 }],
            devices: vec!["d".into()],
            accepted_unix_ms: 1,
            started_unix_ms: 100,
            ended_unix_ms: 900,
            synthesis_ms: 30,
            ..Job::default()
        };
        let proven = || Proven { input: 0, latency: Duration::from_secs(1), proof: vec![1], job: job.clone() };
        let timeline = vec![
            partition(1, &[("stage", 100_000, 200_000), (LOCK_HOLD, 200_000, 450_000), ("msm_h", 210_000, 400_000)]),
            partition(2, &[(LOCK_HOLD, 550_000, 800_000)]),
        ];
        let measured = Measured {
            first: proven(),
            proofs: vec![proven(), proven()],
            wall: Duration::from_secs(2),
            refusals: 3,
            peaks: Peaks { host: 1 << 30, host_limit: 4 << 30, ..Peaks::default() },
            timeline: Some(timeline),
        };
        let about = About {
            circuit: "porep-2k".into(),
            daemon: "127.0.0.1:1".into(),
            version: "0.1.0".into(),
            concurrency: 2,
            inputs: 1,
        };
        Report::new(measured, verified, about)
    }

    #[test]
    fn the_figures_are_in_the_text() {
        let text = report(Verified::Checked { valid: 1, invalid: vec![(1, "it does not verify".into())] }).text();
        for part in [
            "porep-2k: 2 proofs, 2 at once",
            "1.000 s a proof, 3600.0 an hour; 2.000 s in all",
            "p50 1.000 s",
            "83.3 % from the first kernel to the last one (25.0 % of all the time)",
            "d: busy 83.3 %, 1 waits of 100.0 ms together, the longest 100.0 ms (no partition was ready for it)",
            "synthesis 30 ms",
            "1.0 GiB at the peak of 4.0 GiB",
            "3 submissions",
            "1 of 2 proofs are valid; proof 1: it does not verify",
            "lock_hold  250.000 ms   100.0 %",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let unverified = report(Verified::NoKey("no file".into())).text();
        assert!(unverified.contains("NOT VERIFIED here") && unverified.contains("no file"), "{unverified}");
    }
}
