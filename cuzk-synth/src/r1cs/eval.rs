//! The matrices at a witness: values of rows, and whether the constraints hold.

use blstrs::Scalar;
use ff::Field;
use rand::Rng;
use rayon::prelude::*;

use super::{Matrix, R1cs};
use crate::{
    planes::Planes,
    synthesis::Synthesis,
    witness::{CompactWitness, Value},
};

/// How much of a witness is checked before it is proven. A wrong one passes unseen through the prover (which takes C for
/// the product of A and B); only the proof's verification would find it, without naming the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Nothing.
    Off,
    /// One block of 64 rows in every 4,096, at random places.
    #[default]
    Sampled,
    /// Every row.
    Full,
}

/// A constraint at which a synthesis is wrong, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The witness does not satisfy it.
    Unsatisfied(usize),
    /// The witness does, but its factors, as they were synthesized, are not those of the matrices.
    Factors(usize),
}

/// Rows checked together.
const BLOCK: usize = 64;

impl R1cs {
    /// Value of row `i` of a matrix of this system. One product for each entry whose variable and coefficient are both
    /// neither 0 nor 1, one addition for each entry whose variable is not 0.
    #[inline]
    fn row_value(&self, matrix: &Matrix, i: usize, witness: &CompactWitness) -> Scalar {
        let mut sum = Scalar::ZERO;
        for (column, index) in matrix.row(i) {
            let value = match column.checked_sub(self.num_inputs) {
                Some(j) => witness.aux(j),
                None if column == 0 => Value::One,
                None => Value::Full(&witness.inputs()[column]),
            };
            match value {
                Value::Zero => {}
                Value::One => sum += self.coefficients[index],
                Value::Full(value) if index == 0 => sum += value,
                Value::Full(value) => sum += *value * self.coefficients[index],
            }
        }
        sum
    }

    /// Writes the values of rows `first..first + values.len()` of a matrix; rows past the last are zero.
    pub fn fill(&self, matrix: &Matrix, witness: &CompactWitness, first: usize, values: &mut [Scalar]) {
        let rows = matrix.num_rows();
        for (i, value) in (first..).zip(values) {
            *value = if i < rows { self.row_value(matrix, i, witness) } else { Scalar::ZERO };
        }
    }

    /// All row values of a matrix. Parallel on the current rayon pool.
    pub fn multiply(&self, matrix: &Matrix, witness: &CompactWitness) -> Vec<Scalar> {
        let mut values = vec![Scalar::ZERO; matrix.num_rows()];
        values.par_chunks_mut(1 << 12).enumerate().for_each(|(i, chunk)| self.fill(matrix, witness, i << 12, chunk));
        values
    }

    /// The first constraint found that the witness does not satisfy, by index: with [`Check::Full`] the very first.
    /// Parallel on the current rayon pool.
    pub fn first_unsatisfied(&self, witness: &CompactWitness, check: Check) -> Option<usize> {
        self.first_row(check, |i| {
            let [a, b, c] = self.row_values(i, witness);
            (a * b != c).then_some(i)
        })
    }

    /// As [`Self::first_unsatisfied`], for all that a synthesis left: where there are A·w and B·w, they must be what the
    /// matrices make of the witness.
    pub fn first_wrong(&self, Synthesis { witness, rows }: &Synthesis, check: Check) -> Option<Wrong> {
        self.first_row(check, |i| {
            let [a, b, c] = self.row_values(i, witness);
            if a * b != c {
                return Some(Wrong::Unsatisfied(i));
            }
            let differs = |planes: &Planes, value| i >= planes.len() || planes.value(i) != value;
            let rows = rows.as_ref()?;
            (differs(&rows.a, a) || differs(&rows.b, b)).then_some(Wrong::Factors(i))
        })
    }

    fn row_values(&self, i: usize, witness: &CompactWitness) -> [Scalar; 3] {
        [&self.a, &self.b, &self.c].map(|matrix| self.row_value(matrix, i, witness))
    }

    /// What `test` first finds in the rows that are to be checked.
    fn first_row<T: Send>(&self, check: Check, test: impl Fn(usize) -> Option<T> + Sync) -> Option<T> {
        let blocks = self.num_constraints().div_ceil(BLOCK);
        let stride = match check {
            Check::Off => return None,
            Check::Sampled => 64,
            Check::Full => 1,
        };
        (0..blocks.div_ceil(stride)).into_par_iter().find_map_first(|i| {
            let block = i * stride + if stride == 1 { 0 } else { rand::thread_rng().gen_range(0..stride) };
            (block * BLOCK..self.num_constraints().min((block + 1) * BLOCK)).find_map(&test)
        })
    }
}
