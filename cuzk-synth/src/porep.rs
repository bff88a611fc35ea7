//! A PoRep commit phase 2 request: checked once, then synthesized and verified partition by partition.

use std::collections::BTreeMap;

use bellperson::{
    SynthesisError,
    groth16::{PreparedVerifyingKey, Proof, verify_proof},
};
use blstrs::{Bls12, Scalar};
use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_proofs::{
    DefaultPieceDomain, DefaultPieceHasher, DefaultTreeHasher, PoRepConfig,
    constants::{SectorShape2KiB, SectorShape8MiB, SectorShape32GiB, SectorShape64GiB, SectorShape512MiB},
    parameters::setup_params,
};
use serde::{Deserialize, de::DeserializeOwned};
use storage_proofs_core::{
    api_version::ApiVersion,
    compound_proof::{self, CompoundProof},
    drgraph::Graph,
    merkle::MerkleTreeTrait,
    multi_proof::MultiProof,
    proof::ProofScheme,
};
use storage_proofs_porep::stacked::{
    self, ChallengeRequirements, StackedCircuit, StackedCompound, StackedDrg, generate_replica_id,
};
use typenum::Unsigned;

use crate::{
    assignment::Assignment,
    c1::{
        envelope,
        model::{self, C1Output, Node},
        shape::{self, Shape},
        vanilla::Statement,
    },
    circuit::{CircuitId, CircuitKind, SectorSize},
    error::InputError,
    path::constraint_path,
    r1cs::{R1cs, RecordError},
    registered::SealProof,
    witness::CompactWitness,
};

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

/// The 32-byte prover id of a miner: the unsigned LEB128 form of its actor id, zero-padded.
pub fn prover_id(miner_id: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = miner_id;
    for byte in &mut id {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    id
}

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
        check_names(&c1, &seal)?;
        check_commitments(&c1)?;
        check_replica_id(&c1, &seal, claims)?;

        let partitions = match seal.size {
            SectorSize::Kib2 => Sector::<SectorShape2KiB>::check(seal, &c1, &unwrapped.json)?,
            SectorSize::Mib8 => Sector::<SectorShape8MiB>::check(seal, &c1, &unwrapped.json)?,
            SectorSize::Mib512 => Sector::<SectorShape512MiB>::check(seal, &c1, &unwrapped.json)?,
            SectorSize::Gib32 => Sector::<SectorShape32GiB>::check(seal, &c1, &unwrapped.json)?,
            SectorSize::Gib64 => Sector::<SectorShape64GiB>::check(seal, &c1, &unwrapped.json)?,
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

    /// The witness of partition `k`.
    ///
    /// # Panics
    /// If there is no partition `k`.
    pub fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        self.partitions.witness(k)
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

/// Name of the parameter files of a circuit, without extension, as the upstream library and the network's parameter
/// list have it.
///
/// # Errors
/// For circuits that are not built.
pub fn parameter_stem(circuit: CircuitId) -> Result<String, InputError> {
    struct Stem;
    impl ForShape for Stem {
        type Output = String;
        fn run<Tree: MerkleTreeTrait + 'static>(self, config: &PoRepConfig) -> String {
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
        fn run<Tree: MerkleTreeTrait + 'static>(self, config: &PoRepConfig) -> Self::Output {
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
        fn run<Tree: MerkleTreeTrait + 'static>(self, config: &PoRepConfig) -> Self::Output {
            constraint_path(blank::<Tree>(config), self.0)
        }
    }
    for_shape(circuit, Find(index))
}

fn blank<Tree: MerkleTreeTrait + 'static>(config: &PoRepConfig) -> StackedCircuit<Tree, DefaultPieceHasher> {
    let setup = setup_params(config).expect("the setup of a built sector size is known");
    let params =
        StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup).expect("the graph of a built sector size is known");
    Compound::<Tree>::blank_circuit(&params)
}

type Compound<Tree> = StackedCompound<Tree, DefaultPieceHasher>;
type PublicInputs = stacked::PublicInputs<PoseidonDomain, DefaultPieceDomain>;
type VanillaProof<Tree> = stacked::Proof<Tree, DefaultPieceHasher>;

/// A function of the tree shape that belongs to a circuit.
trait ForShape {
    type Output;
    fn run<Tree: MerkleTreeTrait + 'static>(self, config: &PoRepConfig) -> Self::Output;
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

fn agree(field: &str, claimed: u64, other: &str, found: u64) -> Result<(), InputError> {
    if claimed == found {
        Ok(())
    } else {
        Err(InputError::invalid(field, format!("is {claimed}, but {other} says {found}")))
    }
}

fn check_names(c1: &C1Output, seal: &SealProof) -> Result<(), InputError> {
    if c1.registered_proof != seal.name() {
        let number =
            SealProof::from_name(&c1.registered_proof).map_or("unknown".to_owned(), |proof| proof.number.to_string());
        return Err(InputError::invalid(
            "registered_proof",
            format!("is {} ({}), but the C1 output says {number} ({})", seal.number, seal.name(), c1.registered_proof),
        ));
    }
    let size_name = SealProof::from_number(seal.number % 5).expect("the first five are the sizes' V1 proofs").name();
    let (key, _) = c1.vanilla_proofs.parts();
    if key != size_name {
        return Err(InputError::invalid(
            "vanilla_proofs",
            format!("is for {key}, but the registered proof asks for {size_name}"),
        ));
    }
    Ok(())
}

fn check_commitments(c1: &C1Output) -> Result<(), InputError> {
    for (field, node) in [("comm_r", &c1.comm_r), ("comm_d", &c1.comm_d), ("seed", &c1.seed)] {
        if node.0 == [0; 32] {
            return Err(InputError::invalid(field, "is all zeros"));
        }
    }
    for (field, node) in [("comm_r", &c1.comm_r), ("comm_d", &c1.comm_d), ("replica_id", &c1.replica_id)] {
        if !shape::is_field_element(node) {
            return Err(InputError::invalid(field, format!("{node:?} (little-endian) is not below the field modulus")));
        }
    }
    Ok(())
}

fn check_replica_id(c1: &C1Output, seal: &SealProof, claims: &Claims) -> Result<(), InputError> {
    let config = seal.upstream().as_v1_config();
    let expected = generate_replica_id::<DefaultTreeHasher, _>(
        &prover_id(claims.miner_id),
        claims.sector_number,
        &c1.ticket.0,
        c1.comm_d.0,
        &config.porep_id,
    );
    let expected: [u8; 32] = expected.into();
    if expected == c1.replica_id.0 {
        Ok(())
    } else {
        Err(InputError::invalid(
            "replica_id",
            format!(
                "the C1 output is not of sector {} of miner {}: its replica id is {:?}, \
                 theirs with its ticket and comm_d would be {:?}",
                claims.sector_number,
                claims.miner_id,
                c1.replica_id,
                Node(expected)
            ),
        ))
    }
}

/// The partitions of a sector, whatever its tree shape.
trait Partitions: Send + Sync {
    fn len(&self) -> usize;
    fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError>;
    fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError>;
    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, VerifyError>;
    fn verify_seal(&self, key: &PreparedVerifyingKey<Bls12>, proof: &[u8]) -> Result<bool, VerifyError>;
}

/// The partitions of a sector of one tree shape, in the upstream circuit's terms.
struct Sector<Tree: MerkleTreeTrait + 'static> {
    minimum_challenges: usize,
    public: PublicInputs,
    params: stacked::PublicParams<Tree>,
    proofs: Vec<Vec<VanillaProof<Tree>>>,
}

impl<Tree> Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
    VanillaProof<Tree>: DeserializeOwned,
{
    /// Checks the vanilla proofs, then reads them again in the upstream circuit's types.
    fn check(seal: SealProof, c1: &C1Output, json: &[u8]) -> Result<Box<dyn Partitions>, InputError> {
        let config = seal.upstream().as_v1_config();
        let setup = setup_params(&config).map_err(upstream_refused)?;
        let params = StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup).map_err(upstream_refused)?;
        let (key, partitions) = c1.vanilla_proofs.parts();
        let graph = &params.graph;
        let log_nodes = graph.size().trailing_zeros() as usize;
        Shape {
            partitions: usize::from(config.partitions),
            challenges: params.challenges.num_challenges_per_partition(),
            layers: params.num_layers,
            log_nodes,
            oct_tree: Shape::oct_tree(
                log_nodes,
                Tree::Arity::to_usize(),
                Tree::SubTreeArity::to_usize(),
                Tree::TopTreeArity::to_usize(),
            ),
        }
        .check(key, partitions)?;

        let public = PublicInputs {
            replica_id: c1.replica_id.0.into(),
            tau: Some(stacked::Tau { comm_d: c1.comm_d.0.into(), comm_r: c1.comm_r.0.into() }),
            k: None,
            seed: Some(c1.seed.0),
        };
        Statement {
            comm_r: c1.comm_r,
            comm_d: c1.comm_d,
            replica_id: c1.replica_id,
            challenges: (0..partitions.len())
                .map(|k| public.challenges(&params.challenges, graph.size(), Some(k)))
                .collect(),
            parents: &|node| {
                let mut parents = vec![0; graph.degree()];
                graph.parents(node, &mut parents).expect("challenges are nodes of the graph");
                parents
            },
        }
        .verify(partitions)?;

        let output: UpstreamOutput<VanillaProof<Tree>> =
            serde_json::from_slice(json).map_err(|e| InputError::invalid("vanilla_proof.Phase1Out", e.to_string()))?;
        let proofs = output.vanilla_proofs.into_values().next();
        Ok(Box::new(Self {
            minimum_challenges: config.minimum_challenges(),
            public,
            proofs: proofs.expect("the same JSON was read with its one key before"),
            params,
        }))
    }
}

impl<Tree> Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    fn circuit(&self, k: usize) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, SynthesisError> {
        // It fails for partitions without proofs or with different roots only, which the checks let none pass.
        Compound::circuit(&self.public, (), &self.proofs[k], &self.params, Some(k))
            .map_err(|_| SynthesisError::AssignmentMissing)
    }
}

/// The part of the C1 output that becomes the circuit's private inputs, in the upstream types.
#[derive(Deserialize)]
struct UpstreamOutput<Proof> {
    /// One entry, keyed by sector size.
    vanilla_proofs: BTreeMap<String, Vec<Vec<Proof>>>,
}

impl<Tree> Partitions for Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    fn len(&self) -> usize {
        self.proofs.len()
    }

    fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        CompactWitness::of_circuit(self.circuit(k)?)
    }

    fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError> {
        Assignment::synthesize(self.circuit(k)?)
    }

    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, VerifyError> {
        Compound::<Tree>::generate_public_inputs(&self.public, &self.params, Some(k))
            .map_err(|e| VerifyError(format!("{e:#}")))
    }

    fn verify_seal(&self, key: &PreparedVerifyingKey<Bls12>, proof: &[u8]) -> Result<bool, VerifyError> {
        let proof =
            MultiProof::new_from_reader(Some(self.len()), proof, key).map_err(|e| VerifyError(format!("{e:#}")))?;
        let params = compound_proof::PublicParams {
            vanilla_params: self.params.clone(),
            partitions: Some(self.len()),
            priority: false,
        };
        let requirements = ChallengeRequirements { minimum_challenges: self.minimum_challenges };
        Compound::<Tree>::verify(&params, &self.public, &proof, &requirements)
            .map_err(|e| VerifyError(format!("{e:#}")))
    }
}

fn upstream_refused(error: impl std::fmt::Display) -> InputError {
    InputError::invalid("registered_proof", error.to_string())
}
