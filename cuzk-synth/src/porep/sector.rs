//! The partitions of a sector: their vanilla proofs, checked, and what is made of them.

use bellperson::{SynthesisError, groth16::PreparedVerifyingKey};
use blstrs::{Bls12, Scalar};
use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher, PoRepConfig, parameters::setup_params};
use storage_proofs_core::{
    compound_proof::{self, CompoundProof},
    drgraph::Graph,
    merkle::MerkleTreeTrait,
    multi_proof::MultiProof,
    proof::ProofScheme,
};
use storage_proofs_porep::stacked::{self, ChallengeRequirements, StackedCircuit, StackedDrg};
use typenum::Unsigned;

use super::{
    VerifyError,
    upstream::{Compound, PublicInputs, circuit, public_inputs},
};
use crate::{
    assignment::Assignment,
    c1::{
        model::{C1Output, ChallengeProof},
        shape::Shape,
        vanilla::Statement,
    },
    circuit::SectorSize,
    compare::{Difference, compare},
    error::InputError,
    native::{self, Commitments, Generator},
    registered::SealProof,
    synthesis::Synthesis,
    witness::CompactWitness,
};

/// The partitions of a sector, whatever its tree shape.
pub(super) trait Partitions: Send + Sync {
    fn len(&self) -> usize;
    fn synthesize(&self, k: usize) -> Result<Synthesis, SynthesisError>;
    fn witness_by_gadgets(&self, k: usize) -> Result<CompactWitness, SynthesisError>;
    fn compare(&self, k: usize) -> Result<(), Difference>;
    fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError>;
    fn public_inputs(&self, k: usize) -> Result<Vec<Scalar>, VerifyError>;
    fn verify_seal(&self, key: &PreparedVerifyingKey<Bls12>, proof: &[u8]) -> Result<bool, VerifyError>;
}

/// The partitions of a sector of one tree shape.
pub(super) struct Sector<Tree: MerkleTreeTrait + 'static> {
    size: SectorSize,
    config: PoRepConfig,
    commitments: Commitments,
    public: PublicInputs,
    params: stacked::PublicParams<Tree>,
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
        let params = setup::<Tree>(&config)?;
        let (key, partitions) = c1.vanilla_proofs.parts();
        let graph = &params.graph;
        shape(&config, &params).check(key, partitions)?;

        let commitments = Commitments { replica_id: c1.replica_id, comm_d: c1.comm_d, comm_r: c1.comm_r };
        let public = public_inputs(&commitments, Some(c1.seed));
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
            size: seal.size,
            config,
            commitments,
            public,
            params,
            challenges: c1.vanilla_proofs.into_partitions(),
        }))
    }
}

impl<Tree> Partitions for Sector<Tree>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    fn len(&self) -> usize {
        self.challenges.len()
    }

    fn synthesize(&self, k: usize) -> Result<Synthesis, SynthesisError> {
        match generator(self.size, &self.config, &self.params) {
            Some(generator) => Ok(generator.partition(&self.commitments, &self.challenges[k])),
            None => self.witness_by_gadgets(k).map(Synthesis::from),
        }
    }

    fn witness_by_gadgets(&self, k: usize) -> Result<CompactWitness, SynthesisError> {
        CompactWitness::of_circuit(circuit(&self.public, &self.params, &self.challenges[k])?)
    }

    fn compare(&self, k: usize) -> Result<(), Difference> {
        let synthesis = self.synthesize(k).map_err(|error| Difference::Circuit(error.to_string()))?;
        compare_with(synthesis, circuit(&self.public, &self.params, &self.challenges[k]))
    }

    fn assignment(&self, k: usize) -> Result<Assignment, SynthesisError> {
        Assignment::synthesize(circuit(&self.public, &self.params, &self.challenges[k])?)
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
        let requirements = ChallengeRequirements { minimum_challenges: self.config.minimum_challenges() };
        Compound::<Tree>::verify(&params, &self.public, &proof, &requirements)
            .map_err(|e| VerifyError(format!("{e:#}")))
    }
}

/// The graph of a sector size and its parameters.
pub(super) fn setup<Tree: MerkleTreeTrait + 'static>(
    config: &PoRepConfig,
) -> Result<stacked::PublicParams<Tree>, InputError> {
    let refused = |error: &dyn std::fmt::Display| InputError::invalid("registered_proof", error.to_string());
    let setup = setup_params(config).map_err(|e| refused(&e))?;
    StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup).map_err(|e| refused(&e))
}

fn shape<Tree: MerkleTreeTrait>(config: &PoRepConfig, params: &stacked::PublicParams<Tree>) -> Shape {
    let log_nodes = params.graph.size().trailing_zeros() as usize;
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
}

fn compare_with<Tree>(
    synthesis: Synthesis,
    circuit: Result<StackedCircuit<Tree, DefaultPieceHasher>, SynthesisError>,
) -> Result<(), Difference>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    compare(synthesis, circuit.map_err(|error| Difference::Circuit(error.to_string()))?)
}

/// The native generator of the circuit, if it agrees with the circuit's gadgets (see [`native::agreed`]).
pub(super) fn generator<Tree>(
    size: SectorSize,
    config: &PoRepConfig,
    params: &stacked::PublicParams<Tree>,
) -> Option<&'static Generator>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    native::agreed(size, &shape(config, params), |commitments, challenge, native| {
        let public = public_inputs(commitments, None);
        compare_with(native, circuit(&public, params, std::slice::from_ref(challenge)))
    })
}
