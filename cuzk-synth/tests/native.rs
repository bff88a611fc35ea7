//! The native synthesis, compared value for value with the circuit's gadgets and with the recorded constraint system: on
//! real inputs of every variant, on made-up sectors, and on random challenges of every sector size.

use blstrs::Scalar;
use cuzk_synth::{
    circuit::{
        CircuitId,
        SectorSize::{self, Gib32, Gib64, Kib2, Mib8, Mib512},
    },
    phantom::PhantomSector,
    planes::{Planes, Rows},
    porep::{self, PorepTask},
    r1cs::{Check, Wrong},
    registered::{SealProof, Variant},
    sample::ALL,
    synthesis::Synthesis,
    witness::CompactWitness,
};

fn made_up(size: SectorSize) -> PorepTask {
    let sector =
        PhantomSector { seal: SealProof::new(size, Variant::V1_1), miner_id: 1000, sector_number: 7, seed: "" };
    let c1 = sector.c1_output().expect("it can be made");
    PorepTask::check(&serde_json::to_vec(&c1).expect("it can be written"), &sector.claims()).expect("a good output")
}

#[test]
fn real_sectors_equal_the_circuit() {
    for sample in ALL {
        let task = PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
        assert!(task.synthesize(0).expect("values").rows.is_some(), "{}: not native", sample.name);
        assert_eq!(task.compare_with_circuit(0), Ok(()), "{}", sample.name);
    }
}

#[test]
fn rows_equal_those_of_the_recorded_system() {
    let r1cs = porep::record(CircuitId::porep(Kib2)).expect("a built circuit").expect("it can be recorded");
    let task = PorepTask::check(ALL[0].c1, &ALL[0].claims).expect("a good sample");
    let synthesis = task.synthesize(0).expect("values");
    let [a, b] = [&r1cs.a, &r1cs.b].map(|matrix| Planes::from_plain(r1cs.multiply(matrix, &synthesis.witness)));
    assert!(synthesis.rows == Some(Rows { a, b }));

    assert_eq!(r1cs.first_wrong(&synthesis, Check::Full), None);
    assert_eq!(r1cs.first_wrong(&Synthesis::from(synthesis.witness.clone()), Check::Sampled), None);
    // One factor of one constraint.
    let mut wrong = synthesis.clone();
    let mut values: Vec<Scalar> =
        (0..r1cs.num_constraints()).map(|i| wrong.rows.as_ref().expect("rows").b.value(i)).collect();
    values[1_000_000] += Scalar::from(1);
    wrong.rows.as_mut().expect("rows").b = Planes::from_plain(values);
    assert_eq!(r1cs.first_wrong(&wrong, Check::Full), Some(Wrong::Factors(1_000_000)));
    assert_eq!(r1cs.first_wrong(&wrong, Check::Off), None);
    // A wrong witness is what is named, and rows that are too few are wrong where they end.
    wrong.witness = CompactWitness::from_plain(wrong.witness.inputs().to_vec(), vec![Scalar::from(3); r1cs.num_aux]);
    assert!(matches!(r1cs.first_wrong(&wrong, Check::Full), Some(Wrong::Unsatisfied(_))));
    let short = Rows { a: Planes::from_plain([]), b: Planes::from_plain([]) };
    let short = Synthesis { rows: Some(short), ..synthesis };
    assert_eq!(r1cs.first_wrong(&short, Check::Full), Some(Wrong::Factors(0)));
}

#[test]
fn made_up_sectors_of_8_and_512_mib_equal_the_circuit() {
    for size in [Mib8, Mib512] {
        assert_eq!(made_up(size).compare_with_circuit(0), Ok(()), "{size:?}");
    }
}

#[test]
#[ignore = "takes a minute a partition"]
fn made_up_sectors_of_32_and_64_gib_equal_the_circuit() {
    for (size, partition) in [(Gib32, 0), (Gib32, 7), (Gib64, 3)] {
        assert_eq!(made_up(size).compare_with_circuit(partition), Ok(()), "{size:?}, partition {partition}");
    }
}

#[test]
fn all_circuits_are_native() {
    for size in SectorSize::ALL {
        assert_eq!(porep::is_native(CircuitId::porep(size)), Ok(true), "{size:?}");
    }
}
