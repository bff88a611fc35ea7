//! The constraint matrices of a circuit, recorded once from a blank instance.
//!
//! Columns number all variables, public inputs first: column `i < num_inputs` is input `i` (ONE is 0), column
//! `num_inputs + j` is auxiliary variable `j`. Circuits allocate inputs between constraints, so the number of inputs
//! is only known at the end: while recording, a column carries its class in its lowest bit.

use std::collections::HashMap;

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::{Field, PrimeField};

/// The constraint system of a circuit: (A·w) ∘ (B·w) = C·w.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    /// Number of public inputs, ONE included.
    pub num_inputs: usize,
    /// Number of auxiliary variables.
    pub num_aux: usize,
    /// Left factors, the appended constraints `input_i * 0 = 0` last.
    pub a: Matrix,
    /// Right factors.
    pub b: Matrix,
    /// Products.
    pub c: Matrix,
    /// The distinct coefficients of all three matrices; none is zero.
    pub coefficients: Vec<Scalar>,
}

/// A sparse matrix in compressed rows, 6 bytes an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Entries of row `i` are `starts[i]..starts[i + 1]`.
    pub starts: Vec<u64>,
    /// The column of each entry.
    pub columns: Vec<u32>,
    /// The index of each entry's coefficient.
    pub values: Vec<u16>,
}

/// A circuit that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The circuit itself failed.
    #[error("synthesis of the blank circuit failed: {0}")]
    Synthesis(#[from] SynthesisError),
    /// More distinct coefficients than a 16-bit index can tell apart.
    #[error("the circuit has more than {} distinct coefficients", 1 << 16)]
    TooManyCoefficients,
    /// More variables than a 31-bit index can tell apart.
    #[error("the circuit has more than {} variables of one class", 1u32 << 31)]
    TooManyVariables,
}

impl R1cs {
    /// Records a circuit that need not know its values, with the constraint `input_i * 0 = 0` appended for every
    /// public input (see [`crate::assignment::Assignment::synthesize`]).
    pub fn record<C: Circuit<Scalar>>(circuit: C) -> Result<Self, RecordError> {
        let mut recorder = Recorder::new();
        recorder.alloc_input(|| "one", || Ok(Scalar::ONE))?;
        circuit.synthesize(&mut recorder)?;
        for i in 0..recorder.num_inputs {
            recorder.enforce(|| "input", |lc| lc + Variable(Index::Input(i)), |lc| lc, |lc| lc);
        }
        recorder.finish()
    }

    /// Number of constraints, the appended ones included.
    pub fn num_constraints(&self) -> usize {
        self.a.num_rows()
    }

    /// Number of columns: public inputs and auxiliary variables.
    pub fn num_variables(&self) -> usize {
        self.num_inputs + self.num_aux
    }

    /// log2 of the size of the evaluation domain: the smallest power of two that holds all constraints.
    pub fn log_domain(&self) -> u32 {
        self.num_constraints().next_power_of_two().trailing_zeros()
    }
}

impl Matrix {
    fn empty() -> Self {
        Self { starts: vec![0], columns: Vec::new(), values: Vec::new() }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of entries.
    pub fn num_entries(&self) -> usize {
        self.columns.len()
    }

    /// The entries of one row: column and coefficient index.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        std::iter::zip(&self.columns[range.clone()], &self.values[range])
            .map(|(&column, &value)| (column as usize, value as usize))
    }
}

/// The lowest bit of a column while recording.
const AUX: u32 = 1;

struct Recorder {
    num_inputs: usize,
    num_aux: usize,
    matrices: [Matrix; 3],
    coefficients: Vec<Scalar>,
    index_of: HashMap<[u8; 32], u16>,
    error: Option<RecordError>,
}

impl Recorder {
    fn push_row(&mut self, which: usize, lc: &LinearCombination<Scalar>) {
        for (variable, coefficient) in lc.iter() {
            // A coefficient of zero (a variable added and taken away again) is no occurrence.
            if bool::from(coefficient.is_zero()) {
                continue;
            }
            let Some(value) = self.index_of(coefficient) else {
                self.error.get_or_insert(RecordError::TooManyCoefficients);
                return;
            };
            let (index, class) = match variable.0 {
                Index::Input(i) => (i, 0),
                Index::Aux(i) => (i, AUX),
            };
            if index >= 1 << 31 {
                self.error.get_or_insert(RecordError::TooManyVariables);
                return;
            }
            let matrix = &mut self.matrices[which];
            matrix.columns.push((index as u32) << 1 | class);
            matrix.values.push(value);
        }
        let matrix = &mut self.matrices[which];
        matrix.starts.push(matrix.columns.len() as u64);
    }

    fn index_of(&mut self, coefficient: &Scalar) -> Option<u16> {
        // Nearly nine in ten coefficients are the first that a circuit uses: one.
        if self.coefficients.first() == Some(coefficient) {
            return Some(0);
        }
        let key = coefficient.to_repr();
        if let Some(&index) = self.index_of.get(&key) {
            return Some(index);
        }
        let index = u16::try_from(self.coefficients.len()).ok()?;
        self.coefficients.push(*coefficient);
        self.index_of.insert(key, index);
        Some(index)
    }

    fn finish(mut self) -> Result<R1cs, RecordError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.num_inputs + self.num_aux > u32::MAX as usize {
            return Err(RecordError::TooManyVariables);
        }
        let offset = self.num_inputs as u32;
        for matrix in &mut self.matrices {
            for column in &mut matrix.columns {
                let index = *column >> 1;
                *column = if *column & AUX == 0 { index } else { offset + index };
            }
        }
        let [a, b, c] = self.matrices;
        Ok(R1cs { num_inputs: self.num_inputs, num_aux: self.num_aux, a, b, c, coefficients: self.coefficients })
    }
}

impl ConstraintSystem<Scalar> for Recorder {
    type Root = Self;

    fn new() -> Self {
        Self {
            num_inputs: 0,
            num_aux: 0,
            matrices: [Matrix::empty(), Matrix::empty(), Matrix::empty()],
            coefficients: vec![Scalar::ONE],
            index_of: HashMap::new(),
            error: None,
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.num_aux += 1;
        Ok(Variable(Index::Aux(self.num_aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.num_inputs += 1;
        Ok(Variable(Index::Input(self.num_inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        self.push_row(0, &a(LinearCombination::zero()));
        self.push_row(1, &b(LinearCombination::zero()));
        self.push_row(2, &c(LinearCombination::zero()));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::Assignment;

    /// x^3 + x + 5 = y, with the public y allocated after the first constraints.
    #[derive(Clone)]
    struct LateInput(Option<u64>);

    impl Circuit<Scalar> for LateInput {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let value = |f: fn(u64) -> u64| self.0.map(|x| Scalar::from(f(x))).ok_or(SynthesisError::AssignmentMissing);
            let x = cs.alloc(|| "x", || value(|x| x))?;
            let x2 = cs.alloc(|| "x2", || value(|x| x * x))?;
            cs.enforce(|| "square", |lc| lc + x, |lc| lc + x, |lc| lc + x2);
            let y = cs.alloc_input(|| "y", || value(|x| x * x * x + x + 5))?;
            let x3 = cs.alloc(|| "x3", || value(|x| x * x * x))?;
            // x appears with coefficient zero: no occurrence in B.
            cs.enforce(|| "cube", |lc| lc + x2, |lc| lc + x + x2 - x2, |lc| lc + x3);
            cs.enforce(|| "sum", |lc| lc + x3 + x + (Scalar::from(5), CS::one()), |lc| lc + CS::one(), |lc| lc + y);
            Ok(())
        }
    }

    #[test]
    fn columns_are_right_though_inputs_come_late() {
        let r1cs = R1cs::record(LateInput(None)).unwrap();
        assert_eq!((r1cs.num_inputs, r1cs.num_aux), (2, 3));
        // 3 constraints and 2 appended ones.
        assert_eq!(r1cs.num_constraints(), 5);
        assert_eq!(r1cs.log_domain(), 3);
        let row =
            |m: &Matrix, i| m.row(i).map(|(column, value)| (column, r1cs.coefficients[value])).collect::<Vec<_>>();
        let one = Scalar::ONE;
        assert_eq!(row(&r1cs.a, 0), [(2, one)]);
        assert_eq!(row(&r1cs.b, 1), [(2, one)]);
        assert_eq!(row(&r1cs.a, 2), [(0, Scalar::from(5)), (2, one), (4, one)]);
        assert_eq!(row(&r1cs.c, 2), [(1, one)]);
        assert_eq!(row(&r1cs.a, 3), [(0, one)]);
        assert_eq!(row(&r1cs.a, 4), [(1, one)]);
        assert_eq!(row(&r1cs.b, 4), []);
    }

    #[test]
    fn the_matrices_give_the_assignments_values_and_densities() {
        let r1cs = R1cs::record(LateInput(None)).unwrap();
        let assignment = Assignment::synthesize(LateInput(Some(3))).unwrap();
        assert_eq!(assignment.first_unsatisfied(), None);
        let w: Vec<_> = [&assignment.inputs[..], &assignment.aux[..]].concat();
        let product = |m: &Matrix| {
            (0..m.num_rows())
                .map(|i| m.row(i).map(|(column, value)| w[column] * r1cs.coefficients[value]).sum::<Scalar>())
                .collect::<Vec<_>>()
        };
        assert_eq!(product(&r1cs.a), assignment.a);
        assert_eq!(product(&r1cs.b), assignment.b);
        assert_eq!(product(&r1cs.c), assignment.c);
        let occurs = |m: &Matrix, column| m.columns.contains(&column);
        for j in 0..r1cs.num_aux {
            let column = (r1cs.num_inputs + j) as u32;
            assert_eq!(assignment.density.a_aux.get(j), occurs(&r1cs.a, column));
            assert_eq!(assignment.density.b_aux.get(j), occurs(&r1cs.b, column));
        }
        for i in 0..r1cs.num_inputs {
            assert_eq!(assignment.density.b_inputs.get(i), occurs(&r1cs.b, i as u32));
        }
    }

    #[test]
    fn a_wrong_witness_is_located() {
        let mut assignment = Assignment::synthesize(LateInput(Some(3))).unwrap();
        assignment.c[1] += Scalar::ONE;
        assert_eq!(assignment.first_unsatisfied(), Some(1));
    }
}
