//! Sums of products in the scalar field, reduced once: a dot product of n costs n plain products of 256 bits and one
//! reduction, not n of each. Poseidon is little else. Portable code: nothing here depends on the processor.
//!
//! Scalars are taken and given in blst's form: Montgomery, R = 2^256, four limbs, canonical. A sum of products T is kept in
//! nine limbs, and T / R modulo r found by Montgomery's reduction (Montgomery 1985).

use blst::blst_fr;
use blstrs::Scalar;

/// r, the modulus; lowest limb first. r / 2^254 = 1.81.
const R: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
/// 2^512 modulo r.
const R_SQUARED: [u64; 4] =
    [0xc999_e990_f3f2_9c6d, 0x2b6c_edcb_8792_5c23, 0x05d3_1496_7254_398f, 0x0748_d9d9_9f59_ff11];
/// -1 / r modulo 2^64.
const R_INVERSE: u64 = 0xffff_fffe_ffff_ffff;

/// Σ x_i y_i, of 12 terms at most.
#[inline]
pub(crate) fn dot<const N: usize>(x: &[Scalar; N], y: &[Scalar; N]) -> Scalar {
    const { assert!(N <= 12) };
    let mut sum = [0; 9];
    for (x, y) in x.iter().zip(y) {
        add(&mut sum, &product(x, y));
    }
    reduce(sum)
}

/// x y + z.
#[inline]
pub(crate) fn mul_add(x: &Scalar, y: &Scalar, z: &Scalar) -> Scalar {
    let [t0, t1, t2, t3, high @ ..] = product(x, y);
    // z R is z, four limbs up.
    let mut sum = [t0, t1, t2, t3, 0, 0, 0, 0, 0];
    let z = limbs(z);
    let mut carry = 0;
    for i in 0..4 {
        (sum[4 + i], carry) = adc(high[i], z[i], carry);
    }
    sum[8] = carry;
    reduce(sum)
}

/// x y.
#[inline]
pub(crate) fn mul(x: &Scalar, y: &Scalar) -> Scalar {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = product(x, y);
    // Less than r² / R + r < 1.5 r, which has no fifth limb.
    let [low @ .., _] = montgomery([t0, t1, t2, t3, t4, t5, t6, t7, 0]);
    scalar(subtract_once(low))
}

/// A number below 2^254, lowest limb first, as a field element.
#[inline]
pub(crate) fn from_integer(x: [u64; 4]) -> Scalar {
    mul(&scalar(x), &scalar(R_SQUARED))
}

/// T / R modulo r, for T < 12 r² + r R.
#[inline]
fn reduce(t: [u64; 9]) -> Scalar {
    let mut x = montgomery(t);
    // Now x < T / R + r < 7.5 r < 14 2^254. With v = floor(x / 2^254) and 141 / 256 just below 2^254 / r, q = floor(141 v / 256)
    // has q r <= x, and x - q r < 1.6 r.
    let v = x[4] << 2 | x[3] >> 62;
    let q = (v * 141) >> 8;
    let (mut carry, mut borrow) = (0, 0);
    for i in 0..4 {
        let multiple;
        (multiple, carry) = mac(0, q, R[i], carry);
        (x[i], borrow) = sbb(x[i], multiple, borrow);
    }
    scalar(subtract_once([x[0], x[1], x[2], x[3]]))
}

/// A number congruent to T / R modulo r, and less than T / R + r.
#[inline]
fn montgomery(mut t: [u64; 9]) -> [u64; 5] {
    let mut over = 0;
    for i in 0..4 {
        let m = t[i].wrapping_mul(R_INVERSE);
        let mut carry = 0;
        for j in 0..4 {
            (t[i + j], carry) = mac(t[i + j], m, R[j], carry);
        }
        (t[i + 4], over) = adc(t[i + 4], carry, over);
    }
    [t[4], t[5], t[6], t[7], t[8] + over]
}

/// x modulo r, for x < 2 r.
#[inline]
fn subtract_once(x: [u64; 4]) -> [u64; 4] {
    let (mut less, mut borrow) = (x, 0);
    for i in 0..4 {
        (less[i], borrow) = sbb(x[i], R[i], borrow);
    }
    std::array::from_fn(|i| if borrow == 0 { less[i] } else { x[i] })
}

#[inline]
fn product(x: &Scalar, y: &Scalar) -> [u64; 8] {
    let (x, y) = (limbs(x), limbs(y));
    let mut t = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (t[i + j], carry) = mac(t[i + j], x[i], y[j], carry);
        }
        t[i + 4] = carry;
    }
    t
}

#[inline]
fn add(sum: &mut [u64; 9], t: &[u64; 8]) {
    let mut carry = 0;
    for i in 0..8 {
        (sum[i], carry) = adc(sum[i], t[i], carry);
    }
    sum[8] += carry;
}

fn limbs(x: &Scalar) -> [u64; 4] {
    blst_fr::from(*x).l
}

fn scalar(l: [u64; 4]) -> Scalar {
    blst_fr { l }.into()
}

/// Low and high limb of x + y z + carry.
#[inline]
fn mac(x: u64, y: u64, z: u64, carry: u64) -> (u64, u64) {
    let t = u128::from(y) * u128::from(z) + u128::from(x) + u128::from(carry);
    (t as u64, (t >> 64) as u64)
}

/// x + y + carry, and the carry.
#[inline]
fn adc(x: u64, y: u64, carry: u64) -> (u64, u64) {
    let (sum, first) = x.overflowing_add(y);
    let (sum, second) = sum.overflowing_add(carry);
    (sum, u64::from(first | second))
}

/// x - y - borrow, and the borrow.
#[inline]
fn sbb(x: u64, y: u64, borrow: u64) -> (u64, u64) {
    let (difference, first) = x.overflowing_sub(y);
    let (difference, second) = difference.overflowing_sub(borrow);
    (difference, u64::from(first | second))
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    /// 0, 1, -1, what has the largest limbs in blst's form, or anything.
    fn value(rng: &mut StdRng) -> Scalar {
        match rng.gen_range(0..8) {
            0 => Scalar::ZERO,
            1 => Scalar::ONE,
            2 => -Scalar::ONE,
            3..6 => scalar([R[0] - rng.gen_range(1..3), R[1], R[2], R[3]]),
            _ => Scalar::random(rng),
        }
    }

    fn check_dot<const N: usize>(rng: &mut StdRng, seed: u64) {
        let [x, y]: [[Scalar; N]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| value(rng)));
        let expected: Scalar = x.iter().zip(&y).map(|(x, y)| *x * y).sum();
        assert_eq!(dot(&x, &y), expected, "{N} terms, seed {seed}");
    }

    #[test]
    fn results_are_those_of_blst() {
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..20_000 {
            let [x, y, z] = std::array::from_fn(|_| value(&mut rng));
            assert_eq!(mul(&x, &y), x * y, "seed {seed}");
            assert_eq!(mul_add(&x, &y, &z), x * y + z, "seed {seed}");
        }
        for _ in 0..2_000 {
            check_dot::<1>(&mut rng, seed);
            check_dot::<3>(&mut rng, seed);
            check_dot::<9>(&mut rng, seed);
            check_dot::<12>(&mut rng, seed);
        }
        let [low, high] = std::array::from_fn(|_| rng.r#gen::<u64>());
        let shift = Scalar::from(1 << 63).double();
        assert_eq!(from_integer([low, high, 0, 0]), Scalar::from(low) + Scalar::from(high) * shift);
        // The largest sums that there are.
        let largest = scalar([R[0] - 1, R[1], R[2], R[3]]);
        assert_eq!(dot(&[largest; 12], &[largest; 12]), largest.square() * Scalar::from(12));
        assert_eq!(mul_add(&largest, &largest, &largest), largest.square() + largest);
    }
}
