//! Transforms over Fr in blst's arithmetic, and the quotient H: the same algorithm as [`crate::arith::ifma::ntt`], see there.
//!
//! Recursion instead of passes: the halves of a transform are independent, so they are joined over rayon's pool, and from
//! some size on fit every cache.

use std::sync::{Arc, OnceLock};

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use crate::arith::ifma::ntt::reverse_bits;

/// Elements per task of pointwise work; transforms of this size and below run on one thread.
const CHUNK: usize = 1 << 12;

/// Coefficients 0..n of H in natural order (the last is zero).
pub(crate) fn quotient_h(mut a: Vec<Scalar>, mut b: Vec<Scalar>, c: Option<Vec<Scalar>>) -> Vec<Scalar> {
    let n = a.len();
    let log_n = n.trailing_zeros();
    let twiddles = twiddles(log_n);
    let mut m0 = c.unwrap_or_else(|| a.par_iter().zip(&b).map(|(a, b)| a * b).collect());
    natural_to_reversed(&mut m0, 0, &twiddles);
    let g = Scalar::MULTIPLICATIVE_GENERATOR;
    let n_inverse = Scalar::from(n as u64).invert().expect("n is not zero");
    for x in [&mut a, &mut b] {
        natural_to_reversed(x, 0, &twiddles);
        scale(x, &reversed_powers(g, log_n), n_inverse);
        reversed_to_natural(x, 0, &twiddles);
    }
    a.par_iter_mut().zip(&b).for_each(|(a, b)| *a *= b);
    natural_to_reversed(&mut a, 0, &twiddles);
    let difference = g.pow_vartime([n as u64]) - Scalar::ONE;
    let factor = n_inverse * difference.invert().expect("g^n is not 1: g generates the group");
    let powers = reversed_powers(g.invert().expect("g is not zero"), log_n);
    (0..n)
        .into_par_iter()
        .map(|i| {
            let (position, negated) = (reverse_bits(i, log_n), reverse_bits((n - i) % n, log_n));
            (a[negated] * powers.at(position) - m0[position]) * factor
        })
        .collect()
}

/// w^-bitrev(g) for g < n/2, computed once per process and size.
fn twiddles(log_n: u32) -> Arc<Vec<Scalar>> {
    static TABLES: [OnceLock<Arc<Vec<Scalar>>>; Scalar::S as usize + 1] =
        [const { OnceLock::new() }; Scalar::S as usize + 1];
    let compute = || {
        let mut table = vec![Scalar::ONE];
        for k in 0..log_n - 1 {
            let inverse = Scalar::ROOT_OF_UNITY.invert().expect("not zero");
            let root = (k + 2..Scalar::S).fold(inverse, |w, _| w.square());
            let doubled: Vec<Scalar> = table.par_iter().map(|t| t * root).collect();
            table.extend(doubled);
        }
        Arc::new(table)
    };
    TABLES[log_n as usize].get_or_init(compute).clone()
}

/// One Cooley-Tukey layer, then both halves; `x` is group `g` of the first layer. x\[k\] = sum x\[j\] w^(-jk).
fn natural_to_reversed(x: &mut [Scalar], g: usize, twiddles: &[Scalar]) {
    if x.len() == 1 {
        return;
    }
    let parallel = x.len() > CHUNK;
    let (low, high) = x.split_at_mut(x.len() / 2);
    let w = twiddles[g];
    let layer = |low: &mut [Scalar], high: &mut [Scalar]| {
        for (a, b) in low.iter_mut().zip(high) {
            let t = *b * w;
            (*a, *b) = (*a + t, *a - t);
        }
    };
    if parallel {
        low.par_chunks_mut(CHUNK).zip(high.par_chunks_mut(CHUNK)).for_each(|(low, high)| layer(low, high));
        rayon::join(|| natural_to_reversed(low, 2 * g, twiddles), || natural_to_reversed(high, 2 * g + 1, twiddles));
    } else {
        layer(low, high);
        natural_to_reversed(low, 2 * g, twiddles);
        natural_to_reversed(high, 2 * g + 1, twiddles);
    }
}

/// Both halves, then one Gentleman-Sande layer.
fn reversed_to_natural(x: &mut [Scalar], g: usize, twiddles: &[Scalar]) {
    if x.len() == 1 {
        return;
    }
    let parallel = x.len() > CHUNK;
    let (low, high) = x.split_at_mut(x.len() / 2);
    let w = twiddles[g];
    let layer = |low: &mut [Scalar], high: &mut [Scalar]| {
        for (a, b) in low.iter_mut().zip(high) {
            (*a, *b) = (*a + *b, (*a - *b) * w);
        }
    };
    if parallel {
        rayon::join(|| reversed_to_natural(low, 2 * g, twiddles), || reversed_to_natural(high, 2 * g + 1, twiddles));
        low.par_chunks_mut(CHUNK).zip(high.par_chunks_mut(CHUNK)).for_each(|(low, high)| layer(low, high));
    } else {
        reversed_to_natural(low, 2 * g, twiddles);
        reversed_to_natural(high, 2 * g + 1, twiddles);
        layer(low, high);
    }
}

/// Powers of a number in bit-reversed order, as products of two table entries.
struct ReversedPowers {
    low: Vec<Scalar>,
    high: Vec<Scalar>,
}

impl ReversedPowers {
    fn at(&self, position: usize) -> Scalar {
        self.low[position % self.low.len()] * self.high[position / self.low.len()]
    }
}

fn reversed_powers(g: Scalar, log_n: u32) -> ReversedPowers {
    let squares: Vec<Scalar> = core::iter::successors(Some(g), |g| Some(g.square())).take(log_n as usize).collect();
    // Bit k of a position stands for the exponent 2^(log_n - 1 - k).
    let table = |bits: core::ops::Range<u32>| {
        let mut table = vec![Scalar::ONE];
        for k in bits {
            let step = squares[(log_n - 1 - k) as usize];
            let doubled: Vec<Scalar> = table.iter().map(|t| t * step).collect();
            table.extend(doubled);
        }
        table
    };
    ReversedPowers { low: table(0..log_n / 2), high: table(log_n / 2..log_n) }
}

fn scale(x: &mut [Scalar], powers: &ReversedPowers, factor: Scalar) {
    x.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(|(p, x)| *x *= powers.at(p) * factor);
}
