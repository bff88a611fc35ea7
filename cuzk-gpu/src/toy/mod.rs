//! Small circuits for tests and for checks on devices, their parameters made by bellperson.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bellpepper_core::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use bellperson::groth16::{self, Parameters};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use cuzk_synth::{
    planes::{Planes, Rows},
    r1cs::R1cs,
    synthesis::Synthesis,
    witness::CompactWitness,
};
use ff::Field;
use group::Group;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    arith::{backend::Backend as Arithmetic, table::Table},
    generate::Trapdoor,
    prover::Partition,
    srs::Srs,
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
    pub(crate) fn blank(&self) -> Self {
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
        .expect("the circuit can be synthesized without values")
    }

    /// The circuit with its values, ready to be proven.
    pub(crate) fn partition(&self) -> Partition {
        let witness = CompactWitness::of_circuit(self.clone()).expect("the circuit knows its values");
        let r1cs = R1cs::record(self.blank()).expect("the circuit can be recorded");
        Partition::new(Arc::new(r1cs), witness.into())
    }

    /// The same with the values of its constraints' factors.
    pub(crate) fn partition_with_rows(&self) -> Partition {
        let Partition { r1cs, witness, .. } = self.partition();
        let planes = |matrix| Planes::from_plain(r1cs.multiply(matrix, &witness));
        let rows = Some(Rows { a: planes(&r1cs.a), b: planes(&r1cs.b) });
        Partition::new(r1cs, Synthesis { witness, rows })
    }

    /// The same in our form, those of G1 for an arithmetic.
    pub(crate) fn srs(parameters: &Parameters<Bls12>, arithmetic: Arithmetic) -> Srs {
        let g1 = [&parameters.h, &parameters.l, &parameters.a, &parameters.b_g1];
        Srs::new(
            parameters.vk.clone(),
            g1.map(|points| Table::with_backend(arithmetic, points)),
            Table::with_backend(Arithmetic::current(), &parameters.b_g2),
        )
    }
}

pub(crate) fn trapdoor() -> Trapdoor {
    Trapdoor::derive("porep-2k".parse().expect("a circuit of the network"), "toy")
}
