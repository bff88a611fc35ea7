//! The constraint system of a circuit: its matrices, recorded once from a blank instance and kept in a file.
//!
//! Columns number all variables, public inputs first: column `i < num_inputs` is input `i` (ONE is 0), column
//! `num_inputs + j` is auxiliary variable `j`. Circuits allocate inputs between constraints, so the number of inputs
//! is only known at the end: while recording, a column carries its class in its lowest bit.

mod cache;
mod eval;
mod file;
mod record;
mod section;

use bellpepper_core::Circuit;
use blstrs::Scalar;

use crate::{assignment::Density, bitmap::Bitmap};

pub use cache::{CacheError, cache_path, open_or_record};
pub use eval::{Check, Wrong};
pub use file::FileError;
pub use record::RecordError;
pub use section::Section;

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
    /// The distinct coefficients of all three matrices; the first is one, none is zero.
    pub coefficients: Section<Scalar>,
    /// Which variables occur in A and B.
    pub density: Density,
}

/// A sparse matrix in compressed rows, 6 bytes an entry and 4 a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Entries of row `i` are `starts[i]..starts[i + 1]`.
    pub starts: Section<u32>,
    /// The column of each entry.
    pub columns: Section<u32>,
    /// The index of each entry's coefficient.
    pub values: Section<u16>,
}

impl R1cs {
    /// Records a circuit that need not know its values, with the constraint `input_i * 0 = 0` appended for every
    /// public input (see [`crate::assignment::Assignment::synthesize`]).
    pub fn record<C: Circuit<Scalar>>(circuit: C) -> Result<Self, RecordError> {
        record::record(circuit)
    }

    /// Puts the parts together and finds the densities.
    fn new(num_inputs: usize, num_aux: usize, [a, b, c]: [Matrix; 3], coefficients: Section<Scalar>) -> Self {
        let mut density = Density {
            a_aux: Bitmap::zeros(num_aux),
            b_inputs: Bitmap::zeros(num_inputs),
            b_aux: Bitmap::zeros(num_aux),
        };
        for &column in &a.columns[..] {
            if let Some(j) = (column as usize).checked_sub(num_inputs) {
                density.a_aux.set(j);
            }
        }
        for &column in &b.columns[..] {
            match (column as usize).checked_sub(num_inputs) {
                Some(j) => density.b_aux.set(j),
                None => density.b_inputs.set(column as usize),
            }
        }
        Self { num_inputs, num_aux, a, b, c, coefficients, density }
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

    /// Bytes of the matrices, in memory as in a file.
    pub fn bytes(&self) -> u64 {
        let matrices = [&self.a, &self.b, &self.c].map(Matrix::bytes);
        matrices.iter().sum::<u64>() + size_of_val(&self.coefficients[..]) as u64
    }
}

impl Matrix {
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of entries.
    pub fn num_entries(&self) -> usize {
        self.columns.len()
    }

    /// The entries of one row: column and coefficient index.
    #[inline]
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        std::iter::zip(&self.columns[range.clone()], &self.values[range])
            .map(|(&column, &value)| (column as usize, value as usize))
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&self.starts[..]) + size_of_val(&self.columns[..]) + size_of_val(&self.values[..])) as u64
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::{ConstraintSystem, SynthesisError};
    use ff::Field;

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
