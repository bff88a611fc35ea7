//! The phases of a proof, the whole of it, and its verification, on a toy circuit.

use std::sync::OnceLock;

use anyhow::Result;
use bellperson::groth16::{self, Parameters, Proof, verify_proof};
use blstrs::{Bls12, Scalar};
use cuzk_gpu::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    device::Device,
    prover::{Backend, Blinding, KernelSums, Partition, epilogue},
    srs::Srs,
    timing::Timings,
};
use ff::Field;
use rand::{SeedableRng, rngs::StdRng};

use super::{Calibration, Candidates, Operation, Tier, name, power, toy::Toy};

/// A proof of 2^13 rows takes long enough to be measured and a moment to be set up.
const LOG_N: u32 = 13;

pub(super) fn add(operations: &mut Vec<Operation>) {
    use Calibration::{AllThreads, OneThread};
    let mut add = |room, calibration, prepare: fn(&mut Candidates) -> Result<()>| {
        operations.push(Operation::new([room, "toy"], power(LOG_N), Tier::Ci, calibration, prepare));
    };
    add("groth16_stage", AllThreads, stage);
    add("groth16_kernels", AllThreads, kernels);
    add("groth16_b_g2", AllThreads, b_g2);
    add("groth16_epilogue", OneThread, finish);
    add("prove", AllThreads, prove);
    add("verify", OneThread, verify);
}

/// The toy with bellperson's parameters and proof.
struct Reference {
    toy: Toy,
    parameters: Parameters<Bls12>,
    blinding: Blinding,
    proof: Proof<Bls12>,
    inputs: Vec<Scalar>,
    partition: Partition,
    /// One for each arithmetic of this machine.
    settings: Vec<Setting>,
}

/// A backend with the parameters in its form.
struct Setting {
    arithmetic: Arithmetic,
    cpu: Cpu,
    srs: Srs,
}

impl Reference {
    fn get() -> Result<&'static Self> {
        static REFERENCE: OnceLock<Reference> = OnceLock::new();
        if let Some(reference) = REFERENCE.get() {
            return Ok(reference);
        }
        let toy = Toy::new(LOG_N);
        let (parameters, partition) = (toy.parameters()?, toy.partition()?);
        let blinding = Blinding::random(StdRng::seed_from_u64(3));
        let proof = groth16::create_proof(toy.clone(), &parameters, blinding.r, blinding.s)?;
        let setting =
            |arithmetic| Ok(Setting { arithmetic, cpu: Cpu::new(arithmetic), srs: Toy::srs(&parameters, arithmetic)? });
        let settings = Arithmetic::available().into_iter().map(setting).collect::<Result<_>>()?;
        let inputs = Toy::public_inputs(&partition.witness);
        Ok(REFERENCE.get_or_init(|| Self { toy, parameters, blinding, proof, inputs, partition, settings }))
    }
}

impl Setting {
    fn stage(&self, partition: Partition) -> <Cpu as Backend>::Staged {
        self.cpu.stage(&self.srs, &partition).expect("the partition is whole")
    }

    fn kernels(&self, staged: <Cpu as Backend>::Staged) -> <Cpu as Backend>::Rest {
        self.cpu.kernels(&self.srs, staged, &mut Timings::default()).expect("the points are in memory")
    }

    fn finish(&self, rest: <Cpu as Backend>::Rest) -> (KernelSums, blstrs::G2Projective) {
        self.cpu.finish(&self.srs, rest).expect("the points are in memory")
    }
}

// A phase is right if what follows makes bellperson's proof of it. What a phase leaves is used up by that, and is not
// comparable by itself, so the check runs all phases anew.

fn stage(candidates: &mut Candidates) -> Result<()> {
    let reference = Reference::get()?;
    for setting in &reference.settings {
        let partition = || reference.partition.clone();
        candidates.ours_with(
            name(setting.arithmetic),
            partition,
            |partition| setting.stage(partition),
            |_| proves(reference, setting),
        )?;
    }
    Ok(())
}

fn kernels(candidates: &mut Candidates) -> Result<()> {
    let reference = Reference::get()?;
    for setting in &reference.settings {
        let staged = || setting.stage(reference.partition.clone());
        candidates.ours_with(
            name(setting.arithmetic),
            staged,
            |staged| setting.kernels(staged),
            |_| proves(reference, setting),
        )?;
    }
    Ok(())
}

fn b_g2(candidates: &mut Candidates) -> Result<()> {
    let reference = Reference::get()?;
    for setting in &reference.settings {
        let rest = || setting.kernels(setting.stage(reference.partition.clone()));
        candidates.ours_with(
            name(setting.arithmetic),
            rest,
            |rest| setting.finish(rest),
            |_| proves(reference, setting),
        )?;
    }
    Ok(())
}

fn finish(candidates: &mut Candidates) -> Result<()> {
    let reference = Reference::get()?;
    let setting = &reference.settings[0];
    let (sums, b_g2) = setting.finish(setting.kernels(setting.stage(reference.partition.clone())));
    let run = move || epilogue(&setting.srs.vk, &sums, b_g2, reference.blinding);
    candidates.ours("cuzk", run, |proof| proof.as_ref().is_ok_and(|proof| *proof == reference.proof))
}

/// Whether the phases one after the other give bellperson's proof.
fn proves(reference: &Reference, setting: &Setting) -> bool {
    let (sums, b_g2) = setting.finish(setting.kernels(setting.stage(reference.partition.clone())));
    epilogue(&setting.srs.vk, &sums, b_g2, reference.blinding).is_ok_and(|proof| proof == reference.proof)
}

/// From the circuit with its values to the proof, constraint system recorded before; bellperson synthesizes both.
fn prove(candidates: &mut Candidates) -> Result<()> {
    let reference = Reference::get()?;
    let Reference { toy, parameters, blinding, proof: expected, partition, .. } = reference;
    for setting in &reference.settings {
        let device = Device::new(Cpu::new(setting.arithmetic));
        let run = move || {
            let witness = toy.witness().expect("the circuit knows its values");
            device.prove(&setting.srs, &Partition::new(partition.r1cs.clone(), witness.into()), *blinding)
        };
        let is_right = |proof: &Result<(Proof<Bls12>, _), _>| proof.as_ref().is_ok_and(|(proof, _)| proof == expected);
        candidates.ours(name(setting.arithmetic), run, is_right)?;
    }
    let bellperson = move || Ok(move || groth16::create_proof(toy.clone(), parameters, blinding.r, blinding.s));
    candidates.peer("bellperson", bellperson, |proof| proof.as_ref().is_ok_and(|proof| proof == expected))
}

/// The check that every proof goes through before it is returned. The pairing is bellperson's.
fn verify(candidates: &mut Candidates) -> Result<()> {
    let Reference { proof, inputs, settings, .. } = Reference::get()?;
    let key = &settings[0].srs.prepared;
    let wrong: Vec<Scalar> = inputs.iter().map(|input| input + Scalar::ONE).collect();
    let refuses = !verify_proof(key, proof, &wrong)?;
    candidates.ours("cuzk", || verify_proof(key, proof, inputs), |valid| refuses && matches!(valid, Ok(true)))
}
