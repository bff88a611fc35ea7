//! The whole proof of a 2 KiB sector, from the C1 output to the proof.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, ensure};
use cuzk_gpu::{
    arith::Backend,
    cpu::Cpu,
    device::Device,
    generate,
    params::{Library, Verdicts},
    prover::{Blinding, Partition},
    timing::Timings,
};
use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    porep::PorepTask,
    r1cs::{self, Check},
    sample,
};
use rand::rngs::OsRng;

use super::{Calibration, Candidates, Operation, Tier, name};

/// The circuit that is proven.
pub const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);
/// The seed of the development parameters that it is proven with.
pub const SEED: &str = "cuzk";

pub(super) fn add(operations: &mut Vec<Operation>) {
    operations.push(Operation::new(["prove", "porep"], "2KiB", Tier::Full, Calibration::AllThreads, prove));
}

/// Proves the first sample, vanilla proofs checked, parameters open, proof not verified.
fn prove(candidates: &mut Candidates) -> Result<()> {
    let dir = PathBuf::from("target/bench-params");
    generate::ensure(CIRCUIT, SEED, &dir, &|_| ())?;
    let arithmetic = Backend::current();
    let srs = Arc::new(library(&dir).load(CIRCUIT, arithmetic)?);
    let r1cs = Arc::new(r1cs::open_or_record(CIRCUIT, &dir.join("porep-2k.r1cs"), || ())?);
    let device = Device::new(Cpu::new(arithmetic));
    let key = srs.clone();
    let run = move || -> Result<_> {
        let task = PorepTask::check(sample::ALL[0].c1, &sample::ALL[0].claims)?;
        let synthesis = task.synthesize(0)?;
        ensure!(r1cs.first_unsatisfied(&synthesis.witness, Check::Sampled).is_none(), "the witness is wrong");
        let (proof, _): (_, Timings) =
            device.prove(&srs, &Partition::new(r1cs.clone(), synthesis), Blinding::random(OsRng))?;
        Ok((task, proof))
    };
    candidates.ours(name(arithmetic), run, move |proven| {
        proven
            .as_ref()
            .is_ok_and(|(task, proof)| task.verify_partition(0, &key.prepared, proof).is_ok_and(|valid| valid))
    })
}

/// The parameters in a folder, as a daemon that ran before has them: digests known, points converted.
pub fn library(dir: &Path) -> Library {
    Library::new(dir.to_owned(), true, Verdicts::load(dir.join("digests.json"))).with_cache(dir.to_owned())
}
