//! Operations of Fr: operands at the ends of their ranges, and what a result must be.

use blstrs::Scalar;
use ff::Field;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cuda::fr::{Element, montgomery, plain, r};

/// Which numbers an operand may be.
#[derive(Clone, Copy)]
pub(super) enum Range {
    /// Canonical numbers.
    Montgomery,
    /// Those below 2r.
    BelowTwice,
    /// Products by a constant: below 1.9058 r.
    Product,
    /// Those whose top word is at most that of 2r.
    Loose,
}

/// The largest canonical number, r - 1, in plain form.
fn largest() -> Element {
    plain(&-Scalar::ONE)
}

impl Range {
    fn contains(self, a: &[u32]) -> bool {
        // 2 (r - 1) + 1 is the largest number below 2r.
        let twice = |mut x: Element| {
            for i in (0..8).rev() {
                x[i] = x[i] << 1 | if i > 0 { x[i - 1] >> 31 } else { 1 };
            }
            x
        };
        let top_of_twice = twice(largest())[7];
        let at_most = |bound: Element| a.iter().rev().le(bound.iter().rev());
        match self {
            Self::Montgomery => at_most(largest()),
            Self::BelowTwice => at_most(twice(largest())),
            // 1.9058 r has a top word of 0.9529 times that of 2r.
            Self::Product => u64::from(a[7]) * 10_000 < u64::from(top_of_twice) * 9_529,
            Self::Loose => a[7] <= top_of_twice,
        }
    }
}

/// A number of the range, often one of its ends, or with words that are all zeros or ones.
pub(super) fn sample(rng: &mut ChaCha8Rng, range: Range) -> Vec<u32> {
    loop {
        let mut a: Element = match rng.gen_range(0..8) {
            0 => [0; 8],
            1 => montgomery(&Scalar::ONE),
            2 => largest(),
            3 => [u32::MAX; 8],
            4 => std::array::from_fn(|_| [0, 1, u32::MAX - 1, u32::MAX, rng.r#gen()][rng.gen_range(0..5)]),
            _ => rng.r#gen(),
        };
        // The top word decides; the ends of it are tried as well.
        a[7] = [a[7], 0xe7db_4ea6, 0x73ed_a753, rng.r#gen()][rng.gen_range(0..4)];
        if range.contains(&a) {
            return a.to_vec();
        }
    }
}

/// A number of words modulo r.
pub(super) fn value(words: &[u32]) -> Scalar {
    let base = Scalar::from(1 << 32);
    words.iter().rev().fold(Scalar::ZERO, |sum, word| sum * base + Scalar::from(u64::from(*word)))
}

pub(super) fn is(out: &[u32], expected: Scalar, range: Range) -> Result<(), String> {
    match value(out) == expected && range.contains(out) {
        true => Ok(()),
        false => Err(format!("expected {:x?} modulo r, and the right range", plain(&expected))),
    }
}

fn r_inverse() -> Scalar {
    r().invert().expect("a power of two is not zero")
}

pub(super) fn verify_mul(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a) * value(b) * r_inverse(), Range::Montgomery)
}

pub(super) fn verify_sqr(a: &[u32], _: &[u32], out: &[u32]) -> Result<(), String> {
    verify_mul(a, a, out)
}

pub(super) fn verify_negative_sqr(a: &[u32], _: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, -value(a).square() * r_inverse(), Range::Montgomery)
}

/// a b + 2 a - b.
pub(super) fn verify_mul_add(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    let (a, b) = (value(a), value(b));
    is(out, a * b * r_inverse() + a.double() - b, Range::Montgomery)
}

pub(super) fn verify_add(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a) + value(b), Range::Montgomery)
}

pub(super) fn verify_sub(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a) - value(b), Range::Montgomery)
}

/// a = w R modulo r, and w R = quotient r + a as integers: modulo r that is the first part, modulo 2^256 the second.
pub(super) fn verify_constant(a: &[u32], _: &[u32], out: &[u32]) -> Result<(), String> {
    let (w, quotient) = out.split_at(8);
    is(w, value(a) * r_inverse(), Range::Montgomery)?;
    // quotient r + a is a multiple of 2^256.
    let mut r_words = largest();
    r_words[0] += 1;
    let mut words = [0u64; 17];
    for (word, a) in words.iter_mut().zip(a) {
        *word = u64::from(*a);
    }
    for (i, q) in quotient.iter().enumerate() {
        let mut carry = 0;
        for (j, r) in r_words.iter().enumerate() {
            let sum = words[i + j] + u64::from(*q) * u64::from(*r) + carry;
            (words[i + j], carry) = (sum & 0xffff_ffff, sum >> 32);
        }
        let mut place = i + 8;
        while carry > 0 {
            let sum = words[place] + carry;
            (words[place], carry) = (sum & 0xffff_ffff, sum >> 32);
            place += 1;
        }
    }
    match words[..8].iter().all(|word| *word == 0) && words[8..16].iter().zip(w).all(|(x, w)| *x == u64::from(*w)) {
        true => Ok(()),
        false => Err("the quotient is another number".to_owned()),
    }
}

pub(super) fn verify_mul_constant(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a) * value(b) * r_inverse(), Range::Product)
}

pub(super) fn verify_mul_loose(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a) * value(b) * r_inverse(), Range::BelowTwice)
}

pub(super) fn verify_canonical(a: &[u32], _: &[u32], out: &[u32]) -> Result<(), String> {
    is(out, value(a), Range::Montgomery)
}

pub(super) fn verify_loose(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(&out[..8], value(a) + value(b), Range::Loose)?;
    is(&out[8..], value(a) - value(b), Range::Loose)
}

pub(super) fn verify_exact(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    is(&out[..8], value(a) + value(b), Range::BelowTwice)?;
    is(&out[8..], value(a) - value(b), Range::BelowTwice)
}
