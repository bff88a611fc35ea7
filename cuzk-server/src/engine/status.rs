//! The picture that `GetStatus` shows.

use std::time::Duration;

use cuzk_synth::circuit::{CircuitId, CircuitKind};

use super::{Lifecycle, facts::Facts, ids::JobIds};
use crate::{
    core::CoreStatus,
    proving::{DeviceInfo, PinnedMemory},
};

/// A point-in-time picture of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// Starting, serving or draining.
    pub lifecycle: Lifecycle,
    /// Every device and what it works for.
    pub devices: Vec<DeviceStatus>,
    /// Parameters in memory: circuit, bytes, running jobs that hold them.
    pub params: Vec<(CircuitId, u64, u32)>,
    /// By kind: jobs waiting for their first synthesis, and jobs after it. Together: the unfinished jobs.
    pub queues: Vec<(CircuitKind, u32, u32)>,
    /// Jobs completed since the start.
    pub completed: u64,
    /// Jobs failed since the start.
    pub failed: u64,
    /// Since the start.
    pub uptime: Duration,
    /// Page-locked memory.
    pub pinned: PinnedMemory,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// Circuits whose parameters are present and may be used.
    pub provable_circuits: Vec<CircuitId>,
}

/// A device and what it works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The device.
    pub info: DeviceInfo,
    /// The id of the job it has worked for longest, or empty.
    pub job_id: String,
    /// That job's kind, unless the job has been stopped meanwhile.
    pub kind: Option<CircuitKind>,
}

/// Puts the picture together.
pub(super) fn compose(
    core: CoreStatus,
    facts: &Facts,
    lifecycle: Lifecycle,
    uptime: Duration,
    ids: &JobIds,
) -> EngineStatus {
    let devices = facts.devices.iter().zip(core.device_jobs.iter()).map(|(info, job)| DeviceStatus {
        info: info.clone(),
        job_id: job.map(|(key, _)| ids.text(key)).unwrap_or_default(),
        kind: job.and_then(|(_, kind)| kind),
    });
    let mut warnings = facts.warnings.clone();
    if let Lifecycle::Starting(what) = &lifecycle {
        warnings.push(format!("starting: {what}"));
    }
    warnings.extend(core.loading.iter().map(|circuit| format!("the parameters of {circuit} are being loaded")));
    warnings.extend(core.stalled);
    warnings.extend(core.fenced);
    EngineStatus {
        devices: devices.collect(),
        params: core.params,
        queues: core.queues,
        completed: core.completed,
        failed: core.failed,
        uptime,
        pinned: facts.pinned,
        warnings,
        provable_circuits: facts.provable_circuits.clone(),
        lifecycle,
    }
}
