//! Numbers in the limbs of the hybrid forms, at the ends of their ranges, which no element in memory reaches; those
//! of Fq.

use blst::{blst_fp, blst_fp2};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::reference::{Field, from_number};

const LIMBS: usize = 10;
const BITS: u32 = 39;
/// Words of a number: two a limb.
const WORDS: usize = 2 * LIMBS;

/// Two numbers of `LIMBS` limbs of `bits` bits: each limb at one of its ends or anything between, the top ones within
/// 2^top.
pub(super) fn sample_limbs<const LIMBS: usize>(
    rng: &mut ChaCha8Rng,
    bits: u32,
    top_a: u32,
    top_b: u32,
) -> [[i64; LIMBS]; 2] {
    [top_a, top_b].map(|top| {
        std::array::from_fn(|i| {
            let end = 1i64 << if i < LIMBS - 1 { bits - 1 } else { top };
            match rng.gen_range(0..4) {
                0 => -end,
                1 => end - 1,
                2 => 0,
                _ => rng.gen_range(-end..end),
            }
        })
    })
}

/// Limbs as kernels get them.
pub(super) fn to_words<const LIMBS: usize>(limbs: [i64; LIMBS]) -> Vec<u32> {
    limbs.iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]).collect()
}

pub(super) fn sample(rng: &mut ChaCha8Rng, top_a: u32, top_b: u32) -> (Vec<u32>, Vec<u32>) {
    let [a, b] = sample_limbs::<LIMBS>(rng, BITS, top_a, top_b);
    (to_words(a), to_words(b))
}

/// Two pairs of numbers, elements of Fq2.
pub(super) fn sample2(rng: &mut ChaCha8Rng) -> (Vec<u32>, Vec<u32>) {
    let (a0, b0) = sample(rng, 32, 32);
    let (a1, b1) = sample(rng, 32, 32);
    ([a0, a1].concat(), [b0, b1].concat())
}

/// Limbs as kernels return them.
pub(super) fn limbs<const LIMBS: usize>(words: &[u32]) -> [i64; LIMBS] {
    std::array::from_fn(|i| (u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32).cast_signed())
}

fn value_of(limbs: [i64; LIMBS]) -> blst_fp {
    let small = |x: u64| from_number([x, 0, 0, 0, 0, 0]);
    limbs.iter().rev().fold(small(0), |sum, limb| {
        let magnitude = small(limb.unsigned_abs());
        sum.mul(small(1 << BITS)).add(if *limb < 0 { magnitude.neg() } else { magnitude })
    })
}

/// Σ limb_i 2^(39 i) in the field.
pub(super) fn value(words: &[u32]) -> blst_fp {
    value_of(limbs(words))
}

/// The result times 2^390 is `expected`, its limbs are normalised, and the top one has 32 bits.
pub(super) fn verify_product(out: &[u32], expected: blst_fp) -> Result<(), String> {
    let out = limbs(out);
    let r = value_of([0, 0, 0, 0, 0, 0, 0, 0, 0, 1 << BITS]);
    match value_of(out).mul(r) == expected {
        true => normalised(&out, BITS, 0),
        false => Err("the result is another value".to_owned()),
    }
}

/// The same for both parts of a product in Fq2.
pub(super) fn verify2_mul(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    let element = |words: &[u32]| blst_fp2 { fp: [value(&words[..WORDS]), value(&words[WORDS..])] };
    let expected = element(a).mul(element(b));
    out.chunks_exact(WORDS).zip(expected.fp).try_for_each(|(out, expected)| verify_product(out, expected))
}

/// All but the top limb are at most 2^(bits - 1) + excess.
pub(super) fn normalised(limbs: &[i64], bits: u32, excess: i64) -> Result<(), String> {
    let bound = (1 << (bits - 1)) + excess;
    match limbs[..limbs.len() - 1].iter().all(|limb| (-bound..=bound).contains(limb)) {
        true => Ok(()),
        false => Err("the limbs are not normalised".to_owned()),
    }
}

/// The result is a - b as an integer, and normalised but for what carries add.
pub(super) fn verify_sub(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    let [a, b, out] = [a, b, out].map(limbs::<LIMBS>);
    let mut carry = 0;
    for i in 0..LIMBS {
        carry += a[i] - b[i] - out[i];
        if carry % (1 << BITS) != 0 || (i == LIMBS - 1 && carry != 0) {
            return Err(format!("limb {i} differs"));
        }
        carry >>= BITS;
    }
    normalised(&out, BITS, 2)
}
