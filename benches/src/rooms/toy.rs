//! A circuit of any size with a PoRep's kind of witness: nearly all bits, now and then a full scalar.

use std::sync::Arc;

use anyhow::Result;
use bellpepper_core::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use bellperson::groth16::{self, Parameters};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use cuzk_gpu::{
    arith::Backend,
    generate::Trapdoor,
    prover::Partition,
    srs::{self, Srs},
};
use cuzk_synth::{r1cs::R1cs, witness::CompactWitness};
use ff::Field;
use group::Group;

/// One variable in so many is a full scalar: 1.5 %, a 2 KiB PoRep has 1.6 %.
const FULL_EVERY: usize = 64;

/// Constraints are those of bits, b (1 - b) = 0, and of a chain x ↦ (x + Σ 2^i b_i)² over the bits since the last link.
#[derive(Clone, Debug)]
pub(super) struct Toy {
    constraints: usize,
    blank: bool,
}

impl Toy {
    /// A circuit whose evaluation domain has 2^log_n rows, and is full: the last three rows are the output's and those of
    /// the two public inputs.
    pub(super) fn new(log_n: u32) -> Self {
        Self { constraints: (1 << log_n) - 3, blank: false }
    }

    fn blank(&self) -> Self {
        Self { blank: true, ..self.clone() }
    }

    /// The public inputs without ONE.
    pub(super) fn public_inputs(witness: &CompactWitness) -> Vec<Scalar> {
        witness.inputs()[1..].to_vec()
    }

    pub(super) fn record(&self) -> Result<R1cs> {
        Ok(R1cs::record(self.blank())?)
    }

    pub(super) fn witness(&self) -> Result<CompactWitness> {
        Ok(CompactWitness::of_circuit(self.clone())?)
    }

    pub(super) fn partition(&self) -> Result<Partition> {
        Ok(Partition::new(Arc::new(self.record()?), self.witness()?.into()))
    }

    /// Parameters made by bellperson from a known secret.
    pub(super) fn parameters(&self) -> Result<Parameters<Bls12>> {
        let secret = Trapdoor::derive(super::CIRCUIT, "toy");
        Ok(groth16::generate_parameters(
            self.blank(),
            G1Projective::generator(),
            G2Projective::generator(),
            secret.alpha,
            secret.beta,
            secret.gamma,
            secret.delta,
            secret.tau,
        )?)
    }

    /// The same parameters in our form, in memory.
    pub(super) fn srs(parameters: &Parameters<Bls12>, arithmetic: Backend) -> Result<Srs> {
        let mut file = tempfile::NamedTempFile::new()?;
        parameters.write(&mut file)?;
        Ok(srs::read(file.path(), arithmetic)?)
    }
}

impl Circuit<Scalar> for Toy {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let value = |v: Scalar| {
            if self.blank { Err(SynthesisError::AssignmentMissing) } else { Ok(v) }
        };
        let (mut chain, mut chain_value) = (LinearCombination::<Scalar>::zero() + CS::one(), Scalar::ONE);
        // Any fixed bits do; these are those of a linear congruential generator (Knuth's MMIX).
        let mut state = 1u64;
        let mut weight = Scalar::ONE;
        for i in 1..=self.constraints {
            if i % FULL_EVERY == 0 {
                let square = chain_value.square();
                let link = cs.alloc(|| "link", || value(square))?;
                cs.enforce(|| "square", |_| chain.clone(), |_| chain.clone(), |lc| lc + link);
                (chain, chain_value, weight) = (LinearCombination::zero() + link, square, Scalar::ONE);
            } else {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bit_value = Scalar::from(state >> 63);
                let bit = cs.alloc(|| "bit", || value(bit_value))?;
                cs.enforce(|| "bit", |lc| lc + bit, |lc| lc + CS::one() - bit, |lc| lc);
                chain = chain + (weight, bit);
                chain_value += weight * bit_value;
                weight = weight.double();
            }
        }
        let output = cs.alloc_input(|| "output", || value(chain_value))?;
        cs.enforce(|| "output", |_| chain, |lc| lc + CS::one(), |lc| lc + output);
        Ok(())
    }
}
