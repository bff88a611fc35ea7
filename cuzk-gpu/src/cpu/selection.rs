//! The witness as a query sees it: which of its points count nothing, once, or a full scalar's times.

use blstrs::Scalar;
use cuzk_synth::{bitmap::Bitmap, witness::CompactWitness};
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
    /// The part of a witness that a query is about: these inputs, then the auxiliary variables in `mask` (all without
    /// one), in the order of the query's points.
    pub(crate) fn new(inputs: &[Scalar], witness: &CompactWitness, mask: Option<&Bitmap>) -> Self {
        let mut selection = Self { ones: Bitmap::default(), indices: Vec::new(), scalars: Vec::new() };
        for (i, input) in inputs.iter().enumerate() {
            let one = *input == Scalar::ONE;
            selection.ones.push(one);
            if !one && *input != Scalar::ZERO {
                selection.indices.push(i as u32);
                selection.scalars.push(*input);
            }
        }
        let place = |i: usize| u32::try_from(inputs.len() + i).expect("queries have less than 2^32 points");
        match mask {
            None => {
                let all = Bitmap::ones(witness.num_aux());
                witness.ones().select_into(&all, &mut selection.ones);
                selection.indices.extend(witness.full().iter_ones().map(place));
                selection.scalars.extend_from_slice(witness.scalars());
            }
            Some(mask) => {
                witness.ones().select_into(mask, &mut selection.ones);
                let mut full = Bitmap::default();
                witness.full().select_into(mask, &mut full);
                selection.indices.extend(full.iter_ones().map(place));
                let values = witness.full().iter_ones().zip(witness.scalars());
                selection.scalars.extend(values.filter(|(i, _)| mask.get(*i)).map(|(_, value)| *value));
            }
        }
        selection
    }

    /// Σ w_i P_i over the points of a query.
    pub(crate) fn sum<C: Curve>(&self, points: &Table<C>) -> C::Projective {
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
            let mut mask = Bitmap::default();
            values.iter().for_each(|_| mask.push(rng.r#gen()));
            // The first three are inputs of the query.
            let witness = CompactWitness::from_plain(vec![Scalar::ONE], values[3..].iter().copied());
            let mask = Bitmap::from_words(mask.words().to_vec(), 200).unwrap();
            let selected = {
                let mut rest = Bitmap::default();
                (3..200).for_each(|i| rest.push(mask.get(i)));
                rest
            };
            let kept: Vec<usize> = (0..200).filter(|&i| i < 3 || mask.get(i)).collect();
            let expected: G1Projective = (0..).zip(&kept).map(|(place, &i)| points[place as usize] * values[i]).sum();
            let whole: G1Projective = points.iter().zip(&values).map(|(p, v)| *p * v).sum();
            for backend in Backend::available() {
                let table = Table::<G1>::with_backend(backend, &points);
                let part = Selection::new(&values[..3], &witness, Some(&selected));
                assert_eq!(part.sum(&table), expected);
                assert_eq!(Selection::new(&values[..3], &witness, None).sum(&table), whole);
            }
        }
    }
}
