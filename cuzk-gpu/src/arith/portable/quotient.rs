//! The quotient H by six transforms: the algorithm of [`crate::arith::ifma::ntt::quotient`], see there.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::fr::Fr;
use super::ntt::{natural_to_reversed, reversed_to_natural, twiddles};
use crate::arith::ifma::ntt::reverse_bits;
use crate::arith::memory::huge_vec;
use crate::arith::parallel::{Scattered, drain};

/// Elements per task of pointwise work.
const CHUNK: usize = 1 << 12;

/// Coefficients 0..n of H in natural order (the last is zero), n >= 2.
pub(crate) fn quotient_h(mut a: Vec<Scalar>, mut b: Vec<Scalar>, c: Option<Vec<Scalar>>) -> Vec<Scalar> {
    let n = a.len();
    let log_n = n.trailing_zeros();
    let twiddles = twiddles(log_n);
    let mut m0 = c.unwrap_or_else(|| product(&a, &b));
    natural_to_reversed(Fr::in_scalars(&mut m0), &twiddles);
    let g = Scalar::MULTIPLICATIVE_GENERATOR;
    let n_inverse = Scalar::from(n as u64).invert().expect("n is not zero");
    let powers = ReversedPowers::new(g, n_inverse, log_n);
    for x in [&mut a, &mut b] {
        let x = Fr::in_scalars(x);
        natural_to_reversed(x, &twiddles);
        x.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(|(p, x)| *x = Fr::mul(x, &powers.at(p)));
        reversed_to_natural(x, &twiddles);
    }
    let m1 = Fr::in_scalars(&mut a);
    let pairs = m1.par_iter_mut().zip(Fr::of_scalars(&b));
    pairs.with_min_len(CHUNK).for_each(|(a, b)| *a = Fr::mul(&a.tighten(), b));
    drop(b);
    natural_to_reversed(m1, &twiddles);
    let difference = g.pow_vartime([n as u64]) - Scalar::ONE;
    let factor = n_inverse * difference.invert().expect("g^n is not 1: g generates the group");
    let powers = ReversedPowers::new(g.invert().expect("g is not zero"), factor, log_n);
    join(m1, Fr::of_scalars(&m0), &powers, &factor.into(), log_n)
}

/// See [`crate::arith::FrVec::interpolate`].
pub(crate) fn interpolate(values: &mut [Scalar]) {
    let twiddles = twiddles(values.len().trailing_zeros());
    let values = Fr::in_scalars(values);
    natural_to_reversed(values, &twiddles);
    values.par_iter_mut().with_min_len(CHUNK).for_each(|x| *x = x.canonical());
}

/// a b pointwise.
fn product(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    let mut product: Vec<Scalar> = huge_vec(a.len());
    let pairs = Fr::of_scalars(a).par_iter().zip(Fr::of_scalars(b)).with_min_len(CHUNK);
    let places = product.spare_capacity_mut()[..a.len()].par_iter_mut();
    places.zip(pairs).for_each(|(place, (a, b))| {
        // SAFETY: a place for four limbs. The product is only seen as an element until it has been used up.
        unsafe { place.as_mut_ptr().cast::<Fr>().write(Fr::mul(a, b)) };
    });
    // SAFETY: every place was written just now.
    unsafe { product.set_len(a.len()) };
    product
}

/// H from M1 (index negated, times n and g^k) and M0 (times n), both tight and in bit-reversed order: the only permutation
/// of the whole computation.
fn join(m1: &[Fr], m0: &[Fr], powers: &ReversedPowers, factor: &Fr, log_n: u32) -> Vec<Scalar> {
    let n = 1usize << log_n;
    let mut h: Vec<Scalar> = huge_vec(n);
    // Positions p + k n/4, k = 0..4, go to four consecutive places: 128 bytes.
    let log_streams = log_n.min(2);
    let stream = n >> log_streams;
    let places = Scattered::new(&mut h.spare_capacity_mut()[..n]);
    drain(
        stream.div_ceil(CHUNK),
        || (),
        |(), task| {
            for p in CHUNK * task..stream.min(CHUNK * (task + 1)) {
                for place in 0..1 << log_streams {
                    let p = p + stream * reverse_bits(place, log_streams);
                    // Negation of the index reverses each block 2^k .. 2^(k+1) of positions.
                    let negated = if p == 0 { 0 } else { p ^ ((1 << p.ilog2()) - 1) };
                    let value = Fr::sub(&Fr::mul(&m1[negated], &powers.at(p)), &Fr::mul(&m0[p], factor)).canonical();
                    // SAFETY: bit reversal is a permutation: nobody else writes there; a canonical element is a scalar.
                    unsafe { places.at(reverse_bits(p, log_n)).cast::<Fr>().write(value) };
                }
            }
        },
    );
    // SAFETY: bit reversal is a permutation, so every place was written.
    unsafe { h.set_len(n) };
    h
}

/// Powers of a number, times a factor, in bit-reversed order, as products of two table entries.
struct ReversedPowers {
    low: Vec<Fr>,
    high: Vec<Fr>,
}

impl ReversedPowers {
    fn new(g: Scalar, factor: Scalar, log_n: u32) -> Self {
        let squares: Vec<Scalar> = core::iter::successors(Some(g), |g| Some(g.square())).take(log_n as usize).collect();
        // Bit k of a position stands for the exponent 2^(log_n - 1 - k).
        let table = |first: Scalar, bits: core::ops::Range<u32>| {
            let mut table = vec![first];
            for k in bits {
                let step = squares[(log_n - 1 - k) as usize];
                let doubled: Vec<Scalar> = table.iter().map(|t| t * step).collect();
                table.extend(doubled);
            }
            Fr::of_scalars(&table).to_vec()
        };
        Self { low: table(Scalar::ONE, 0..log_n / 2), high: table(factor, log_n / 2..log_n) }
    }

    #[inline]
    fn at(&self, position: usize) -> Fr {
        let (low, high) = (position & (self.low.len() - 1), position >> self.low.len().trailing_zeros());
        Fr::mul(&self.low[low], &self.high[high])
    }
}
