//! The phases of a proof, the whole of it, and its verification, on a toy circuit.

use std::sync::Arc;

use anyhow::{Context, Result};
use bellperson::groth16::{self, prepare_verifying_key, verify_proof};
use blstrs::Scalar;
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
    let mut add = |room, calibration, prepare: fn(&mut Candidates, u32) -> Result<()>| {
        operations.push(Operation::new([room, "toy"], power(LOG_N), Tier::Ci, calibration, move |c| prepare(c, LOG_N)));
    };
    add("groth16_stage", AllThreads, stage);
    add("groth16_kernels", AllThreads, kernels);
    add("groth16_b_g2", AllThreads, b_g2);
    add("groth16_epilogue", OneThread, finish);
    add("prove", AllThreads, prove);
    add("verify", OneThread, verify);
}

/// A toy proof in the making: a backend, its parameters, its partition.
struct Setting {
    arithmetic: Arithmetic,
    cpu: Cpu,
    srs: Srs,
    partition: Partition,
}

impl Setting {
    /// One for each arithmetic of this machine, with bellperson's parameters.
    fn all(log_n: u32) -> Result<Vec<Arc<Self>>> {
        let toy = Toy::new(log_n);
        let (parameters, partition) = (toy.parameters()?, toy.partition()?);
        let with = |arithmetic| {
            let (cpu, srs) = (Cpu::new(arithmetic), Toy::srs(&parameters, arithmetic)?);
            Ok(Arc::new(Self { arithmetic, cpu, srs, partition: partition.clone() }))
        };
        Arithmetic::available().into_iter().map(with).collect()
    }

    fn staged(&self) -> <Cpu as Backend>::Staged {
        self.cpu.stage(&self.srs, self.partition.clone()).expect("the partition is whole")
    }

    fn sums(&self, staged: <Cpu as Backend>::Staged) -> (KernelSums, <Cpu as Backend>::Rest) {
        self.cpu.kernels(&self.srs, staged, &mut Timings::default()).expect("the points are in memory")
    }
}

/// The blinding of all these proofs.
fn blinding() -> Blinding {
    Blinding::random(StdRng::seed_from_u64(3))
}

// The phases are right if the proof is: `prove` compares it with bellperson's, byte for byte.

fn stage(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    for setting in Setting::all(log_n)? {
        let (name, partition) = (name(setting.arithmetic), setting.partition.clone());
        let right = setting.clone();
        let run = move |partition| setting.cpu.stage(&setting.srs, partition);
        candidates.ours_with(name, move || partition.clone(), run, move |staged| staged.is_ok() && verifies(&right))?;
    }
    Ok(())
}

fn kernels(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    for setting in Setting::all(log_n)? {
        let (input, right) = (setting.clone(), setting.clone());
        let run = move |staged| setting.sums(staged);
        candidates.ours_with(name(right.arithmetic), move || input.staged(), run, |_| verifies(&right))?;
    }
    Ok(())
}

fn b_g2(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    for setting in Setting::all(log_n)? {
        let (input, right) = (setting.clone(), setting.clone());
        let run = move |rest| setting.cpu.b_g2(&setting.srs, rest);
        let rest = move || input.sums(input.staged()).1;
        candidates.ours_with(name(right.arithmetic), rest, run, |sum| sum.is_ok() && verifies(&right))?;
    }
    Ok(())
}

fn finish(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let setting = Setting::all(log_n)?.swap_remove(0);
    let (sums, rest) = setting.sums(setting.staged());
    let b_g2 = setting.cpu.b_g2(&setting.srs, rest)?;
    let right = setting.clone();
    let run = move || epilogue(&setting.srs.vk, &sums, b_g2, blinding());
    candidates.ours("cuzk", run, |proof| {
        let inputs = Toy::public_inputs(&right.partition.witness);
        proof.as_ref().is_ok_and(|proof| verify_proof(&right.srs.prepared, proof, &inputs).is_ok_and(|valid| valid))
    })
}

/// Whether the phases together give a valid proof.
fn verifies(setting: &Setting) -> bool {
    let proof = Device::new(Cpu::new(setting.arithmetic)).prove(&setting.srs, setting.partition.clone(), blinding());
    let inputs = Toy::public_inputs(&setting.partition.witness);
    proof.is_ok_and(|(proof, _)| verify_proof(&setting.srs.prepared, &proof, &inputs).is_ok_and(|valid| valid))
}

/// From the circuit with its values to the proof, constraint system recorded before; bellperson synthesizes both.
fn prove(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let (toy, blinding) = (Toy::new(log_n), blinding());
    let parameters = toy.parameters()?;
    let expected = groth16::create_proof(toy.clone(), &parameters, blinding.r, blinding.s)?;
    for setting in Setting::all(log_n)? {
        let (implementation, toy) = (name(setting.arithmetic), toy.clone());
        let device = Device::new(Cpu::new(setting.arithmetic));
        let run = move || {
            let witness = toy.witness().expect("the circuit knows its values");
            let partition = Partition { r1cs: setting.partition.r1cs.clone(), witness };
            device.prove(&setting.srs, partition, blinding)
        };
        candidates.ours(implementation, run, |proof| proof.as_ref().is_ok_and(|(proof, _)| *proof == expected))?;
    }
    let bellperson = || Ok(move || groth16::create_proof(toy.clone(), &parameters, blinding.r, blinding.s));
    candidates.peer("bellperson", bellperson, |proof| proof.as_ref().is_ok_and(|proof| *proof == expected))
}

/// The check that every proof goes through before it is returned. The pairing is bellperson's.
fn verify(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let (toy, blinding) = (Toy::new(log_n), blinding());
    let parameters = toy.parameters()?;
    let proof = groth16::create_proof(toy.clone(), &parameters, blinding.r, blinding.s)?;
    let inputs = Toy::public_inputs(&toy.witness()?);
    let key = prepare_verifying_key(&parameters.vk);
    let mut wrong = inputs.clone();
    *wrong.first_mut().context("there is an output")? += Scalar::ONE;
    let refuses = !verify_proof(&key, &proof, &wrong)?;
    let run = move || verify_proof(&key, &proof, &inputs);
    candidates.ours("cuzk", run, |valid| refuses && matches!(valid, Ok(true)))
}
