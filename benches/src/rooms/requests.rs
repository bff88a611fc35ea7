//! From the bytes of a request to checked vanilla proofs.

use anyhow::Result;
use cuzk_synth::{
    c1::{envelope, model},
    circuit::SectorSize,
    phantom::PhantomSector,
    porep::PorepTask,
    registered::{SealProof, Variant},
    sample::{self, Sample},
};

use super::{Calibration, Candidates, Operation, Tier};
use crate::upstream;

const SAMPLE: &Sample = &sample::ALL[0];

pub(super) fn add(operations: &mut Vec<Operation>) {
    operations.push(Operation::new(["parse", "c1"], "2KiB", Tier::Ci, Calibration::OneThread, parse));
    operations.push(Operation::new(["check", "c1"], "2KiB", Tier::Ci, Calibration::AllThreads, |candidates| {
        candidates.ours("cuzk", || PorepTask::check(SAMPLE.c1, &SAMPLE.claims), Result::is_ok)
    }));
    // What the submission of a large sector costs.
    operations.push(Operation::new(["make", "c1"], "32GiB", Tier::Full, Calibration::AllThreads, |candidates| {
        let expected = large_payload()?;
        candidates.ours("cuzk", large_payload, |made| made.as_ref().is_ok_and(|made| *made == expected))
    }));
    operations.push(Operation::new(["parse", "c1"], "32GiB", Tier::Full, Calibration::OneThread, |candidates| {
        let payload = large_payload()?;
        let run = move || envelope::unwrap(&payload).and_then(|unwrapped| model::parse(&unwrapped.json));
        candidates.ours("cuzk", run, |c1| c1.as_ref().is_ok_and(|c1| c1.vanilla_proofs.parts().1.len() == 10))
    }));
    operations.push(Operation::new(["check", "c1"], "32GiB", Tier::Full, Calibration::AllThreads, |candidates| {
        let payload = large_payload()?;
        candidates.ours("cuzk", move || PorepTask::check(&payload, &large().claims()), Result::is_ok)
    }));
}

/// A sector that does not exist, of a size that is proven in ten partitions.
fn large() -> PhantomSector<'static> {
    let seal = SealProof::new(SectorSize::Gib32, Variant::V1_1);
    PhantomSector { seal, miner_id: 1000, sector_number: 1, seed: "bench" }
}

/// Its C1 output, in its envelope.
fn large_payload() -> Result<Vec<u8>> {
    let mut payload = Vec::new();
    let sector = large();
    envelope::wrap(&mut payload, &sector.c1_output()?, sector.sector_number, sector.seal.size.bytes())?;
    Ok(payload)
}

/// The envelope taken off, the JSON read into our types; the peer reads the same into its own.
pub(super) fn parse(candidates: &mut Candidates) -> Result<()> {
    let run = || envelope::unwrap(SAMPLE.c1).and_then(|unwrapped| model::parse(&unwrapped.json));
    let comm_r = run()?.comm_r;
    candidates.ours("cuzk", run, |c1| c1.as_ref().is_ok_and(|c1| !c1.vanilla_proofs.parts().1.is_empty()))?;
    let upstream = || Ok(|| upstream::parse(SAMPLE));
    candidates
        .peer("filecoin-proofs", upstream, |output| output.as_ref().is_ok_and(|output| output.comm_r() == &comm_r.0))
}
