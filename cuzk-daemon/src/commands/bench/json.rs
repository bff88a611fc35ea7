//! What came out, as JSON for programs. Pure.

use serde_json::{Map, Value, json};

use super::{
    drive::Proven,
    report::Report,
    stats::{Latency, PhaseShare},
    times::{DeviceUse, Wait},
    verify::Verified,
};

impl Report {
    /// For programs.
    pub(super) fn json(&self) -> Value {
        let Latency { mean, p50, p90, p99, max } = self.latency;
        let phase = |phase: &PhaseShare| json!({"name": phase.name, "partition_ms": phase.partition_ms, "of_lock": phase.of_lock});
        let wait = |wait: &Wait| json!({"begin_unix_us": wait.begin, "us": wait.length(), "meanwhile": wait.meanwhile});
        let device = |device: &DeviceUse| {
            json!({
                "device": device.device,
                "busy_share": device.busy_share(),
                "begin_unix_us": device.begin,
                "end_unix_us": device.end,
                "busy_us": device.busy,
                "waits": device.waits.iter().map(wait).collect::<Vec<_>>(),
            })
        };
        let proof = |proven: &Proven| {
            json!({
                "job_id": proven.job.job_id,
                "input": proven.input,
                "latency_s": proven.latency.as_secs_f64(),
                "queue_wait_ms": proven.job.queue_wait_ms,
                "srs_load_ms": proven.job.srs_load_ms,
                "synthesis_ms": proven.job.synthesis_ms,
                "gpu_compute_ms": proven.job.gpu_compute_ms,
                "total_ms": proven.job.total_ms,
                "devices": proven.job.devices,
            })
        };
        let uses: Map<_, _> = self.peaks.uses.iter().map(|(name, peak)| (name.clone(), (*peak).into())).collect();
        let memory =
            |(name, peak, total): &(String, u64, u64)| json!({"name": name, "peak_bytes": peak, "total_bytes": total});
        let verified = match &self.verified {
            Verified::NoKey(reason) => json!({"done": false, "reason": reason}),
            Verified::Checked { valid, invalid } => {
                let invalid: Vec<_> = invalid.iter().map(|(n, why)| json!({"proof": n, "reason": why})).collect();
                json!({"done": true, "valid": valid, "invalid": invalid})
            }
        };
        json!({
            "circuit": self.circuit,
            "daemon": self.daemon,
            "version": self.version,
            "proofs": self.proofs.iter().map(proof).collect::<Vec<_>>(),
            "concurrency": self.concurrency,
            "inputs": self.inputs,
            "wall_s": self.wall_s,
            "seconds_a_proof": self.seconds_a_proof(),
            "first_proof_s": self.first_s,
            "latency_s": {"mean": mean, "p50": p50, "p90": p90, "p99": p99, "max": max},
            "busy_share": {"of_wall": self.busy.of_wall, "of_span": self.busy.of_span},
            "phases": self.phases.iter().map(phase).collect::<Vec<_>>(),
            "devices": self.devices.iter().map(device).collect::<Vec<_>>(),
            "partitions": {"proven": self.partitions[0], "timed": self.partitions[1]},
            "memory": {
                "host_peak_bytes": self.peaks.host,
                "host_limit_bytes": self.peaks.host_limit,
                "host_peak_bytes_by_use": uses,
                "devices": self.peaks.devices.iter().map(memory).collect::<Vec<_>>(),
            },
            "refusals": self.refusals,
            "verified": verified,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{report::tests::report, verify::Verified};

    #[test]
    fn json_has_the_same_figures() {
        let json = report(Verified::Checked { valid: 2, invalid: vec![] }).json();
        assert_eq!((&json["seconds_a_proof"], &json["latency_s"]["p99"]), (&json!(1.0), &json!(1.0)));
        assert_eq!(
            (&json["busy_share"]["of_wall"], &json["devices"][0]["waits"][0]["us"]),
            (&json!(0.25), &json!(100_000))
        );
        assert_eq!((&json["verified"]["valid"], &json["partitions"]["timed"]), (&json!(2), &json!(2)));
        assert_eq!(json["proofs"][1]["job_id"], "s-1");
    }
}
