//! Small circuits for tests, their parameters made by bellperson, and the tests that compare a whole proof.

use std::sync::Arc;

use bellpepper_core::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use bellperson::groth16::{self, Parameters};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use cuzk_synth::{
    assignment::Assignment,
    r1cs::{Check, R1cs},
    witness::CompactWitness,
};
use ff::Field;
use group::Group;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    arith::{backend::Backend as Arithmetic, table::Table},
    cpu::Cpu,
    device::Device,
    generate::{Trapdoor, WriteError, write_parameters},
    prover::{Blinding, Partition},
    srs::{self, Srs, Watch, Writer},
};

/// A random satisfiable circuit: products of random linear combinations, with inputs allocated in between.
#[derive(Clone, Debug)]
pub(crate) struct Toy {
    pub(crate) seed: u64,
    /// Constraints before the appended input constraints.
    pub(crate) constraints: usize,
    /// Of a hundred new variables, how many are public inputs.
    pub(crate) percent_inputs: u32,
    /// Whether right factors are constants: then no auxiliary variable is in B.
    pub(crate) b_constant: bool,
    /// Whether the circuit knows its values.
    pub(crate) blank: bool,
}

impl Circuit<Scalar> for Toy {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut variables: Vec<(Variable, Scalar)> = vec![(CS::one(), Scalar::ONE)];
        // Every value is drawn and computed even for a blank circuit, so that both see the same structure.
        let value = |v: Scalar| {
            if self.blank { Err(SynthesisError::AssignmentMissing) } else { Ok(v) }
        };
        let start = Scalar::from(rng.r#gen::<u64>());
        let first = cs.alloc(|| "start", || value(start))?;
        variables.push((first, start));
        for i in 0..self.constraints {
            let mut combination = |constant: bool| {
                let mut lc = LinearCombination::zero();
                let mut sum = Scalar::ZERO;
                for _ in 0..rng.gen_range(1..4) {
                    let range = if constant { 0..1 } else { 0..variables.len() };
                    let (variable, v) = variables[rng.gen_range(range)];
                    let coefficient = match rng.gen_range(0..4) {
                        0 => Scalar::random(&mut rng),
                        1 => -Scalar::ONE,
                        2 => Scalar::from(1 << rng.gen_range(0..20)),
                        _ => Scalar::ONE,
                    };
                    lc = lc + (coefficient, variable);
                    sum += coefficient * v;
                }
                (lc, sum)
            };
            let (a, a_value) = combination(false);
            let (b, b_value) = combination(self.b_constant);
            let product = a_value * b_value;
            let variable = if rng.gen_range(0..100) < self.percent_inputs {
                cs.alloc_input(|| "input", || value(product))?
            } else {
                cs.alloc(|| "aux", || value(product))?
            };
            // The very first variable is constrained here, so that none is free.
            let a = if i == 0 { a + first - first + (Scalar::ZERO, first) } else { a };
            cs.enforce(|| "product", |_| a, |_| b, |lc| lc + variable);
            variables.push((variable, product));
        }
        cs.enforce(|| "start", |lc| lc + first, |lc| lc + CS::one(), |lc| lc + first);
        Ok(())
    }
}

impl Toy {
    fn blank(&self) -> Self {
        Self { blank: true, ..self.clone() }
    }

    /// Parameters by bellperson, from the same secret as `trapdoor`.
    pub(crate) fn reference_parameters(&self, trapdoor: &Trapdoor) -> Parameters<Bls12> {
        groth16::generate_parameters(
            self.blank(),
            G1Projective::generator(),
            G2Projective::generator(),
            trapdoor.alpha,
            trapdoor.beta,
            trapdoor.gamma,
            trapdoor.delta,
            trapdoor.tau,
        )
        .unwrap()
    }

    /// The circuit with its values, ready to be proven.
    pub(crate) fn partition(&self) -> Partition {
        Partition {
            r1cs: Arc::new(R1cs::record(self.blank()).unwrap()),
            witness: CompactWitness::of_circuit(self.clone()).unwrap(),
        }
    }

    /// The same in our form.
    pub(crate) fn srs(parameters: &Parameters<Bls12>) -> Srs {
        let arithmetic = Arithmetic::current();
        let g1 = [&parameters.h, &parameters.l, &parameters.a, &parameters.b_g1];
        Srs::new(
            parameters.vk.clone(),
            g1.map(|points| Table::with_backend(arithmetic, points)),
            Table::with_backend(arithmetic, &parameters.b_g2),
        )
    }
}

pub(crate) fn trapdoor() -> Trapdoor {
    Trapdoor::derive("porep-2k".parse().unwrap(), "toy")
}

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
    let Partition { r1cs, witness } = toy.partition();
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
            let (proof, _) = cpu.prove(&srs, toy.partition(), blinding).unwrap();
            assert_eq!(proof, reference, "{arithmetic:?}");
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
    let srs = Toy::srs(&toy(12).reference_parameters(&trapdoor()));
    let error = Device::new(Cpu::new(Arithmetic::current()))
        .prove(&srs, toy(13).partition(), Blinding::random(rand::thread_rng()))
        .unwrap_err();
    assert!(error.to_string().contains("of another circuit"), "{error}");
}
