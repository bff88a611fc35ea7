//! Numbers in the limbs of Fr's hybrid form.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    fr_ops,
    limbs::{limbs, normalised, sample_limbs, to_words},
};

const LIMBS: usize = 7;
const BITS: u32 = 38;

/// r in limbs, as in `kernels/fr_hybrid.cuh`.
pub(super) const R: [i64; LIMBS] =
    [-4294967295, -68786585600, 112746037222, -101099416337, -54864115702, 54332355873, 121559669];

/// Two numbers with limbs at their ends, the top ones within 2^top.
pub(super) fn sample(rng: &mut ChaCha8Rng, top_a: u32, top_b: u32) -> (Vec<u32>, Vec<u32>) {
    let [a, b] = sample_limbs::<LIMBS>(rng, BITS, top_a, top_b);
    (to_words(a), to_words(b))
}

/// Two numbers within r, often 0, 1 or r - 1, and their negatives.
pub(super) fn sample_below_r(rng: &mut ChaCha8Rng) -> (Vec<u32>, Vec<u32>) {
    let mut number = || {
        let small = rng.gen_range(0..=1i64);
        let number = match rng.gen_range(0..4) {
            0 => [small, 0, 0, 0, 0, 0, 0],
            1 => {
                let mut limbs = R;
                limbs[0] -= small + 1;
                limbs
            }
            // Limbs at their ends; 2^26 of the top is more than half of r.
            _ => sample_limbs::<LIMBS>(rng, BITS, 26, 26)[0],
        };
        let sign = if rng.r#gen() { 1 } else { -1 };
        // Normalised: no limb is 2^37, of which the packed form has no digit.
        to_words(number.map(|limb| if limb == -(1 << (BITS - 1)) { limb + 1 } else { limb }).map(|limb| sign * limb))
    };
    (number(), number())
}

/// Σ limb_i 2^(38 i) in the field.
pub(super) fn value(words: &[u32]) -> Scalar {
    let base = Scalar::from(1 << BITS);
    limbs::<LIMBS>(words).iter().rev().fold(Scalar::ZERO, |sum, limb| {
        let magnitude = Scalar::from(limb.unsigned_abs());
        sum * base + if *limb < 0 { -magnitude } else { magnitude }
    })
}

/// The result times 2^266 is `expected`, and its limbs are normalised.
pub(super) fn verify_product(out: &[u32], expected: Scalar) -> Result<(), String> {
    match value(out) * Scalar::from(2).pow_vartime([266]) == expected {
        true => normalised(&limbs::<LIMBS>(out), BITS, 0),
        false => Err("the result is another value".to_owned()),
    }
}

/// The result is the canonical form R = 2^256 of a, whose R is 2^266.
pub(super) fn verify_to_fr(a: &[u32], _: &[u32], out: &[u32]) -> Result<(), String> {
    fr_ops::is(out, value(a) * Scalar::TWO_INV.pow_vartime([10]), fr_ops::Range::Montgomery)
}
