//! The quotient H = (A B - C) / (X^n - 1) by six transforms.
//!
//! On the domain c = a b pointwise, so with A B = L + X^n H the remainder modulo X^n - 1 is C = L + H. On the coset of g,
//! where X^n = g^n, the same product has the interpolation M1 = L + g^n H. With M0 = C:
//!
//!   H = (M1 - M0) / (g^n - 1).
//!
//! No transform of C on the coset and back, and no division by the vanishing polynomial there.
//!
//! All transforms use the root w^-1. Natural to reversed it interpolates (times n). From coefficients times g^k it
//! evaluates at g w^-j, in natural order of j; interpolating those gives coefficient -k mod n at place k: M1 is read with
//! the index negated. In bit-reversed order negation maps position p to p xor (2^k - 1), 2^k being the highest bit of p.

use blst::blst_fr;
use blstrs::Scalar;
use core::arch::x86_64::*;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::super::fr::Fr;
use super::super::lane::each;
use super::passes::{natural_to_reversed, reversed_to_natural};
use super::reverse_bits;
use super::scale::ReversedPowers;
use super::twiddles::Twiddles;
use crate::arith::memory::huge_vec;
use crate::arith::parallel::{Scattered, drain};

/// Vectors per parallel task of pointwise work.
const CHUNK: usize = 1 << 9;

/// Coefficients 0..n of H in natural order (the last is zero) from evaluations, normalised and below 8r.
///
/// # Safety
/// The machine has the AVX-512 features. All vectors have the same length, a power of two, at least 16.
pub unsafe fn quotient_h(mut a: Vec<Fr>, mut b: Vec<Fr>, c: Option<Vec<Fr>>) -> Vec<Scalar> {
    let log_n = a.len().trailing_zeros() + 3;
    let n_inverse = Scalar::from(1 << log_n).invert().expect("n is not zero");
    let g = Scalar::MULTIPLICATIVE_GENERATOR;
    // SAFETY: the caller's; sizes agree.
    unsafe {
        let twiddles = Twiddles::shared(log_n);
        let mut m0 = c.unwrap_or_else(|| product(&a, &b));
        natural_to_reversed(&mut m0, &twiddles);
        let powers = ReversedPowers::new(g, n_inverse, log_n);
        for x in [&mut a, &mut b] {
            natural_to_reversed(x, &twiddles);
            x.par_chunks_mut(CHUNK).enumerate().for_each(|(i, x)| scale(x, &powers, i * CHUNK));
            reversed_to_natural(x, &twiddles);
        }
        a.par_chunks_mut(CHUNK).zip(b.par_chunks(CHUNK)).for_each(|(a, b)| multiply(a.as_ptr(), b, a.as_mut_ptr()));
        drop(b);
        natural_to_reversed(&mut a, &twiddles);
        let difference = g.pow_vartime([1 << log_n]) - Scalar::ONE;
        let factor = n_inverse * difference.invert().expect("g^n is not 1: g generates the group");
        let powers = ReversedPowers::new(g.invert().expect("g is not zero"), factor, log_n);
        join(&a, &m0, &powers, log_n)
    }
}

/// a b pointwise, in a new vector.
///
/// # Safety
/// The machine has the AVX-512 features.
unsafe fn product(a: &[Fr], b: &[Fr]) -> Vec<Fr> {
    let mut product: Vec<Fr> = huge_vec(a.len());
    let places = &mut product.spare_capacity_mut()[..a.len()];
    places.par_chunks_mut(CHUNK).zip(a.par_chunks(CHUNK)).zip(b.par_chunks(CHUNK)).for_each(|((to, a), b)| {
        // SAFETY: chunks of equal length.
        unsafe { multiply(a.as_ptr(), b, to.as_mut_ptr().cast()) };
    });
    // SAFETY: every place was written just now.
    unsafe { product.set_len(a.len()) };
    product
}

/// `to[i] = a[i] b[i]`, below 3.9r for factors below 8r; as many as there are `b`. `to` may be `a`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn multiply(a: *const Fr, b: &[Fr], to: *mut Fr) {
    for (i, b) in b.iter().enumerate() {
        // SAFETY: the caller's places.
        unsafe { to.add(i).write(Fr::mul(&*a.add(i), b)) };
    }
}

/// Multiplies vectors `first`.. by the powers.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn scale(x: &mut [Fr], powers: &ReversedPowers, first: usize) {
    for (i, x) in x.iter_mut().enumerate() {
        *x = Fr::mul(x, &powers.of_vector(first + i));
    }
}

/// H from M1 (index negated, times n and g^k) and M0 (times n), both in bit-reversed order: the only permutation of the
/// whole computation, done while converting.
unsafe fn join(m1: &[Fr], m0: &[Fr], powers: &ReversedPowers, log_n: u32) -> Vec<Scalar> {
    let n = 1usize << log_n;
    let mut h: Vec<Scalar> = huge_vec(n);
    // Vectors v + k n/32, k = 0..4, go to four consecutive places each lane: 128 bytes.
    let quarter = n / 32;
    {
        let places = Scattered::new(&mut h.spare_capacity_mut()[..n]);
        drain(
            quarter.div_ceil(CHUNK),
            || (),
            |(), task| {
                for v in CHUNK * task..quarter.min(CHUNK * (task + 1)) {
                    for k in [0, 2, 1, 3] {
                        // SAFETY: vector v + k quarter, and its places, are of this task alone.
                        unsafe {
                            let values = join_vector(m1, m0, powers, v + k * quarter);
                            let start = reverse_bits(v + k * quarter, log_n - 3);
                            for (l, value) in values.iter().enumerate() {
                                places.at((reverse_bits(l, 3) << (log_n - 3)) + start).cast::<blst_fr>().write(*value);
                            }
                        }
                    }
                }
            },
        );
    }
    // SAFETY: bit reversal is a permutation, so every place was written.
    unsafe { h.set_len(n) };
    h
}

/// The coefficients of H at the positions of vector `v`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn join_vector(m1: &[Fr], m0: &[Fr], powers: &ReversedPowers, v: usize) -> [blst_fr; 8] {
    // Positions 8 v + l and their negatives are in the same block 2^k .. 2^(k+1), which negation reverses.
    let (source, lanes) = match v {
        0 => (0, _mm512_set_epi64(4, 5, 6, 7, 2, 3, 1, 0)),
        _ => (v ^ ((1 << v.ilog2()) - 1), _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7)),
    };
    let mut negated = m1[source];
    each!(I, 5, {
        negated.0[I] = _mm512_permutexvar_epi64(lanes, negated.0[I]);
    });
    let high = Fr::mul_raw(&negated, &powers.of_vector(v));
    let low = Fr::mul_raw(&m0[v], &powers.factor);
    let mut values = [blst_fr::default(); 8];
    // SAFETY: eight places.
    unsafe { high.sub_raw(low).plus::<4>().norm().to_blst(values.as_mut_ptr()) };
    values
}
