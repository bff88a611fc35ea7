//! Many multiples of one point.

use std::ops::AddAssign;

use blstrs::Scalar;
use ff::PrimeField;
use group::{Curve, Group};
use rayon::prelude::*;

/// Bits of a scalar.
const SCALAR_BITS: usize = 255;

/// Scalars normalized together: one inversion each time.
const BATCH: usize = 1 << 10;

/// A table of d 2^(w j) B for every window j and digit d, from which a multiple is one addition a window
/// (Brickell, Gordon, McCurley, Wilson, "Fast Exponentiation with Precomputation", 1992).
pub(super) struct FixedBase<C: Curve> {
    window_bits: usize,
    /// Window j's multiples by 1, 2, …, 2^w − 1.
    windows: Vec<Vec<C::AffineRepr>>,
}

impl<C> FixedBase<C>
where
    C: Curve + Group<Scalar = Scalar> + AddAssign<C::AffineRepr>,
    C::AffineRepr: Copy + Default + Send + Sync,
{
    /// Prepares for about `count` multiples.
    pub(super) fn new(base: C, count: usize) -> Self {
        let window_bits = window_bits(count);
        let starts: Vec<C> = (0..SCALAR_BITS.div_ceil(window_bits))
            .scan(base, |start, _| {
                let this = *start;
                for _ in 0..window_bits {
                    *start = start.double();
                }
                Some(this)
            })
            .collect();
        let windows = starts
            .into_par_iter()
            .map(|start| {
                let mut multiple = C::identity();
                let multiples: Vec<C> = (1..1 << window_bits)
                    .map(|_| {
                        multiple += start;
                        multiple
                    })
                    .collect();
                normalize(&multiples)
            })
            .collect();
        Self {
            window_bits,
            windows,
        }
    }

    /// The multiples, in order. Parallel on the current rayon pool.
    pub(super) fn multiply(&self, scalars: &[Scalar]) -> Vec<C::AffineRepr> {
        let batches: Vec<Vec<C::AffineRepr>> = scalars
            .par_chunks(BATCH)
            .map(|batch| {
                let multiples: Vec<C> = batch.iter().map(|s| self.multiple(s)).collect();
                normalize(&multiples)
            })
            .collect();
        batches.concat()
    }

    fn multiple(&self, scalar: &Scalar) -> C {
        let bytes = scalar.to_repr();
        let mut sum = C::identity();
        for (j, window) in self.windows.iter().enumerate() {
            let digit = digit(&bytes, j * self.window_bits, self.window_bits);
            if digit != 0 {
                sum += window[digit - 1];
            }
        }
        sum
    }
}

/// The window that costs least: 255/w additions a multiple, and 2^w for each of the 255/w windows of the table.
fn window_bits(count: usize) -> usize {
    let cost = |w: &usize| SCALAR_BITS.div_ceil(*w) * (count + (1 << w));
    (2..=16).min_by_key(cost).expect("the range is not empty")
}

/// Bits `first..first + count` of a little-endian number; bits past its end are zero.
fn digit(bytes: &[u8; 32], first: usize, count: usize) -> usize {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().skip(first / 8).take(8).enumerate() {
        value |= u64::from(byte) << (8 * i);
    }
    (value >> (first % 8)) as usize & ((1 << count) - 1)
}

fn normalize<C: Curve>(points: &[C]) -> Vec<C::AffineRepr>
where
    C::AffineRepr: Copy + Default,
{
    let mut affine = vec![C::AffineRepr::default(); points.len()];
    C::batch_normalize(points, &mut affine);
    affine
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Projective, G2Projective};
    use ff::Field;

    use super::*;

    fn agrees_with_plain_multiplication<C>(count: usize)
    where
        C: Curve + Group<Scalar = Scalar> + AddAssign<C::AffineRepr>,
        C::AffineRepr: Copy + Default + Send + Sync + PartialEq + std::fmt::Debug,
    {
        let mut rng = rand::thread_rng();
        let base = C::random(&mut rng);
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, -Scalar::from(2)];
        scalars.extend((0..40).map(|i| Scalar::from(1u64 << i)));
        scalars.extend((0..40).map(|_| Scalar::random(&mut rng)));
        let expected: Vec<_> = scalars.iter().map(|s| (base * s).to_affine()).collect();
        assert_eq!(FixedBase::new(base, count).multiply(&scalars), expected);
    }

    #[test]
    fn multiples_are_right_at_every_window() {
        for count in [1, 100, 10_000] {
            agrees_with_plain_multiplication::<G1Projective>(count);
            agrees_with_plain_multiplication::<G2Projective>(count);
        }
        assert!(window_bits(1) < window_bits(10_000));
        assert_eq!(window_bits(10_000_000), 16);
    }
}
