//! From the bytes of a request to checked vanilla proofs.

use anyhow::Result;
use cuzk_synth::{
    c1::{envelope, model},
    porep::PorepTask,
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
