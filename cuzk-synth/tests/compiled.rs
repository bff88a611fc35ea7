//! The recorded 2 KiB circuit and the witness pass, compared value for value with plain synthesis on real inputs, and the
//! file that keeps the circuit.

use std::sync::OnceLock;

use blstrs::Scalar;
use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    porep::{self, PorepTask},
    r1cs::{self, Check, FileError, R1cs},
    sample::ALL,
    witness::CompactWitness,
};

const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);

fn recorded() -> &'static R1cs {
    static RECORDED: OnceLock<R1cs> = OnceLock::new();
    RECORDED.get_or_init(|| porep::record(CIRCUIT).expect("a built circuit").expect("it can be recorded"))
}

fn task(i: usize) -> PorepTask {
    PorepTask::check(ALL[i].c1, &ALL[i].claims).expect("a good sample")
}

#[test]
fn the_published_figures_of_the_circuit() {
    let r1cs = recorded();
    assert_eq!((r1cs.num_constraints(), r1cs.num_aux, r1cs.num_inputs), (2_687_961, 2_685_673, 40));
    assert_eq!(r1cs.log_domain(), 22);
    assert_eq!(r1cs.density.b_aux.count_ones(), 685_521);
}

#[test]
fn rows_and_densities_equal_those_of_plain_synthesis() {
    let r1cs = recorded();
    // One of each variant: interactive and synthetic.
    for i in [0, 2] {
        let task = task(i);
        let (witness, plain) = (task.witness(0).expect("values"), task.assignment(0).expect("values"));
        assert_eq!(witness, CompactWitness::from_plain(plain.inputs.clone(), plain.aux.iter().copied()));
        assert!(r1cs.multiply(&r1cs.a, &witness) == plain.a, "A differs");
        assert!(r1cs.multiply(&r1cs.b, &witness) == plain.b, "B differs");
        assert!(r1cs.multiply(&r1cs.c, &witness) == plain.c, "C differs");
        assert!(r1cs.density == plain.density, "densities differ");
        assert_eq!(r1cs.first_unsatisfied(&witness, Check::Full), None);
        assert_eq!(r1cs.first_unsatisfied(&witness, Check::Sampled), None);
        assert!(witness.bytes() < 8 << 20, "{} bytes", witness.bytes());
    }
}

#[test]
fn a_wrong_value_is_found_and_named() {
    let r1cs = recorded();
    let right = task(0).witness(0).expect("values");
    let mut aux = right.to_plain();
    // The very first variable is the replica id, which the first constraint equals to its public input.
    aux[0] += Scalar::from(1);
    let wrong = CompactWitness::from_plain(right.inputs().to_vec(), aux);
    let first = r1cs.first_unsatisfied(&wrong, Check::Full).expect("a wrong value");
    assert_eq!(first, 0);
    let path = porep::path_of_constraint(CIRCUIT, first).expect("a built circuit").expect("it has a name");
    assert!(path.starts_with("replica_id_input"), "{path}");
    assert_eq!(r1cs.first_unsatisfied(&wrong, Check::Off), None);

    // A sample sees damage that is everywhere.
    let zeros = CompactWitness::from_plain(right.inputs().to_vec(), vec![Scalar::from(3); right.num_aux()]);
    assert!(r1cs.first_unsatisfied(&zeros, Check::Sampled).is_some());
}

#[test]
fn the_file_gives_the_circuit_back_and_damage_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("porep-2k.r1cs");
    recorded().save("porep-2k", &path).expect("written");
    assert!(R1cs::open("porep-2k", &path).expect("a good file") == *recorded());
    assert!(matches!(R1cs::open("porep-2", &path), Err(FileError::Other(_))));
    assert!(matches!(R1cs::open("porep-8m", &path), Err(FileError::Other(_))));

    let good = std::fs::read(&path).expect("readable");
    for at in [9, 20, 40, 250, 5000, good.len() / 2] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, bad).expect("written");
        assert!(R1cs::open("porep-2k", &path).is_err(), "damage at byte {at} is not found");
    }
    std::fs::write(&path, &good[..good.len() - 100]).expect("written");
    assert!(R1cs::open("porep-2k", &path).is_err());
    std::fs::write(&path, &good[..100]).expect("written");
    assert!(matches!(R1cs::open("porep-2k", &path), Err(FileError::Other(_))));

    // A damaged file in the cache is replaced, once.
    let mut recordings = 0;
    let opened = r1cs::open_or_record(CIRCUIT, &path, || recordings += 1).expect("recorded");
    assert!(opened == *recorded());
    r1cs::open_or_record(CIRCUIT, &path, || recordings += 1).expect("opened");
    assert_eq!(recordings, 1);
}
