//! Whether the native witness is that of the circuit: decided by comparing, not by trusting version numbers.
//!
//! The circuit is a common part and then the same for every challenge, and nothing in its order of allocation depends on a
//! value. So one challenge tells: the first that a process synthesizes of a circuit is synthesized by the gadgets as well,
//! and every value compared. That costs half of a 2 KiB witness by gadgets (0.4 s), or an eighteenth of a 32 GiB one. If
//! they differ (because an upgrade of the upstream crates changed the circuit), all witnesses of that circuit are made by the
//! gadgets, at their speed.

use std::sync::OnceLock;

use bellpepper_core::SynthesisError;

use super::Generator;
use crate::{
    circuit::{CircuitId, SectorSize},
    witness::CompactWitness,
};

/// The generator of a circuit, if it agrees with the gadgets. On the first call for a circuit the generator is made, and
/// its witness compared with that by gadgets; both are given as functions, which must not wait for other threads, as
/// others wait for them here.
pub(crate) fn agreed(
    size: SectorSize,
    generator: impl FnOnce() -> Option<Generator>,
    native: impl FnOnce(&Generator) -> CompactWitness,
    gadgets: impl FnOnce() -> Result<CompactWitness, SynthesisError>,
) -> Option<&'static Generator> {
    static GENERATORS: [OnceLock<Option<Generator>>; SectorSize::ALL.len()] =
        [const { OnceLock::new() }; SectorSize::ALL.len()];
    GENERATORS[size as usize].get_or_init(|| compare(CircuitId::porep(size), generator()?, native, gadgets)).as_ref()
}

fn compare(
    circuit: CircuitId,
    generator: Generator,
    native: impl FnOnce(&Generator) -> CompactWitness,
    gadgets: impl FnOnce() -> Result<CompactWitness, SynthesisError>,
) -> Option<Generator> {
    let native = native(&generator);
    match gadgets() {
        Ok(gadgets) if gadgets == native => Some(generator),
        Ok(_) => {
            tracing::warn!(%circuit, "the native witness is not that of the circuit: witnesses are made by its gadgets, slowly");
            None
        }
        Err(error) => {
            tracing::warn!(%circuit, %error, "the native witness cannot be compared: witnesses are made by gadgets, slowly");
            None
        }
    }
}
