//! The 2 KiB circuit as the upstream library builds it, for its own prover and generator.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bellperson::groth16::{self, Parameters};
use blstrs::{Bls12, G1Projective, G2Projective};
use cuzk_gpu::generate::Trapdoor;
use cuzk_synth::{c1::envelope, registered::SealProof, sample::Sample};
use filecoin_proofs::{DefaultPieceHasher, constants::SectorShape2KiB, parameters::setup_params};
use group::Group;
use serde::Deserialize;
use storage_proofs_core::{compound_proof::CompoundProof, proof::ProofScheme};
use storage_proofs_porep::stacked::{self, StackedCircuit, StackedCompound, StackedDrg};

type Tree = SectorShape2KiB;
type Compound = StackedCompound<Tree, DefaultPieceHasher>;
type Circuit = StackedCircuit<Tree, DefaultPieceHasher>;

/// A C1 output in the upstream library's own types.
#[derive(Deserialize)]
pub(crate) struct Output {
    vanilla_proofs: BTreeMap<String, Vec<Vec<stacked::Proof<Tree, DefaultPieceHasher>>>>,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: [u8; 32],
    seed: [u8; 32],
}

impl Output {
    /// The replica commitment.
    pub(crate) fn comm_r(&self) -> &[u8; 32] {
        &self.comm_r
    }
}

/// Reads a sample as the upstream library does.
pub(crate) fn parse(sample: &Sample) -> Result<Output> {
    let json = envelope::unwrap(sample.c1)?.json;
    Ok(serde_json::from_slice(&json)?)
}

/// The circuit of a 2 KiB sample, with its values.
pub(crate) fn circuit(sample: &Sample) -> Result<Circuit> {
    let output = parse(sample)?;
    let public = stacked::PublicInputs {
        replica_id: output.replica_id.into(),
        tau: Some(stacked::Tau { comm_d: output.comm_d.into(), comm_r: output.comm_r.into() }),
        k: None,
        seed: Some(output.seed),
    };
    let proofs = output.vanilla_proofs.values().next().context("no vanilla proofs")?;
    let params = public_params(sample)?;
    Compound::circuit(&public, (), &proofs[0], &params, Some(0))
}

/// bellperson's own generator on the blank 2 KiB circuit.
pub(crate) fn generate(sample: &Sample, trapdoor: &Trapdoor) -> Result<Parameters<Bls12>> {
    Ok(groth16::generate_parameters(
        Compound::blank_circuit(&public_params(sample)?),
        G1Projective::generator(),
        G2Projective::generator(),
        trapdoor.alpha,
        trapdoor.beta,
        trapdoor.gamma,
        trapdoor.delta,
        trapdoor.tau,
    )?)
}

fn public_params(sample: &Sample) -> Result<stacked::PublicParams<Tree>> {
    let seal = SealProof::from_number(sample.claims.registered_proof).context("no such seal proof")?;
    let setup = setup_params(&seal.upstream().as_v1_config())?;
    StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup)
}
