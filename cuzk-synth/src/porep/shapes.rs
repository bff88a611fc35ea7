//! What is known of a circuit without any request: its name in the parameter list, its constraints.

use filecoin_proofs::{
    DefaultPieceHasher, DefaultTreeHasher, PoRepConfig,
    constants::{SectorShape2KiB, SectorShape8MiB, SectorShape32GiB, SectorShape64GiB, SectorShape512MiB},
};
use storage_proofs_core::{api_version::ApiVersion, compound_proof::CompoundProof, merkle::MerkleTreeTrait};
use storage_proofs_porep::stacked::{PublicParams, StackedCircuit};

use super::{
    sector::{generator, setup},
    upstream::Compound,
};
use crate::{
    circuit::{CircuitId, CircuitKind, SectorSize},
    error::InputError,
    path::constraint_path,
    r1cs::{R1cs, RecordError},
};

/// Name of the parameter files of a circuit, without extension, as the upstream library and the network's parameter
/// list have it.
///
/// # Errors
/// For circuits that are not built.
pub fn parameter_stem(circuit: CircuitId) -> Result<String, InputError> {
    struct Stem;
    impl ForShape for Stem {
        type Output = String;
        fn run<Tree: TreeShape>(self, config: &PoRepConfig) -> String {
            config.get_cache_identifier::<Tree>().expect("the setup of a built sector size is known")
        }
    }
    for_shape(circuit, Stem)
}

/// Records the constraint system of a circuit.
///
/// # Errors
/// For circuits that are not built, outside; for circuits that cannot be recorded, inside.
pub fn record(circuit: CircuitId) -> Result<Result<R1cs, RecordError>, InputError> {
    struct Record;
    impl ForShape for Record {
        type Output = Result<R1cs, RecordError>;
        fn run<Tree: TreeShape>(self, config: &PoRepConfig) -> Self::Output {
            R1cs::record(blank::<Tree>(config))
        }
    }
    for_shape(circuit, Record)
}

/// Where constraint `index` of a circuit comes from (see [`constraint_path`]). Takes as long as a synthesis.
///
/// # Errors
/// For circuits that are not built.
pub fn path_of_constraint(circuit: CircuitId, index: usize) -> Result<Option<String>, InputError> {
    struct Find(usize);
    impl ForShape for Find {
        type Output = Option<String>;
        fn run<Tree: TreeShape>(self, config: &PoRepConfig) -> Self::Output {
            constraint_path(blank::<Tree>(config), self.0)
        }
    }
    for_shape(circuit, Find(index))
}

/// Whether witnesses of a circuit are computed natively. They are not if the native witness differs from the circuit's,
/// after an upgrade of the upstream crates; a warning is then in the log. The two are compared once in a process, on the
/// first call or for the first witness (0.4 s for 2 KiB, 1.6 s for 32 GiB).
///
/// # Errors
/// For circuits that are not built.
pub fn is_native(circuit: CircuitId) -> Result<bool, InputError> {
    struct IsNative(SectorSize);
    impl ForShape for IsNative {
        type Output = bool;
        fn run<Tree: TreeShape>(self, config: &PoRepConfig) -> bool {
            generator(self.0, config, &known_setup::<Tree>(config)).is_some()
        }
    }
    for_shape(circuit, IsNative(circuit.size))
}

fn blank<Tree: TreeShape>(config: &PoRepConfig) -> StackedCircuit<Tree, DefaultPieceHasher> {
    Compound::<Tree>::blank_circuit(&known_setup(config))
}

fn known_setup<Tree: TreeShape>(config: &PoRepConfig) -> PublicParams<Tree> {
    setup(config).expect("the setup of a built sector size is known")
}

/// The trees of the network.
trait TreeShape: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static {}

impl<Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static> TreeShape for Tree {}

/// A function of the tree shape that belongs to a circuit.
trait ForShape {
    type Output;
    fn run<Tree: TreeShape>(self, config: &PoRepConfig) -> Self::Output;
}

fn for_shape<F: ForShape>(circuit: CircuitId, f: F) -> Result<F::Output, InputError> {
    if circuit.kind != CircuitKind::Porep {
        return Err(InputError::Unimplemented(format!("circuit {circuit}: only PoRep circuits are built")));
    }
    // The circuit is the same for all variants; any of them names it.
    let config = PoRepConfig::new_groth16(circuit.size.bytes(), [0; 32], ApiVersion::V1_1_0);
    Ok(match circuit.size {
        SectorSize::Kib2 => f.run::<SectorShape2KiB>(&config),
        SectorSize::Mib8 => f.run::<SectorShape8MiB>(&config),
        SectorSize::Mib512 => f.run::<SectorShape512MiB>(&config),
        SectorSize::Gib32 => f.run::<SectorShape32GiB>(&config),
        SectorSize::Gib64 => f.run::<SectorShape64GiB>(&config),
    })
}
