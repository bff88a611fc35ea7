//! What a circuit's proofs need on a device, in numbers. Pure.

use cuzk_synth::r1cs::R1cs;

use crate::cuda::{arena::Layout, msm, ntt::quotient};

/// Variables, or rows, up to which there is room for any values.
const SMALL: usize = 1 << 16;
/// Of so many variables of a large circuit one may be neither 0 nor 1. In PoReps it is one of 62 to 77.
const VARIABLES_A_FULL_VALUE: usize = 40;
/// Of so many rows of a large circuit one may have a value other than 0, 1, 2 and -1. In PoReps it is one of 71.
const ROWS_AN_EXCEPTION: usize = 16;

/// The numbers of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Public inputs, ONE included.
    pub num_inputs: usize,
    /// Auxiliary variables.
    pub num_aux: usize,
    /// Rows, those of the public inputs included.
    pub num_rows: usize,
    /// log2 of the domain.
    pub log_n: u32,
    /// Points of the queries h, l, a, b_g1.
    pub points: [usize; 4],
    /// The most full values that a witness may have, public inputs included.
    pub values: usize,
    /// The most rows of A, of B, and of their product whose value may be other than 0, 1, 2 and -1.
    pub exceptions: usize,
}

impl Shape {
    /// Of a constraint system.
    pub fn of(r1cs: &R1cs) -> Self {
        let density = &r1cs.density;
        let a = r1cs.num_inputs + density.a_aux.count_ones();
        let b = density.b_inputs.count_ones() + density.b_aux.count_ones();
        let domain = 1 << r1cs.log_domain();
        let room = |n: usize, one_of: usize| if n <= SMALL { n } else { n / one_of };
        Self {
            num_inputs: r1cs.num_inputs,
            num_aux: r1cs.num_aux,
            num_rows: r1cs.num_constraints(),
            log_n: r1cs.log_domain(),
            points: [domain - 1, r1cs.num_aux, a, b],
            values: r1cs.num_inputs + room(r1cs.num_aux, VARIABLES_A_FULL_VALUE),
            exceptions: room(domain, ROWS_AN_EXCEPTION),
        }
    }

    /// Whether this is the same circuit as far as numbers tell.
    ///
    /// # Errors
    /// What differs, with both numbers.
    pub fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        let ours = [self.num_inputs, self.num_aux, self.num_rows];
        let theirs = [r1cs.num_inputs, r1cs.num_aux, r1cs.num_constraints()];
        match ours == theirs {
            true => Ok(()),
            false => Err(format!(
                "the parameters are of another circuit: {ours:?} public inputs, auxiliary variables and rows, the \
                 partition has {theirs:?}"
            )),
        }
    }

    /// Words of 32 variables of a bitmap, which comes in words of 64.
    pub fn bitmap_words(&self) -> usize {
        2 * self.num_aux.div_ceil(64)
    }

    /// The sum over h, with this many tables of multiples, on a device with `sms` multiprocessors.
    pub fn h_request(&self, tables: usize, sms: usize, workspace: usize) -> msm::Request {
        let [points, ..] = self.points;
        let queries = vec![msm::Size { points, scalars: points, bits: 0 }];
        msm::Request { queries, tables, streamed: false, workspace, point_bytes: 96, sms }
    }

    /// The sums over l, a and b_g1.
    pub fn witness_request(&self, sms: usize, workspace: usize) -> msm::Request {
        let [_, queries @ ..] = self.points;
        let query = |points| msm::Size { points, scalars: self.values, bits: self.num_aux };
        let queries = queries.map(query).to_vec();
        msm::Request { queries, tables: 1, streamed: false, workspace, point_bytes: 96, sms }
    }

    /// The most tables of multiples of h, up to `most`, with which everything fits `bytes` of device memory. `None` if
    /// not even the points themselves do.
    pub fn tables(&self, most: usize, sms: usize, workers: usize, bytes: usize) -> Option<usize> {
        (1..=most).rev().find(|&tables| self.bytes(tables, sms, workers).is_some_and(|needed| needed <= bytes))
    }

    /// Bytes of device memory of the circuit with everything resident: matrices not counted.
    fn bytes(&self, tables: usize, sms: usize, workers: usize) -> Option<usize> {
        let [h, l, a, b] = self.points;
        let mut layout = Layout::new();
        quotient::Workspace::plan(&mut layout, self.log_n, self.exceptions);
        let sums = [self.h_request(tables, sms, usize::MAX), self.witness_request(sms, usize::MAX)];
        let workspace = sums.into_iter().map(|r| msm::Plan::choose(r).map(|plan| plan.workspace_bytes()));
        let workspace = workspace.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let staging = 2 * 4 * self.bitmap_words() + 32 * self.values + self.num_aux / 2;
        let points = 96 * (tables * h + l + a + b);
        Some(points + layout.bytes() + workspace + workers * staging + crate::cuda::ntt::table::bytes(self.log_n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_circuits_may_hold_anything() {
        let toy = crate::toy::Toy { seed: 1, constraints: 40, percent_inputs: 20, b_constant: false, blank: true };
        let r1cs = R1cs::record(toy).expect("it can be recorded");
        let shape = Shape::of(&r1cs);
        assert_eq!(shape.values, r1cs.num_variables());
        assert_eq!((shape.exceptions, shape.points[0]), (1 << shape.log_n, (1 << shape.log_n) - 1));
        assert_eq!(shape.fits(&r1cs), Ok(()));
        assert!(Shape { num_aux: 1, ..shape }.fits(&r1cs).is_err());
    }

    #[test]
    fn as_many_tables_as_fit() {
        let shape = Shape {
            num_inputs: 328,
            num_aux: 130_169_893,
            num_rows: 130_278_869,
            log_n: 27,
            points: [(1 << 27) - 1, 130_169_893, 130_170_221, 33_100_000],
            values: 3_300_000,
            exceptions: 1 << 23,
        };
        assert_eq!(shape.tables(4, 132, 2, 140 << 30), Some(4));
        assert!(shape.tables(4, 132, 2, 90 << 30).is_some_and(|tables| tables < 4));
        assert_eq!(shape.tables(4, 132, 2, 16 << 30), None);
    }
}
