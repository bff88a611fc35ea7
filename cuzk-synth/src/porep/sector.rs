//! The partitions of a sector, in the upstream circuit's terms.

use bellperson::{SynthesisError, groth16::PreparedVerifyingKey};
use blstrs::{Bls12, Scalar};
use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_proofs::{DefaultPieceDomain, DefaultPieceHasher, DefaultTreeHasher, parameters::setup_params};
use storage_proofs_core::{
    compound_proof::{self, CompoundProof},
    drgraph::Graph,
    merkle::MerkleTreeTrait,
    multi_proof::MultiProof,
    proof::ProofScheme,
};
use storage_proofs_porep::stacked::{self, ChallengeRequirements, StackedCircuit, StackedCompound, StackedDrg};
use typenum::Unsigned;

use super::{VerifyError, upstream::vanilla_proof};
use crate::{
    assignment::Assignment,
    c1::{
        model::{C1Output, ChallengeProof},
        shape::Shape,
        vanilla::Statement,
    },
    circuit::SectorSize,
    error::InputError,
    native::{self, Commitments, Generator},
    registered::SealProof,
    witness::CompactWitness,
};

pub(super) type Compound<Tree> = StackedCompound<Tree, DefaultPieceHasher>;
type PublicInputs = stacked::PublicInputs<PoseidonDomain, DefaultPieceDomain>;

/// The partitions of a sector, whatever its tree shape.
pub(super) trait Partitions: Send + Sync {
    fn len(&self) -> usize;
    fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError>;
    fn witness_by_gadgets(&self, k: usize) -> Result<CompactWitness, SynthesisError>;
    fn is_native(&self) -> bool;
    fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError>;
    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, VerifyError>;
    fn verify_seal(&self, key: &PreparedVerifyingKey<Bls12>, proof: &[u8]) -> Result<bool, VerifyError>;
}

/// The partitions of a sector of one tree shape, in the upstream circuit's terms.
pub(super) struct Sector<Tree: MerkleTreeTrait + 'static> {
    minimum_challenges: usize,
    public: PublicInputs,
    params: stacked::PublicParams<Tree>,
    shape: Shape,
    size: SectorSize,
    commitments: Commitments,
    /// One list a partition.
    challenges: Vec<Vec<ChallengeProof>>,
}

impl<Tree> Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    /// Checks the vanilla proofs.
    pub(super) fn check(seal: SealProof, c1: C1Output) -> Result<Box<dyn Partitions>, InputError> {
        let config = seal.upstream().as_v1_config();
        let setup = setup_params(&config).map_err(upstream_refused)?;
        let params = StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup).map_err(upstream_refused)?;
        let (key, partitions) = c1.vanilla_proofs.parts();
        let graph = &params.graph;
        let log_nodes = graph.size().trailing_zeros() as usize;
        let shape = Shape {
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
        };
        shape.check(key, partitions)?;

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

        Ok(Box::new(Self {
            minimum_challenges: config.minimum_challenges(),
            public,
            shape,
            size: seal.size,
            commitments: Commitments { replica_id: c1.replica_id, comm_d: c1.comm_d, comm_r: c1.comm_r },
            challenges: c1.vanilla_proofs.into_partitions(),
            params,
        }))
    }
}

impl<Tree> Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    fn circuit(&self, k: usize) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, SynthesisError> {
        self.circuit_of(&self.challenges[k])
    }

    /// The native generator, if it agrees with the circuit's gadgets on the first challenge of all.
    fn generator(&self) -> Option<&'static Generator> {
        native::agreed(
            self.size,
            || Generator::new(self.shape.clone()),
            |generator| generator.partition_alone(&self.commitments, &self.challenges[0][..1]),
            || CompactWitness::of_circuit(self.circuit_of(&self.challenges[0][..1])?),
        )
    }

    /// The circuit with these challenges, which may be fewer than those of a partition.
    fn circuit_of(
        &self,
        challenges: &[ChallengeProof],
    ) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, SynthesisError> {
        let proofs = challenges.iter().map(vanilla_proof).collect();
        // It fails for partitions without proofs or with different roots only, which the checks let none pass.
        Compound::circuit(&self.public, (), &proofs, &self.params, None).map_err(|_| SynthesisError::AssignmentMissing)
    }
}

impl<Tree> Partitions for Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    fn len(&self) -> usize {
        self.challenges.len()
    }

    fn witness(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        match self.generator() {
            Some(generator) => Ok(generator.partition(&self.commitments, &self.challenges[k])),
            None => self.witness_by_gadgets(k),
        }
    }

    fn is_native(&self) -> bool {
        self.generator().is_some()
    }

    fn witness_by_gadgets(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
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
