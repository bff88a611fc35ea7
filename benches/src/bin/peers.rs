//! `peers prove` and `peers params`: the 2 KiB PoRep beside bellperson, same input, same machine, in turn.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Result, ensure};
use bellperson::groth16::{Parameters, create_random_proof_batch, prepare_verifying_key, verify_proof};
use blstrs::Bls12;
use clap::{Parser, Subcommand};
use cuzk_benches::{
    child::{Measured, Report, measure},
    ratios, upstream,
};
use cuzk_gpu::{
    arith::backend::Backend,
    cpu::Cpu,
    device::Device,
    generate::{self, Trapdoor},
    params::{Files, Library, Verdicts},
    prover::{Blinding, Partition},
};
use cuzk_synth::{
    circuit::CircuitId,
    circuit::SectorSize,
    porep::PorepTask,
    r1cs::{self, Check},
    sample,
};
use rand::rngs::OsRng;

// Brings the allocator of the daemon, for bellperson too.
use cuzk_daemon as _;

const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);
const SEED: &str = "cuzk";

#[derive(Parser)]
#[command(about = "Compares with bellperson on the 2 KiB PoRep, in turn, each run in a process of its own")]
struct Args {
    /// Folder of development parameters; made there if absent.
    #[arg(long, global = true, default_value = "target/bench-params")]
    params: PathBuf,
    /// Proofs in each process before the one that counts, as in a daemon that is at work.
    #[arg(long, global = true, default_value_t = 0)]
    warm: usize,
    /// Rounds; each runs both.
    #[arg(long, global = true, default_value_t = 1)]
    rounds: usize,
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Copy, Subcommand)]
enum What {
    /// One C2: synthesis and proof, parameters already open.
    Prove,
    /// Making the parameters.
    Params,
    /// The ratios of what `cargo bench -p cuzk-benches` measured last.
    Ratios,
    #[command(hide = true)]
    ProveOurs,
    #[command(hide = true)]
    ProveBellperson,
    #[command(hide = true)]
    ParamsOurs,
    #[command(hide = true)]
    ParamsBellperson,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let dir = &args.params;
    match args.what {
        What::Prove => {
            generate::ensure(CIRCUIT, SEED, dir, &|_| ())?;
            library(dir).load(CIRCUIT, Backend::current())?;
            compare(&args, "prove-ours", "prove-bellperson")
        }
        What::Params => compare(&args, "params-ours", "params-bellperson"),
        What::Ratios => {
            print!("{}", ratios::table(&ratios::collect(Path::new("target/criterion"))?));
            Ok(())
        }
        What::ProveOurs => prove_ours(dir, args.warm)?.print(),
        What::ProveBellperson => prove_bellperson(dir, args.warm)?.print(),
        What::ParamsOurs => params_ours()?.print(),
        What::ParamsBellperson => params_bellperson()?.print(),
    }
}

fn compare(args: &Args, ours: &str, theirs: &str) -> Result<()> {
    let dir = args.params.to_string_lossy();
    println!("arithmetic: {:?}, {} threads", Backend::current(), std::thread::available_parallelism()?);
    println!("{:20} {:>10} {:>12}  parts", "", "seconds", "peak MiB");
    for _ in 0..args.rounds {
        let row = |name: &str| -> Result<Measured> {
            let measured = measure(&[name, "--params", &dir, "--warm", &args.warm.to_string()])?;
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
    let loaded = begin.elapsed();
    let cpu = Device::new(Cpu::new(arithmetic));
    let prove = || -> Result<Report> {
        let sample = &sample::ALL[0];
        let begin = Instant::now();
        let task = PorepTask::check(sample.c1, &sample.claims)?;
        let checked = begin.elapsed();
        let witness = task.witness(0)?;
        let synthesized = begin.elapsed();
        ensure!(r1cs.first_unsatisfied(&witness, Check::Sampled).is_none(), "the witness is wrong");
        let sampled = begin.elapsed();
        let partition = Partition { r1cs: r1cs.clone(), witness };
        let (proof, timings) = cpu.prove(&srs, partition, Blinding::random(OsRng))?;
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

/// As in a daemon that ran before: digests known, parameters converted.
fn library(dir: &Path) -> Library {
    Library::new(dir.to_owned(), true, Verdicts::load(dir.join("digests.json"))).with_cache(dir.to_owned())
}
