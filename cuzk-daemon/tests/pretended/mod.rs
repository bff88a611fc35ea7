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

/// The methods of [`cuzk_server::Proving`] that all of them have alike: one circuit, whose parameters are there. To stand in
/// the implementation, with its type of task; `type Params` is `()`.
macro_rules! one_circuit {
    ($Task:ty) => {
        fn circuit(&self, _: &$Task) -> cuzk_synth::circuit::CircuitId {
            $crate::pretended::CIRCUIT
        }

        fn partition_bytes(&self, _: &$Task) -> u64 {
            $crate::pretended::BYTES
        }

        fn params_available(&self, _: cuzk_synth::circuit::CircuitId) -> Result<(), cuzk_server::Refusal> {
            Ok(())
        }

        fn provable_circuits(&self) -> Vec<cuzk_synth::circuit::CircuitId> {
            vec![$crate::pretended::CIRCUIT]
        }

        fn params_bytes(&self, _: cuzk_synth::circuit::CircuitId) -> u64 {
            $crate::pretended::BYTES
        }

        fn load_params(
            &self,
            _: cuzk_synth::circuit::CircuitId,
            _: &cuzk_server::Load,
        ) -> Result<((), cuzk_server::ParamsSize), String> {
            Ok($crate::pretended::PARAMS)
        }
    };
}

pub(crate) use one_circuit;
