//! A PoRep commit phase 2 request: checked once, then synthesized and verified partition by partition.
//!
//! * [`PorepTask`]: the request;
//! * `request`: what its claims and the C1 output must agree on;
//! * `sector`: its partitions;
//! * `shapes`: what is known of a circuit without any request;
//! * `upstream`: the circuit itself.

mod request;
mod sector;
mod shapes;
mod upstream;

use bellperson::{
    SynthesisError,
    groth16::{PreparedVerifyingKey, Proof, verify_proof},
};
use blstrs::{Bls12, Scalar};
use filecoin_proofs::constants::{
    SectorShape2KiB, SectorShape8MiB, SectorShape32GiB, SectorShape64GiB, SectorShape512MiB,
};

use crate::{
    assignment::Assignment,
    c1::{envelope, model},
    circuit::{CircuitId, SectorSize},
    compare::Difference,
    error::InputError,
    registered::SealProof,
    synthesis::Synthesis,
    witness::CompactWitness,
};
use request::{agree, check_commitments, check_names, check_replica_id};
use sector::{Partitions, Sector};

pub use request::prover_id;
pub(crate) use request::replica_id;
pub use shapes::{is_native, parameter_stem, path_of_constraint, record};

/// What the request says besides the C1 output; each must agree with what is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// In bytes.
    pub sector_size: u64,
    /// Number of the registered seal proof.
    pub registered_proof: u64,
    /// The sector's number.
    pub sector_number: u64,
    /// The miner's actor id.
    pub miner_id: u64,
}

/// A PoRep C2 that passed every check.
pub struct PorepTask {
    seal: SealProof,
    partitions: Box<dyn Partitions>,
}

/// A proof that could not even be verified.
#[derive(Debug, thiserror::Error)]
#[error("verification failed to run: {0}")]
pub struct VerifyError(String);

impl PorepTask {
    /// Parses and checks a C1 output, the vanilla proofs included. CPU only, parallel on the current rayon pool.
    ///
    /// # Errors
    /// [`InputError`] with the field and the reason in one line.
    pub fn check(payload: &[u8], claims: &Claims) -> Result<Self, InputError> {
        let seal = SealProof::from_number(claims.registered_proof).ok_or_else(|| {
            InputError::invalid("registered_proof", format!("{} is no seal proof (0 to 19)", claims.registered_proof))
        })?;
        seal.require_built()?;
        agree("sector_size", claims.sector_size, "registered_proof", seal.size.bytes())?;

        let unwrapped = envelope::unwrap(payload)?;
        if let Some(number) = unwrapped.sector_number {
            agree("sector_number", claims.sector_number, "the C1 output's SectorNum", number)?;
        }
        if let Some(size) = unwrapped.sector_size {
            agree("sector_size", claims.sector_size, "the C1 output's SectorSize", size)?;
        }
        let c1 = model::parse(&unwrapped.json)?;
        // Nearly as large as the payload, and of no more use.
        drop(unwrapped);
        check_names(&c1, &seal)?;
        check_commitments(&c1)?;
        check_replica_id(&c1, &seal, claims)?;

        let partitions = match seal.size {
            SectorSize::Kib2 => Sector::<SectorShape2KiB>::check(seal, c1)?,
            SectorSize::Mib8 => Sector::<SectorShape8MiB>::check(seal, c1)?,
            SectorSize::Mib512 => Sector::<SectorShape512MiB>::check(seal, c1)?,
            SectorSize::Gib32 => Sector::<SectorShape32GiB>::check(seal, c1)?,
            SectorSize::Gib64 => Sector::<SectorShape64GiB>::check(seal, c1)?,
        };
        Ok(Self { seal, partitions })
    }

    /// The registered seal proof.
    pub fn seal_proof(&self) -> SealProof {
        self.seal
    }

    /// The circuit that all partitions share.
    pub fn circuit(&self) -> CircuitId {
        self.seal.circuit()
    }

    /// Number of partitions, and of Groth16 proofs.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The witness of partition `k` with A·w and B·w, computed natively (see [`is_native`]), or else without them by the
    /// circuit's gadgets. Parallel on the current rayon pool.
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn synthesize(&self, k: usize) -> Result<Synthesis, SynthesisError> {
        self.partitions.synthesize(k)
    }

    /// The witness alone of [`Self::synthesize`].
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        self.synthesize(k).map(|synthesis| synthesis.witness)
    }

    /// The same witness, by the circuit's gadgets: what [`Self::witness`] is compared with.
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn witness_by_gadgets(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        self.partitions.witness_by_gadgets(k)
    }

    /// Compares what [`Self::synthesize`] makes of partition `k` with the circuit, value by value. Takes as long as the
    /// circuit's gadgets, and no memory but that of the synthesis.
    ///
    /// # Errors
    /// The first difference.
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn compare_with_circuit(&self, k: usize) -> Result<(), Difference> {
        self.partitions.compare(k)
    }

    /// Witness and constraint values of partition `k` in plain form: what [`Self::witness`] and the recorded matrices are
    /// compared with.
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError> {
        self.partitions.assignment(k)
    }

    /// Public inputs of partition `k`, without ONE, as a verifier derives them: from the commitments and the seed, not
    /// from the vanilla proofs.
    pub fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, VerifyError> {
        self.partitions.public_inputs(k)
    }

    /// Verifies the proof of partition `k`.
    pub fn verify_partition(
        &self,
        k: usize,
        key: &PreparedVerifyingKey<Bls12>,
        proof: &Proof<Bls12>,
    ) -> Result<bool, VerifyError> {
        verify_proof(key, proof, &self.public_inputs(k)?).map_err(|e| VerifyError(e.to_string()))
    }

    /// Verifies the whole result as a verifier on the network does (`filecoin_proofs::verify_seal`, with the verifying
    /// key handed in instead of looked up): number of partitions, required challenges, and all proofs as one batch.
    pub fn verify_seal(&self, key: &PreparedVerifyingKey<Bls12>, proof: &[u8]) -> Result<bool, VerifyError> {
        self.partitions.verify_seal(key, proof)
    }
}

impl std::fmt::Debug for PorepTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PorepTask").field("seal", &self.seal).field("partitions", &self.partitions()).finish()
    }
}
