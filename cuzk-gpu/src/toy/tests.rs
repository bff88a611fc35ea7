//! Tests that compare whole proofs, and everything on the way to them, with bellperson.

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::groth16;
use blstrs::Scalar;
use cuzk_synth::{
    assignment::Assignment,
    planes::{Planes, Rows},
    r1cs::{Check, R1cs},
};
use ff::Field;
use proptest::prelude::*;

use super::{Toy, trapdoor};
use crate::{
    arith::backend::Backend as Arithmetic,
    cpu::Cpu,
    device::Device,
    generate::{WriteError, write_parameters},
    prover::{Blinding, Partition},
    srs::{self, Watch, Writer},
};

fn toy() -> impl Strategy<Value = Toy> {
    // Up to 70 constraints: past two full domains, and quick.
    (any::<u64>(), 1..70usize, 0..50u32, any::<bool>()).prop_map(|(seed, constraints, percent_inputs, b_constant)| {
        Toy { seed, constraints, percent_inputs, b_constant, blank: false }
    })
}

/// Compares everything that can be compared on one circuit.
fn agrees_with_bellperson(toy: &Toy) {
    let trapdoor = trapdoor();
    let parameters = toy.reference_parameters(&trapdoor);

    let mut expected = Vec::new();
    parameters.write(&mut expected).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toy.params");
    let r1cs = R1cs::record(toy.blank()).unwrap();
    let mut writer = Writer::create(&path).unwrap();
    let vk = write_parameters(&r1cs, &trapdoor, &mut writer, &|_| ()).unwrap();
    writer.finish(&path).unwrap();
    assert_eq!(vk, parameters.vk);
    assert!(std::fs::read(&path).unwrap() == expected, "parameter files differ");

    let assignment = Assignment::synthesize(toy.clone()).unwrap();
    assert_eq!(assignment.first_unsatisfied(), None);
    let inputs = assignment.inputs[1..].to_vec();
    let Partition { r1cs, witness, .. } = toy.partition();
    assert_eq!(r1cs.multiply(&r1cs.a, &witness), assignment.a);
    assert_eq!(r1cs.multiply(&r1cs.b, &witness), assignment.b);
    assert_eq!(r1cs.multiply(&r1cs.c, &witness), assignment.c);
    assert_eq!(r1cs.density, assignment.density);
    assert_eq!(witness.to_plain(), assignment.aux);
    assert_eq!(r1cs.first_unsatisfied(&witness, Check::Full), None);
    let blinding = Blinding::random(rand::thread_rng());
    let reference = groth16::create_proof(toy.clone(), &parameters, blinding.r, blinding.s).unwrap();
    for arithmetic in Arithmetic::available() {
        let cpu = Device::new(Cpu::new(arithmetic));
        let rows = folder.path().join(format!("{arithmetic:?}.rows"));
        let source = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        let convert =
            |unchanged| srs::open_or_convert(&path, source, &rows, unchanged, arithmetic, &Watch::nobody()).unwrap();
        let (converted, now) = convert(true);
        assert!(now, "there was no file before");
        let (opened, now) = convert(true);
        assert!(!now, "the file is used again");
        for srs in [srs::read(&path, arithmetic).unwrap(), converted, opened] {
            let mut partition = toy.partition();
            let (proof, _) = cpu.prove(&srs, &partition, blinding).unwrap();
            assert_eq!(proof, reference, "{arithmetic:?}");
            let [a, b] = [&assignment.a, &assignment.b].map(|values| Planes::from_plain(values.iter().copied()));
            partition.rows = Some(Rows { a, b });
            assert_eq!(cpu.prove(&srs, &partition, blinding).unwrap().0, reference, "{arithmetic:?}, from planes");
            assert!(groth16::verify_proof(&srs.prepared, &proof, &inputs).unwrap());
        }
        assert!(convert(false).1, "a file that somebody may have changed is made again");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn random_circuits_agree_with_bellperson(toy in toy()) {
        agrees_with_bellperson(&toy);
    }
}

#[test]
fn a_full_domain_agrees_with_bellperson() {
    // 30 products, the start and the input ONE: 32 rows, no padding.
    let toy = Toy { seed: 1, constraints: 30, percent_inputs: 0, b_constant: false, blank: false };
    let rows = R1cs::record(toy.blank()).unwrap().num_constraints();
    assert_eq!(rows, 32);
    agrees_with_bellperson(&toy);
}

#[test]
fn a_circuit_without_variables_in_b_agrees_with_bellperson() {
    let toy = Toy { seed: 2, constraints: 20, percent_inputs: 30, b_constant: true, blank: false };
    let assignment = Assignment::synthesize(toy.clone()).unwrap();
    assert_eq!(assignment.density.b_aux.count_ones(), 0);
    agrees_with_bellperson(&toy);
}

#[test]
fn a_free_variable_is_refused() {
    struct Free;
    impl Circuit<Scalar> for Free {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            cs.alloc(|| "used", || Ok(Scalar::ONE)).and_then(|used| {
                cs.alloc(|| "free", || Ok(Scalar::ONE))?;
                cs.enforce(|| "c", |lc| lc + used, |lc| lc + used, |lc| lc + used);
                Ok(())
            })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&folder.path().join("free.params")).unwrap();
    let r1cs = R1cs::record(Free).unwrap();
    let error = write_parameters(&r1cs, &trapdoor(), &mut writer, &|_| ()).unwrap_err();
    assert!(matches!(error, WriteError::Unconstrained(1)), "{error:?}");
    drop(writer);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "an unfinished file is left behind");
}

#[test]
fn parameters_of_another_circuit_are_refused() {
    let toy = |constraints| Toy { seed: 3, constraints, percent_inputs: 10, b_constant: false, blank: false };
    let srs = Toy::srs(&toy(12).reference_parameters(&trapdoor()), Arithmetic::current());
    let error = Device::new(Cpu::new(Arithmetic::current()))
        .prove(&srs, &toy(13).partition(), Blinding::random(rand::thread_rng()))
        .unwrap_err();
    assert!(error.to_string().contains("of another circuit"), "{error}");
}
