//! What provings that only pretend have in common.

use cuzk_server::{DeviceInfo, ParamsSize};
use cuzk_synth::circuit::{CircuitId, SectorSize};

/// Bytes of whatever has a size.
pub(crate) const BYTES: u64 = 1 << 20;

/// The one circuit whose parameters are there.
pub(crate) const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);

/// Parameters of no content.
pub(crate) const PARAMS: ((), ParamsSize) = ((), ParamsSize { bytes: BYTES, host_bytes: BYTES });

/// The one device; without `workers`, the configuration says how many it has.
pub(crate) fn devices(workers: Option<usize>) -> Vec<DeviceInfo> {
    vec![DeviceInfo {
        id: "pretender".into(),
        ordinal: 0,
        name: "Pretender".into(),
        pci: String::new(),
        memory_total_bytes: 1 << 30,
        memory_free_bytes: 1 << 30,
        workers,
        express: false,
        fallback: false,
    }]
}
