//! The polynomials of the quadratic arithmetic program at the secret point.

use blstrs::Scalar;
use cuzk_synth::r1cs::{Matrix, R1cs};
use ff::{BatchInvert, Field, PrimeField};
use rayon::prelude::*;

/// A_i(τ), B_i(τ) and C_i(τ) of every variable, and the domain's vanishing polynomial there.
pub(super) struct Evaluation {
    pub(super) a: Vec<Scalar>,
    pub(super) b: Vec<Scalar>,
    pub(super) c: Vec<Scalar>,
    /// t(τ) = τ^n − 1.
    pub(super) vanishing: Scalar,
}

/// Evaluates all columns: A_i(τ) = Σ_row A[row][i] L_row(τ), one product an entry.
pub(super) fn evaluate(r1cs: &R1cs, tau: Scalar) -> Evaluation {
    let (lagrange, vanishing) = lagrange_at(tau, r1cs.log_domain(), r1cs.num_constraints());
    let column_sums = |matrix: &Matrix| {
        let mut sums = vec![Scalar::ZERO; r1cs.num_variables()];
        for (row, value) in lagrange.iter().enumerate() {
            for (column, index) in matrix.row(row) {
                // Index 0 is the coefficient one, by far the most frequent.
                sums[column] += match index {
                    0 => *value,
                    _ => *value * r1cs.coefficients[index],
                };
            }
        }
        sums
    };
    let (a, (b, c)) =
        rayon::join(|| column_sums(&r1cs.a), || rayon::join(|| column_sums(&r1cs.b), || column_sums(&r1cs.c)));
    Evaluation { a, b, c, vanishing }
}

/// The first `count` Lagrange polynomials of the domain of n = 2^`log_n` at τ, and τ^n − 1:
/// L_i(τ) = (τ^n − 1) / n · ω^i / (τ − ω^i), all inverted at once, which is cheaper than the inverse transform of the
/// powers of τ.
///
/// # Panics
/// If τ is in the domain; that has probability n / r.
fn lagrange_at(tau: Scalar, log_n: u32, count: usize) -> (Vec<Scalar>, Scalar) {
    const CHUNK: usize = 1 << 14;
    let n = 1u64 << log_n;
    let omega = Scalar::ROOT_OF_UNITY.pow_vartime([1 << (Scalar::S - log_n)]);
    let vanishing = tau.pow_vartime([n]) - Scalar::ONE;
    assert_ne!(vanishing, Scalar::ZERO, "the secret point is in the domain");
    let n_inverse = Option::<Scalar>::from(Scalar::from(n).invert()).expect("n is not zero");
    let scale = vanishing * n_inverse;

    let mut values = vec![Scalar::ZERO; count];
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        let first = omega.pow_vartime([(i * CHUNK) as u64]);
        let mut power = first;
        for value in chunk.iter_mut() {
            *value = tau - power;
            power *= omega;
        }
        chunk.iter_mut().batch_invert();
        let mut numerator = first * scale;
        for value in chunk {
            *value *= numerator;
            numerator *= omega;
        }
    });
    (values, vanishing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lagrange_polynomials_interpolate() {
        let mut rng = rand::thread_rng();
        let tau = Scalar::random(&mut rng);
        let coefficients: Vec<_> = (0..8).map(|_| Scalar::random(&mut rng)).collect();
        let at = |x: Scalar| coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c);
        let omega = Scalar::ROOT_OF_UNITY.pow_vartime([1 << (Scalar::S - 3)]);
        let (lagrange, vanishing) = lagrange_at(tau, 3, 8);
        let interpolated: Scalar = (0..8).map(|i| lagrange[i as usize] * at(omega.pow_vartime([i]))).sum();
        assert_eq!(interpolated, at(tau));
        assert_eq!(vanishing, tau.pow_vartime([8]) - Scalar::ONE);
        assert_eq!(lagrange_at(tau, 3, 5).0, lagrange[..5]);
    }
}
