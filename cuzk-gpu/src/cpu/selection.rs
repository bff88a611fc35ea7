//! The witness as a query sees it: which of its points count nothing, once, or a full scalar's times.

use std::mem;

use blstrs::Scalar;
use cuzk_synth::{bitmap::Bitmap, witness::CompactWitness};
use ff::Field;
use rayon::prelude::*;

use crate::arith::{curve::Curve, table::Table};

/// Variables that one thread looks at together: whole words.
const PART: usize = 1 << 20;

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
    /// one), in the order of the query's points. Parallel on the current rayon pool.
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
                let words = || (0..witness.num_aux()).step_by(PART);
                // Full values before each part.
                let before = words()
                    .scan(0, |sum, first| Some(mem::replace(sum, *sum + part(witness.full(), first).count_ones())));
                let parts: Vec<(usize, usize)> = words().zip(before).collect();
                let parts = parts.into_par_iter().map(|(first, before)| {
                    let [ones, full, mask] = [witness.ones(), witness.full(), mask].map(|bits| part(bits, first));
                    Self::of_part(&ones, &full, &mask, &witness.scalars()[before..])
                });
                for Self { ones, indices, scalars } in parts.collect::<Vec<_>>() {
                    let selected = selection.ones.len() as u32;
                    selection.indices.extend(indices.iter().map(|i| selected + i));
                    selection.scalars.extend(scalars);
                    selection.ones.append(&ones);
                }
            }
        }
        selection
    }

    /// Of variables that are 1, or full with these values, those in a mask.
    fn of_part(ones: &Bitmap, full: &Bitmap, mask: &Bitmap, values: &[Scalar]) -> Self {
        let (mut selected, mut selected_full) = (Bitmap::default(), Bitmap::default());
        ones.select_into(mask, &mut selected);
        full.select_into(mask, &mut selected_full);
        let values = full.iter_ones().zip(values).filter(|(i, _)| mask.get(*i));
        Self {
            ones: selected,
            indices: selected_full.iter_ones().map(|i| i as u32).collect(),
            scalars: values.map(|(_, value)| *value).collect(),
        }
    }

    /// Σ w_i P_i over the points of a query.
    pub(crate) fn sum<C: Curve>(&self, points: &Table<C>) -> C::Projective {
        points.sum_selected(self.ones.words()) + points.msm_indexed(&self.indices, &self.scalars)
    }
}

/// The positions of a part of a bitmap.
fn part(bits: &Bitmap, first: usize) -> Bitmap {
    let len = PART.min(bits.len() - first);
    let words = bits.words()[first / 64..][..len.div_ceil(64)].to_vec();
    Bitmap::from_words(words, len)
        .expect("bits past the end of a bitmap are zero, and only the last part has an end there")
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

    #[test]
    fn parts_are_joined_in_order() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let len = 2 * PART + 77;
        let values: Vec<Scalar> = (0..len).map(|_| Scalar::from(rng.gen_range(0..3u64))).collect();
        let mut mask = Bitmap::default();
        values.iter().for_each(|_| mask.push(rng.gen_range(0..8) == 0));
        let witness = CompactWitness::from_plain(vec![Scalar::ONE], values.iter().copied());
        let Selection { ones, indices, scalars } = Selection::new(&[Scalar::from(7)], &witness, Some(&mask));
        let kept: Vec<Scalar> = [Scalar::from(7)].into_iter().chain(mask.iter_ones().map(|i| values[i])).collect();
        assert_eq!(ones.len(), kept.len());
        assert!(kept.iter().enumerate().all(|(i, value)| ones.get(i) == (*value == Scalar::ONE)));
        let full = |i: &usize| kept[*i] != Scalar::ONE && kept[*i] != Scalar::ZERO;
        let expected: Vec<usize> = (0..kept.len()).filter(full).collect();
        assert!(indices.iter().map(|i| *i as usize).eq(expected.iter().copied()), "seed {seed}");
        assert!(scalars.iter().eq(expected.iter().map(|i| &kept[*i])));
    }
}
