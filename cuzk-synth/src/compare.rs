//! A synthesis compared with the circuit's own, value by value while the circuit is synthesized: nothing of the circuit's is
//! kept, so the largest circuits fit into memory.

use bellpepper_core::{Circuit, SynthesisError};
use blstrs::Scalar;
use ff::Field;

use crate::{
    planes::{Planes, Rows},
    synthesis::Synthesis,
    visit::{Lc, Visitor, visit},
    witness::Value,
};

/// Where a synthesis is not the circuit's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// A public input.
    #[error("public input {0} has another value in the circuit")]
    Input(usize),
    /// An auxiliary variable.
    #[error("auxiliary variable {0} has another value in the circuit")]
    Aux(usize),
    /// The left factor of a constraint.
    #[error("the left factor of constraint {0} has another value in the circuit")]
    A(usize),
    /// The right factor of a constraint.
    #[error("the right factor of constraint {0} has another value in the circuit")]
    B(usize),
    /// How many there are.
    #[error("there are {found} {of}, in the circuit {expected}")]
    Number {
        /// What is counted.
        of: &'static str,
        /// In the synthesis.
        found: usize,
        /// In the circuit.
        expected: usize,
    },
    /// There is nothing to compare with.
    #[error("the circuit cannot be synthesized: {0}")]
    Circuit(String),
}

/// Compares all values of a synthesis with those of a circuit that knows its values; those of constraints if it has any.
///
/// # Errors
/// The first difference.
pub fn compare<C: Circuit<Scalar>>(synthesis: Synthesis, circuit: C) -> Result<(), Difference> {
    let (comparison, run) = visit(Comparison { synthesis, ..Comparison::default() }, circuit);
    if let Some(difference) = comparison.difference {
        return Err(difference);
    }
    run.map_err(|error| Difference::Circuit(error.to_string()))?;
    comparison.finish()
}

/// A synthesis beside a circuit's: what the circuit has so far is equal, up to the difference.
#[derive(Default)]
struct Comparison {
    synthesis: Synthesis,
    inputs: usize,
    aux: usize,
    constraints: usize,
    difference: Option<Difference>,
}

impl Comparison {
    /// Goes on, or stops the circuit at the first difference.
    fn expect(&mut self, equal: bool, difference: Difference) -> Result<(), SynthesisError> {
        if equal {
            return Ok(());
        }
        self.difference.get_or_insert(difference);
        Err(SynthesisError::Unsatisfiable)
    }

    /// The value of a linear combination of variables that were equal.
    fn value(&self, lc: &Lc) -> Scalar {
        let witness = &self.synthesis.witness;
        let mut sum = Scalar::ZERO;
        for (&i, coefficient) in lc.iter_inputs() {
            sum += witness.inputs()[i] * coefficient;
        }
        for (&i, coefficient) in lc.iter_aux() {
            match witness.aux(i) {
                Value::Zero => {}
                Value::One => sum += coefficient,
                Value::Full(value) => sum += value * coefficient,
            }
        }
        sum
    }

    /// What comes after the circuit's end.
    fn finish(self) -> Result<(), Difference> {
        let Synthesis { witness, rows } = &self.synthesis;
        let number = |of, found, expected| {
            if found == expected { Ok(()) } else { Err(Difference::Number { of, found, expected }) }
        };
        number("public inputs", witness.inputs().len(), self.inputs)?;
        number("auxiliary variables", witness.num_aux(), self.aux)?;
        if let Some(Rows { a, b }) = rows {
            let constraints = self.constraints + self.inputs;
            number("left factors", a.len(), constraints)?;
            number("right factors", b.len(), constraints)?;
            for (i, input) in (self.constraints..).zip(witness.inputs()) {
                if a.value(i) != *input {
                    return Err(Difference::A(i));
                }
                if b.value(i) != Scalar::ZERO {
                    return Err(Difference::B(i));
                }
            }
        }
        Ok(())
    }
}

impl Visitor for Comparison {
    fn alloc(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        let (i, value) = (self.aux, value()?);
        let witness = &self.synthesis.witness;
        let equal = i < witness.num_aux() && witness.aux(i).scalar() == value;
        self.expect(self.difference.is_none() && equal, Difference::Aux(i))?;
        self.aux += 1;
        Ok(i)
    }

    fn alloc_input(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        let (i, value) = (self.inputs, value()?);
        let equal = self.synthesis.witness.inputs().get(i) == Some(&value);
        self.expect(self.difference.is_none() && equal, Difference::Input(i))?;
        self.inputs += 1;
        Ok(i)
    }

    fn enforce(
        &mut self,
        _: impl FnOnce() -> String,
        a: impl FnOnce() -> Lc,
        b: impl FnOnce() -> Lc,
        _: impl FnOnce() -> Lc,
    ) {
        let i = self.constraints;
        self.constraints += 1;
        let (Some(rows), None) = (&self.synthesis.rows, &self.difference) else { return };
        let equals = |planes: &Planes, lc: &Lc| i < planes.len() && planes.value(i) == self.value(lc);
        if !equals(&rows.a, &a()) {
            self.difference = Some(Difference::A(i));
        } else if !equals(&rows.b, &b()) {
            self.difference = Some(Difference::B(i));
        }
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::ConstraintSystem;

    use super::*;
    use crate::{assignment::Assignment, witness::CompactWitness};

    /// x y = z for a public z.
    #[derive(Clone)]
    struct Product(u64, u64);

    impl Circuit<Scalar> for Product {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let x = cs.alloc(|| "x", || Ok(Scalar::from(self.0)))?;
            let y = cs.alloc(|| "y", || Ok(Scalar::from(self.1)))?;
            let z = cs.alloc_input(|| "z", || Ok(Scalar::from(self.0 * self.1)))?;
            cs.enforce(|| "product", |lc| lc + x, |lc| lc + y, |lc| lc + z);
            cs.enforce(|| "one", |lc| lc + (Scalar::from(3), CS::one()) - x, |lc| lc, |lc| lc);
            Ok(())
        }
    }

    /// That of the product, with something changed.
    fn changed(change: impl FnOnce(&mut Assignment)) -> Result<(), Difference> {
        let circuit = Product(1, 7);
        let mut plain = Assignment::synthesize(circuit.clone()).expect("it knows its values");
        change(&mut plain);
        let [a, b] = [plain.a, plain.b].map(Planes::from_plain);
        let witness = CompactWitness::from_plain(plain.inputs, plain.aux);
        compare(Synthesis { witness, rows: Some(Rows { a, b }) }, circuit)
    }

    #[test]
    fn every_difference_is_found_and_named() {
        assert_eq!(changed(|_| ()), Ok(()));
        let other = Scalar::from(5);
        assert_eq!(changed(|plain| plain.inputs[1] = other), Err(Difference::Input(1)));
        assert_eq!(changed(|plain| plain.aux[0] = other), Err(Difference::Aux(0)));
        // Two constraints, and one for each public input.
        for i in 0..4 {
            assert_eq!(changed(|plain| plain.a[i] = other), Err(Difference::A(i)));
            assert_eq!(changed(|plain| plain.b[i] = other), Err(Difference::B(i)));
        }
    }

    #[test]
    fn too_few_and_too_many_are_found() {
        assert_eq!(changed(|plain| plain.aux.truncate(1)), Err(Difference::Aux(1)));
        assert_eq!(changed(|plain| plain.inputs.truncate(1)), Err(Difference::Input(1)));
        assert_eq!(changed(|plain| plain.a.truncate(1)), Err(Difference::A(1)));
        let number = |of, found, expected| Err(Difference::Number { of, found, expected });
        assert_eq!(changed(|plain| plain.b.truncate(3)), number("right factors", 3, 4));
        assert_eq!(changed(|plain| plain.aux.push(Scalar::ONE)), number("auxiliary variables", 3, 2));
        assert_eq!(changed(|plain| plain.inputs.push(Scalar::ONE)), number("public inputs", 3, 2));
        assert_eq!(changed(|plain| plain.a.push(Scalar::ONE)), number("left factors", 5, 4));
    }

    #[test]
    fn a_witness_alone_is_compared_without_constraints() {
        let witness = CompactWitness::of_circuit(Product(2, 3)).expect("it knows its values");
        assert_eq!(compare(witness.clone().into(), Product(2, 3)), Ok(()));
        assert_eq!(compare(witness.into(), Product(2, 4)), Err(Difference::Aux(1)));
    }
}
