//! The 2 KiB PoRep beside bellperson, same input, same machine, in turn, each run in a process of its own, so that its peak
//! memory is its own too.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Result, ensure};
use bellperson::groth16::{Parameters, create_random_proof_batch, prepare_verifying_key, verify_proof};
use blstrs::Bls12;
use clap::{Args, ValueEnum};
use cuzk_gpu::{
    arith::Backend,
    cpu::Cpu,
    device::Device,
    generate::{self, Trapdoor},
    params::Files,
    prover::{Blinding, Partition},
};
use cuzk_synth::{
    porep::{PorepTask, is_native},
    r1cs::{self, Check},
    sample,
};
use rand::rngs::OsRng;

use super::child::{Measured, Report, measure};
use crate::{
    rooms::{CIRCUIT, SEED, library},
    upstream,
};

/// How whole runs are compared.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Folder of development parameters; made there if absent.
    #[arg(long, default_value = "target/bench-params")]
    params: PathBuf,
    /// Proofs in each process before the one that counts, as in a daemon that is at work.
    #[arg(long, default_value_t = 0)]
    warm: usize,
    /// Rounds; each runs both.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
}

/// What one process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Part {
    /// Our proof.
    ProveOurs,
    /// bellperson's proof.
    ProveBellperson,
    /// Our parameters.
    ParamsOurs,
    /// bellperson's parameters.
    ParamsBellperson,
}

/// The command that a child runs.
pub const CHILD: &str = "part";

/// One C2 of each: synthesis and proof, parameters already open.
///
/// # Errors
/// If parameters cannot be made, or a process fails.
pub fn prove(options: &Options) -> Result<()> {
    generate::ensure(CIRCUIT, SEED, &options.params, &|_| ())?;
    library(&options.params).load(CIRCUIT, Backend::current())?;
    compare(options, "prove-ours", "prove-bellperson")
}

/// The parameters, made by each.
///
/// # Errors
/// If a process fails.
pub fn params(options: &Options) -> Result<()> {
    compare(options, "params-ours", "params-bellperson")
}

/// What a child does.
///
/// # Errors
/// Whatever goes wrong in it.
pub fn child(part: Part, options: &Options) -> Result<()> {
    let (dir, warm) = (&options.params, options.warm);
    let report = match part {
        Part::ProveOurs => prove_ours(dir, warm)?,
        Part::ProveBellperson => prove_bellperson(dir, warm)?,
        Part::ParamsOurs => params_ours()?,
        Part::ParamsBellperson => params_bellperson()?,
    };
    report.print()
}

fn compare(options: &Options, ours: &str, theirs: &str) -> Result<()> {
    let dir = options.params.to_string_lossy();
    println!("arithmetic: {:?}, {} threads", Backend::current(), std::thread::available_parallelism()?);
    println!("{:20} {:>10} {:>12}  parts", "", "seconds", "peak MiB");
    for _ in 0..options.rounds {
        let row = |name: &str| -> Result<Measured> {
            let measured = measure(&[CHILD, name, "--params", &dir, "--warm", &options.warm.to_string()])?;
            let parts: Vec<_> = measured.report.parts.iter().map(|(name, s)| format!("{name} {s:.2}")).collect();
            let peak = measured.peak_bytes >> 20;
            println!("{name:20} {:10.2} {peak:12}  {}", measured.report.seconds, parts.join(", "));
            Ok(measured)
        };
        let (ours, theirs) = (row(ours)?, row(theirs)?);
        println!(
            "{:20} {:10.3} {:12.3}  ours / bellperson",
            "ratio",
            ours.report.seconds / theirs.report.seconds,
            ours.peak_bytes as f64 / theirs.peak_bytes as f64
        );
    }
    Ok(())
}

fn prove_ours(dir: &Path, warm: usize) -> Result<Report> {
    let arithmetic = Backend::current();
    let begin = Instant::now();
    let srs = library(dir).load(CIRCUIT, arithmetic)?;
    let r1cs = Arc::new(r1cs::open_or_record(CIRCUIT, &dir.join("porep-2k.r1cs"), || ())?);
    // As the daemon does while it loads.
    ensure!(is_native(CIRCUIT)?, "the native witness is not the circuit's");
    let loaded = begin.elapsed();
    let cpu = Device::new(Cpu::new(arithmetic));
    let prove = || -> Result<Report> {
        let sample = &sample::ALL[0];
        let begin = Instant::now();
        let task = PorepTask::check(sample.c1, &sample.claims)?;
        let checked = begin.elapsed();
        let synthesis = task.synthesize(0)?;
        let synthesized = begin.elapsed();
        ensure!(r1cs.first_unsatisfied(&synthesis.witness, Check::Sampled).is_none(), "the witness is wrong");
        let sampled = begin.elapsed();
        let partition = Partition::new(r1cs.clone(), synthesis);
        let (proof, timings) = cpu.prove(&srs, &partition, Blinding::random(OsRng))?;
        let proven = begin.elapsed();

        ensure!(task.verify_partition(0, &srs.prepared, &proof)?, "the proof does not verify");
        let report = Report::new(proven)
            .part("load (not counted)", loaded)
            .part("check", checked)
            .part("witness", synthesized - checked)
            .part("sampled check", sampled - synthesized);
        Ok(timings.intervals().iter().fold(report, |report, i| report.part(i.phase.name(), i.end - i.begin)))
    };
    for _ in 0..warm {
        prove()?;
    }
    prove()
}

fn prove_bellperson(dir: &Path, warm: usize) -> Result<Report> {
    let begin = Instant::now();
    let params = Parameters::<Bls12>::build_mapped_parameters(Files::of(CIRCUIT, dir)?.params, false)?;
    let loaded = begin.elapsed();
    let prove = || -> Result<Report> {
        let sample = &sample::ALL[0];
        let begin = Instant::now();
        let circuit = upstream::circuit(sample)?;
        let proofs = create_random_proof_batch(vec![circuit], &params, &mut OsRng)?;
        let proven = begin.elapsed();

        let inputs = PorepTask::check(sample.c1, &sample.claims)?.public_inputs(0)?;
        ensure!(verify_proof(&prepare_verifying_key(&params.vk), &proofs[0], &inputs)?, "the proof does not verify");
        Ok(Report::new(proven).part("open (not counted)", loaded))
    };
    for _ in 0..warm {
        prove()?;
    }
    prove()
}

fn params_ours() -> Result<Report> {
    let dir = tempfile::tempdir_in("target")?;
    let begin = Instant::now();
    generate::generate(CIRCUIT, SEED, dir.path(), &|_| ())?;
    Ok(Report::new(begin.elapsed()))
}

fn params_bellperson() -> Result<Report> {
    let begin = Instant::now();
    let params = upstream::generate(&sample::ALL[0], &Trapdoor::derive(CIRCUIT, SEED))?;
    let generated = begin.elapsed();
    let mut file = std::io::BufWriter::new(tempfile::tempfile_in("target")?);
    params.write(&mut file)?;
    Ok(Report::new(begin.elapsed()).part("generation alone", generated))
}
