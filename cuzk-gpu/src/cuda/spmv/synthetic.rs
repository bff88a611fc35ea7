//! Constraint systems and witnesses of any size with the statistics of a PoRep's.

use blstrs::Scalar;
use cuzk_synth::{
    assignment::Density,
    bitmap::Bitmap,
    r1cs::{Matrix, R1cs},
    witness::CompactWitness,
};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows, or variables, that are drawn; larger systems repeat them.
const PART: usize = 1 << 18;

/// A system of `rows` rows, as many auxiliary variables, and some public inputs. Rows repeat after 2^18, their
/// columns move along.
pub fn system(rows: usize, rng: &mut ChaCha8Rng) -> R1cs {
    let num_inputs = rows.min(40);
    let num_aux = rows;
    let coefficients: Vec<Scalar> = [Scalar::ONE, -Scalar::ONE]
        .into_iter()
        .chain(
            (1..270).map(|k| Scalar::from(2).pow_vartime([k % 135]) * if k < 135 { Scalar::ONE } else { -Scalar::ONE }),
        )
        .chain((0..2_000).map(|_| Scalar::random(&mut *rng)))
        .collect();
    let shape = Shape { rows, num_inputs, num_aux };
    let matrices = [true, false, false].map(|is_a| shape.matrix(is_a, rng));
    let [a, b, c] = matrices;
    let density =
        Density { a_aux: Bitmap::ones(num_aux), b_inputs: Bitmap::ones(num_inputs), b_aux: Bitmap::ones(num_aux) };
    R1cs { num_inputs, num_aux, a, b, c, coefficients: coefficients.into(), density }
}

/// A witness for such a system (which it does not satisfy): 987 of 1,000 values are 0 or 1.
pub fn witness(r1cs: &R1cs, rng: &mut ChaCha8Rng) -> CompactWitness {
    let part: Vec<Scalar> = (0..PART.min(r1cs.num_aux))
        .map(|_| match rng.gen_range(0..1000) {
            0..519 => Scalar::ZERO,
            519..987 => Scalar::ONE,
            987 => -Scalar::ONE,
            _ => Scalar::random(&mut *rng),
        })
        .collect();
    let inputs = (0..r1cs.num_inputs as u64).map(|i| if i == 0 { Scalar::ONE } else { Scalar::from(i % 3) });
    CompactWitness::from_plain(inputs.collect(), part.iter().copied().cycle().take(r1cs.num_aux))
}

struct Shape {
    rows: usize,
    num_inputs: usize,
    num_aux: usize,
}

impl Shape {
    fn matrix(&self, is_a: bool, rng: &mut ChaCha8Rng) -> Matrix {
        let part = PART.min(self.rows);
        let drawn: Vec<Vec<(u32, u16)>> = (0..part).map(|row| self.row(row, is_a, rng)).collect();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..self.rows {
            let moved = (row / part * part) as u32;
            for &(column, value) in &drawn[row % part] {
                // Public inputs stay where they are.
                let moved = if (column as usize) < self.num_inputs { 0 } else { moved };
                columns.push((column + moved).min((self.num_inputs + self.num_aux - 1) as u32));
                values.push(value);
            }
            starts.push(columns.len() as u32);
        }
        Matrix { starts: starts.into(), columns: columns.into(), values: values.into() }
    }

    /// A row of the lengths and coefficients that A or B of a PoRep has.
    fn row(&self, row: usize, is_a: bool, rng: &mut ChaCha8Rng) -> Vec<(u32, u16)> {
        let len = match (is_a, rng.gen_range(0..10_000)) {
            (_, 0) => 0,
            (false, 1..5) => 2,
            (false, _) => 1,
            (true, 1..11) => rng.gen_range(353..930),
            (true, 11..41) => rng.gen_range(9..70),
            (true, 41..828) => 3,
            (true, 828..4073) => 2,
            (true, _) => 1,
        };
        (0..len)
            .map(|entry| {
                let column = match rng.gen_range(0..10) {
                    0 if is_a => 0,
                    1 if is_a && row.is_multiple_of(64) => rng.gen_range(0..self.num_inputs),
                    // Near the row, as circuits allocate.
                    _ => self.num_inputs + (row + rng.gen_range(0..2_000)).saturating_sub(1_000).min(self.num_aux - 1),
                };
                // Short rows hold 1, -1, 2 and give small values; long ones powers of two and anything else.
                let value = match rng.gen_range(0..100) {
                    0 => rng.gen_range(0..2_271),
                    _ if len > 3 => rng.gen_range(2..2_271),
                    1..40 if is_a && len == 1 => rng.gen_range(1..3),
                    _ => u16::from(entry == 2),
                };
                (column as u32, value)
            })
            .collect()
    }
}

/// The generator of a system that is the same each time.
pub fn generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(27)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_whole_and_repeat() {
        for rows in [1, 7, 1000, PART + 100] {
            let r1cs = system(rows, &mut generator());
            assert_eq!((r1cs.num_constraints(), r1cs.num_aux), (rows, rows));
            let (variables, coefficients) = (r1cs.num_variables() as u32, r1cs.coefficients.len());
            for matrix in [&r1cs.a, &r1cs.b] {
                assert_eq!(matrix.starts[rows] as usize, matrix.num_entries());
                assert!(matrix.columns.iter().all(|&column| column < variables));
                assert!(matrix.values.iter().all(|&value| (value as usize) < coefficients));
            }
            let witness = witness(&r1cs, &mut generator());
            assert_eq!((witness.inputs().len(), witness.num_aux()), (r1cs.num_inputs, r1cs.num_aux));
        }
    }
}
