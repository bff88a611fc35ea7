//! The constraint system and the witness: recording, witness pass, A·w, satisfaction.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, ensure};
use blstrs::Scalar;
use cuzk_synth::{
    assignment::Assignment,
    planes::{Planes, Rows},
    porep::{self, PorepTask},
    r1cs::{Check, R1cs},
    sample,
    synthesis::Synthesis,
    witness::CompactWitness,
};

use super::{CIRCUIT, Calibration, Candidates, Operation, Tier, power, toy::Toy};

pub(super) fn add(operations: &mut Vec<Operation>) {
    use Calibration::{AllThreads, Memory, OneThread};
    operations.push(Operation::new(["witness", "fr"], "2KiB", Tier::Ci, OneThread, witness));
    operations.push(Operation::new(["spmv", "fr"], "2KiB", Tier::Ci, Memory, |candidates| {
        let sector = Sector::get()?;
        let run = move || sector.r1cs.multiply(&sector.r1cs.a, &sector.witness);
        candidates.ours("cuzk", run, |rows| *rows == sector.plain.a)
    }));
    for (check, name) in [(Check::Sampled, "satisfied_sampled"), (Check::Full, "satisfied_full")] {
        operations.push(Operation::new([name, "fr"], "2KiB", Tier::Full, AllThreads, move |candidates| {
            let sector = Sector::get()?;
            candidates.ours(
                "cuzk",
                move || sector.r1cs.first_unsatisfied(&sector.witness, check),
                |unsatisfied| unsatisfied.is_none(),
            )
        }));
    }
    operations.push(Operation::new(["compile", "r1cs"], power(16), Tier::Ci, OneThread, |c| compile(c, 16)));
    operations.push(Operation::new(["compile", "r1cs"], "2KiB", Tier::Full, OneThread, |candidates| {
        let sector = Sector::get()?;
        candidates.ours("cuzk", || porep::record(CIRCUIT), |r1cs| matches!(r1cs, Ok(Ok(r1cs)) if *r1cs == sector.r1cs))
    }));
}

/// The 2 KiB sample, its circuit recorded and its values in both forms; made once.
struct Sector {
    task: PorepTask,
    r1cs: R1cs,
    witness: CompactWitness,
    plain: Assignment,
}

impl Sector {
    fn get() -> Result<&'static Self> {
        static SECTOR: OnceLock<Sector> = OnceLock::new();
        if let Some(sector) = SECTOR.get() {
            return Ok(sector);
        }
        let task = PorepTask::check(sample::ALL[0].c1, &sample::ALL[0].claims)?;
        let r1cs = porep::record(CIRCUIT)??;
        let (witness, plain) = (task.witness(0)?, task.assignment(0)?);
        Ok(SECTOR.get_or_init(|| Self { task, r1cs, witness, plain }))
    }
}

/// The witness with A·w and B·w. The peer makes the rows of A, B and C in the same pass, on one core too: what its prover
/// does first. The gadgets make the witness alone.
fn witness(candidates: &mut Candidates) -> Result<()> {
    let sector = Sector::get()?;
    ensure!(porep::is_native(CIRCUIT)?, "the native witness is not that of the circuit");
    let equals = |planes: &Planes, plain: &[Scalar]| *planes == Planes::from_plain(plain.iter().copied());
    let is_right = move |synthesis: &Result<Synthesis, _>| {
        synthesis.as_ref().is_ok_and(|Synthesis { witness, rows }| {
            let rows_are_right = |rows: &Rows| equals(&rows.a, &sector.plain.a) && equals(&rows.b, &sector.plain.b);
            witness.to_plain() == sector.plain.aux && rows.as_ref().is_some_and(rows_are_right)
        })
    };
    candidates.ours("cuzk", || sector.task.synthesize(0), is_right)?;
    let is_right = |witness: &Result<CompactWitness, _>| {
        witness.as_ref().is_ok_and(|witness| witness.to_plain() == sector.plain.aux)
    };
    candidates.ours("gadgets", || sector.task.witness_by_gadgets(0), is_right)?;
    candidates.peer(
        "bellperson",
        || Ok(|| sector.task.assignment(0)),
        |assignment| assignment.as_ref().is_ok_and(|assignment| *assignment == sector.plain),
    )
}

pub(super) fn compile(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let toy = Toy::new(log_n);
    let witness = toy.witness()?;
    candidates.ours(
        "cuzk",
        move || toy.record(),
        |r1cs| {
            r1cs.as_ref().is_ok_and(|r1cs| {
                r1cs.num_constraints() == 1 << log_n && r1cs.first_unsatisfied(&witness, Check::Full).is_none()
            })
        },
    )
}

pub(super) fn spmv(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let partition = Arc::new(Toy::new(log_n).partition()?);
    let expected = Assignment::synthesize(Toy::new(log_n))?.a;
    let run = move || partition.r1cs.multiply(&partition.r1cs.a, &partition.witness);
    candidates.ours("cuzk", run, |rows| *rows == expected)
}
