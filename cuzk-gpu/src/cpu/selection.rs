//! The witness as a query sees it: which of its points count nothing, once, or a full scalar's times.

use blstrs::Scalar;
use cuzk_synth::bitmap::Bitmap;
use ff::Field;

use crate::arith::{curve::Curve, table::Table};

/// A witness restricted to the variables of a query and split by value. In a PoRep 98 of 100 values are 0 or 1: a 0
/// costs nothing, a 1 one addition, and only the rest goes through windows and buckets.
#[derive(Debug)]
pub struct Selection {
    ones: Bitmap,
    indices: Vec<u32>,
    scalars: Vec<Scalar>,
}

impl Selection {
    /// Splits the values of a query's variables, in the order of its points.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a Scalar>) -> Self {
        let mut selection = Self { ones: Bitmap::default(), indices: Vec::new(), scalars: Vec::new() };
        for value in values {
            let one = *value == Scalar::ONE;
            if !one && *value != Scalar::ZERO {
                let index = u32::try_from(selection.ones.len()).expect("queries have less than 2^32 points");
                selection.indices.push(index);
                selection.scalars.push(*value);
            }
            selection.ones.push(one);
        }
        selection
    }

    /// Σ w_i P_i over the points of a query.
    pub(super) fn sum<C: Curve>(&self, points: &Table<C>) -> C::Projective {
        points.sum_selected(self.ones.words()) + points.msm_indexed(&self.indices, &self.scalars)
    }
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Affine, G1Projective};
    use group::{Curve as _, Group};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;
    use crate::arith::{backend::Backend, curve::G1};

    #[test]
    fn the_parts_sum_to_the_whole() {
        let mut rng = StdRng::seed_from_u64(1);
        let points: Vec<G1Affine> = (0..200).map(|_| G1Projective::random(&mut rng).to_affine()).collect();
        for full_in_ten in [0, 1, 10] {
            let values: Vec<Scalar> = points
                .iter()
                .map(|_| match rng.gen_range(0..10) {
                    d if d < full_in_ten => Scalar::random(&mut rng),
                    d => Scalar::from(d % 2),
                })
                .collect();
            let expected: G1Projective = points.iter().zip(&values).map(|(p, v)| *p * v).sum();
            for backend in Backend::available() {
                let table = Table::<G1>::with_backend(backend, &points);
                assert_eq!(Selection::of(values.iter()).sum(&table), expected);
            }
        }
    }
}
