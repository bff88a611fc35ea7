//! What the devices, parameter files and operator warnings looked like a moment ago, so that `GetStatus` never waits for
//! a driver or a disk.

use cuzk_synth::circuit::CircuitId;

use super::panics::caught;
use crate::proving::{DeviceInfo, PinnedMemory, Proving};

/// The port's slow-changing answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) devices: Vec<DeviceInfo>,
    pub(super) warnings: Vec<String>,
    pub(super) provable_circuits: Vec<CircuitId>,
    pub(super) pinned: PinnedMemory,
}

impl Facts {
    /// Asks the port. May block. An error says which question panicked.
    pub(super) fn gather<P: Proving>(proving: &P) -> Result<Self, String> {
        caught("asking for the state of the devices", || Self {
            devices: proving.devices(),
            warnings: proving.warnings(),
            provable_circuits: proving.provable_circuits(),
            pinned: proving.pinned_memory(),
        })
    }
}
