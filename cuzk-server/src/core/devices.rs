//! The devices as the core sees them: which circuits they take, and whether they are well.
//!
//! A device that is sick gets no work. It is revived after a while; each time that fails, the pause doubles.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use cuzk_synth::circuit::CircuitId;

use super::{Core, Effect};

/// What does not change about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// What clients and logs call it.
    pub id: String,
    /// Partitions given to it at once.
    pub workers: usize,
    /// Whether it takes one more that is CRITICAL, which then waits for one running partition at most.
    pub express: bool,
    /// Whether it takes a partition only if every other device is sick or has failed on it.
    pub fallback: bool,
    /// The only circuits it takes; `None`: all.
    pub circuits: Option<BTreeSet<CircuitId>>,
}

/// Why and since when a device gets no work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Since when.
    pub since: Instant,
    /// Why.
    pub reason: String,
    /// When it will be tried to revive it; `None` while that is under way.
    pub revive_at: Option<Instant>,
    /// How often that has failed.
    pub failures: u32,
}

/// One device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) spec: DeviceSpec,
    pub(super) fence: Option<Fence>,
    /// Proofs that did not verify, since the last that did.
    bad_proofs: u32,
    /// The circuit it proved last.
    pub(super) last_circuit: Option<CircuitId>,
}

/// A device gets no work after so many bad proofs in a row: one may be a flipped bit, two are none.
const BAD_PROOFS: u32 = 2;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30 * 60);

impl Device {
    pub(super) fn new(spec: DeviceSpec) -> Self {
        Self { spec, fence: None, bad_proofs: 0, last_circuit: None }
    }

    /// Whether it takes partitions of a circuit, sick or well.
    pub(super) fn serves(&self, circuit: CircuitId) -> bool {
        self.spec.circuits.as_ref().is_none_or(|circuits| circuits.contains(&circuit))
    }

    pub(super) fn is_available(&self, circuit: CircuitId) -> bool {
        self.fence.is_none() && self.serves(circuit)
    }
}

impl Core {
    /// Gives a device no more work, until it is revived.
    pub(super) fn fence(&mut self, device: usize, reason: &str, now: Instant) {
        let fence = &mut self.devices[device].fence;
        if fence.is_none() {
            *fence = Some(Fence {
                since: now,
                reason: reason.to_owned(),
                revive_at: now.checked_add(FIRST_PAUSE),
                failures: 0,
            });
            self.metrics.fenced(device);
            self.effects.push(Effect::Fenced { device, reason: reason.to_owned() });
        }
    }

    /// Somebody tried to revive a device.
    pub fn handle_revived(&mut self, device: usize, result: Result<(), String>, now: Instant) {
        let state = &mut self.devices[device];
        let Some(fence) = &mut state.fence else { return };
        match result {
            Ok(()) => {
                let out_for = now.saturating_duration_since(fence.since);
                state.fence = None;
                state.bad_proofs = 0;
                self.metrics.revived(device);
                self.effects.push(Effect::Revived { device, out_for });
            }
            Err(reason) => {
                fence.failures += 1;
                fence.reason = reason;
                let pause = FIRST_PAUSE.saturating_mul(1 << fence.failures.min(16)).min(LONGEST_PAUSE);
                fence.revive_at = now.checked_add(pause);
            }
        }
    }

    /// Why a device gets no work, if so.
    pub fn fence_of(&self, device: usize) -> Option<&Fence> {
        self.devices[device].fence.as_ref()
    }

    /// Whether any device can take a circuit's partitions at this time.
    pub(super) fn is_available(&self, circuit: CircuitId) -> bool {
        self.devices.iter().any(|device| device.is_available(circuit))
    }

    /// Whether a device may prove a partition that some devices have failed on: it is another one, or there is none, and
    /// it stands in for others only if there is none either.
    pub(super) fn may_try(&self, device: usize, circuit: CircuitId, tried: &BTreeSet<usize>) -> bool {
        let fresh = |d: &usize| self.devices[*d].is_available(circuit) && !tried.contains(d);
        let mut others = (0..self.devices.len()).filter(fresh);
        if self.devices[device].spec.fallback {
            return !others.any(|d| !self.devices[d].spec.fallback);
        }
        !tried.contains(&device) || others.next().is_none()
    }

    pub(super) fn note_bad_proof(&mut self, device: usize, now: Instant) {
        self.devices[device].bad_proofs += 1;
        if self.devices[device].bad_proofs >= BAD_PROOFS {
            self.fence(device, "its proofs do not verify", now);
        }
    }

    pub(super) fn note_good_proof(&mut self, device: usize, circuit: CircuitId) {
        self.devices[device].bad_proofs = 0;
        self.devices[device].last_circuit = Some(circuit);
    }

    /// Asks for the revival of the devices whose time has come.
    pub(super) fn revive_due(&mut self, now: Instant) {
        for (device, state) in self.devices.iter_mut().enumerate() {
            if let Some(fence) = &mut state.fence
                && fence.revive_at.is_some_and(|at| at <= now)
            {
                fence.revive_at = None;
                self.effects.push(Effect::Revive(device));
            }
        }
    }

    pub(super) fn next_revival(&self) -> Option<Instant> {
        self.devices.iter().filter_map(|device| device.fence.as_ref()?.revive_at).min()
    }
}
