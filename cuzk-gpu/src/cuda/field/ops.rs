//! The operations of `kernels/field_ops.cuh`: inputs worth trying, and whether a result is right.

use blst::{blst_fp, blst_fp2};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    fr_limbs, fr_ops, limbs,
    reference::{Curve, Field, G1, G2, Point},
};

type Sample = fn(&mut ChaCha8Rng) -> (Vec<u32>, Vec<u32>);
type Verify = fn(&[u32], &[u32], &[u32]) -> Result<(), String>;

/// One operation. Its kernel is `check_` and its name.
pub(super) struct Op {
    /// Its name.
    pub(super) name: &'static str,
    /// Words of the first operand, the second, and the result.
    pub(super) words: [usize; 3],
    /// Draws operands.
    pub(super) sample: Sample,
    /// Whether a result is right, for operands a and b; else what it should have been.
    pub(super) verify: Verify,
}

impl Op {
    /// Draws `count` pairs of operands, asks `run` for the results, and verifies them. `run` gets all first operands, all
    /// second ones, and must return all results.
    ///
    /// # Errors
    /// What `run` says, or the first wrong result with its operands.
    pub(super) fn check(
        &self,
        rng: &mut ChaCha8Rng,
        count: usize,
        run: impl FnOnce(&[u32], &[u32]) -> Result<Vec<u32>, String>,
    ) -> Result<(), String> {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (x, y) = (self.sample)(rng);
            a.extend(x);
            b.extend(y);
        }
        let out = run(&a, &b)?;
        let [wa, wb, wo] = self.words;
        if (a.len(), b.len(), out.len()) != (wa * count, wb * count, wo * count) {
            return Err(format!("{}: operands or results of another length", self.name));
        }
        let items = a.chunks_exact(wa).zip(b.chunks_exact(wb)).zip(out.chunks_exact(wo));
        for (i, ((a, b), out)) in items.enumerate() {
            (self.verify)(a, b, out)
                .map_err(|e| format!("{} of item {i}: {e}\n  a = {a:x?}\n  b = {b:x?}\n  found {out:x?}", self.name))?;
        }
        Ok(())
    }
}

macro_rules! field_op {
    ($name:literal, $field:ty, |$a:ident, $b:ident| $expected:expr) => {
        Op {
            name: $name,
            words: [<$field>::WORDS; 3],
            sample: |rng| {
                let a = <$field>::random(rng);
                let b = if rng.gen_ratio(1, 8) { a } else { <$field>::random(rng) };
                (a.to_words(), b.to_words())
            },
            verify: |a, b, out| {
                let ($a, $b) = (<$field>::from_words(a), <$field>::from_words(b));
                let _ = $b;
                let expected: $field = $expected;
                let expected = expected.to_words();
                if expected == out { Ok(()) } else { Err(format!("expected {expected:x?}")) }
            },
        }
    };
}

macro_rules! point_op {
    ($name:literal, $curve:ty, $second:ident) => {
        Op {
            name: $name,
            words: [
                4 * <$curve as Curve>::Field::WORDS,
                second_words::<$curve>(Second::$second),
                4 * <$curve as Curve>::Field::WORDS,
            ],
            sample: |rng| sample_points::<$curve>(rng, Second::$second),
            verify: |a, b, out| verify_points::<$curve>(a, b, out, Second::$second),
        }
    };
}

macro_rules! fr_op {
    ($name:literal, [$a:ident, $b:ident], $verify:ident) => {
        fr_op!($name, [$a, $b], $verify, 8)
    };
    ($name:literal, [$a:ident, $b:ident], $verify:ident, $words:literal) => {
        Op {
            name: $name,
            words: [8, 8, $words],
            sample: |rng| (fr_ops::sample(rng, fr_ops::Range::$a), fr_ops::sample(rng, fr_ops::Range::$b)),
            verify: fr_ops::$verify,
        }
    };
}

macro_rules! limbs_op {
    ($name:literal, [$top_a:literal, $top_b:literal], |$a:ident, $b:ident| $expected:expr) => {
        Op {
            name: $name,
            words: [20; 3],
            sample: |rng| limbs::sample(rng, $top_a, $top_b),
            verify: |a, b, out| {
                let ($a, $b) = (limbs::value(a), limbs::value(b));
                let _ = $b;
                limbs::verify_product(out, $expected)
            },
        }
    };
}

macro_rules! fr_limbs_op {
    ($name:literal, [$top_a:literal, $top_b:literal], |$a:ident, $b:ident| $expected:expr) => {
        Op {
            name: $name,
            words: [14; 3],
            sample: |rng| fr_limbs::sample(rng, $top_a, $top_b),
            verify: |a, b, out| {
                let ($a, $b) = (fr_limbs::value(a), fr_limbs::value(b));
                let _ = $b;
                fr_limbs::verify_product(out, $expected)
            },
        }
    };
}

/// All of them, as in the header.
pub(super) const OPS: &[Op] = &[
    field_op!("fq_mul", blst_fp, |a, b| a.mul(b)),
    field_op!("fq_sqr", blst_fp, |a, b| a.sqr()),
    field_op!("fq_add", blst_fp, |a, b| a.add(b)),
    field_op!("fq_sub", blst_fp, |a, b| a.sub(b)),
    field_op!("fq_neg", blst_fp, |a, b| a.neg()),
    field_op!("fq_inv", blst_fp, |a, b| a.inverse()),
    field_op!("fq2_mul", blst_fp2, |a, b| a.mul(b)),
    field_op!("fq2_sqr", blst_fp2, |a, b| a.sqr()),
    field_op!("fq2_add", blst_fp2, |a, b| a.add(b)),
    field_op!("fq2_sub", blst_fp2, |a, b| a.sub(b)),
    field_op!("fq2_inv", blst_fp2, |a, b| a.inverse()),
    field_op!("fqh_mul", blst_fp, |a, b| a.mul(b)),
    field_op!("fqh_sqr", blst_fp, |a, b| a.sqr()),
    field_op!("fqh_sub", blst_fp, |a, b| a.sub(b)),
    field_op!("fqh_neg", blst_fp, |a, b| a.neg()),
    field_op!("fqh_mul_unpacked", blst_fp, |a, b| a.mul(b)),
    field_op!("fqh_mul_add", blst_fp, |a, b| a.mul(b).add(a).add(a).sub(b)),
    field_op!("fqh_negative_sqr", blst_fp, |a, b| a.sqr().neg()),
    field_op!("fqh_mul_two", blst_fp, |a, b| a.mul(b).add(b.mul(a.sub(b)))),
    field_op!("fqh_packed_sum", blst_fp, |a, b| a.add(b)),
    field_op!("fqh_packed_difference", blst_fp, |a, b| a.sub(b)),
    field_op!("fqh2_mul", blst_fp2, |a, b| a.mul(b)),
    field_op!("fqh2_sqr", blst_fp2, |a, b| a.sqr()),
    limbs_op!("limbs_mul", [36, 31], |a, b| a.mul(b)),
    limbs_op!("limbs_sqr", [33, 33], |a, b| a.sqr()),
    limbs_op!("limbs_mul_two", [33, 33], |a, b| a.mul(b).add(b.mul(a.sub(b)))),
    Op {
        name: "limbs_half_normalise_sub",
        words: [20; 3],
        sample: |rng| limbs::sample(rng, 36, 36),
        verify: limbs::verify_sub,
    },
    Op { name: "limbs2_mul", words: [40; 3], sample: limbs::sample2, verify: limbs::verify2_mul },
    Op {
        name: "limbs2_sqr",
        words: [40; 3],
        sample: limbs::sample2,
        verify: |a, _, out| limbs::verify2_mul(a, a, out),
    },
    fr_op!("fr_mul", [Montgomery, Montgomery], verify_mul),
    fr_op!("fr_add", [Montgomery, Montgomery], verify_add),
    fr_op!("fr_sub", [Montgomery, Montgomery], verify_sub),
    fr_op!("fr_constant", [Montgomery, Montgomery], verify_constant, 16),
    fr_op!("fr_mul_constant", [Loose, Montgomery], verify_mul_constant),
    fr_op!("fr_mul_loose", [Loose, Montgomery], verify_mul_loose),
    fr_op!("fr_canonical", [Loose, Montgomery], verify_canonical),
    fr_op!("fr_loose", [Loose, Product], verify_loose, 16),
    fr_op!("fr_exact", [BelowTwice, BelowTwice], verify_exact, 16),
    fr_op!("frh_mul", [Montgomery, Montgomery], verify_mul),
    fr_op!("frh_sqr", [Montgomery, Montgomery], verify_sqr),
    fr_op!("frh_sub", [Montgomery, Montgomery], verify_sub),
    fr_op!("frh_mul_unpacked", [Montgomery, Montgomery], verify_mul),
    fr_op!("frh_mul_add", [Montgomery, Montgomery], verify_mul_add),
    fr_op!("frh_negative_sqr", [Montgomery, Montgomery], verify_negative_sqr),
    fr_limbs_op!("frh_limbs_mul", [37, 31], |a, b| a * b),
    fr_limbs_op!("frh_limbs_sqr", [32, 32], |a, b| a * a),
    fr_limbs_op!("frh_limbs_differences", [31, 31], |a, b| (a - b) * (b - a)),
    Op {
        name: "frh_limbs_to_fr",
        words: [14, 14, 8],
        sample: fr_limbs::sample_below_r,
        verify: fr_limbs::verify_to_fr,
    },
    point_op!("g1_add_mixed", G1, Affine),
    point_op!("g1_add", G1, Xyzz),
    point_op!("g1_add_hybrid", G1, Affine),
    Op { name: "g1_add_batch_integer", words: [24; 3], sample: sample_affine, verify: verify_affine },
    Op { name: "g1_add_batch_hybrid", words: [24; 3], sample: sample_affine, verify: verify_affine },
    point_op!("g1_double", G1, Same),
    point_op!("g2_add_mixed", G2, Affine),
    point_op!("g2_add", G2, Xyzz),
    point_op!("g2_double", G2, Same),
];

/// What the second operand of an addition is.
#[derive(Clone, Copy, PartialEq)]
enum Second {
    Affine,
    Xyzz,
    /// The first one: a doubling.
    Same,
}

const fn second_words<C: Curve>(second: Second) -> usize {
    match second {
        Second::Affine => 2 * C::Field::WORDS,
        Second::Xyzz | Second::Same => 4 * C::Field::WORDS,
    }
}

/// Two points: often the identity, the same point, or opposite ones.
fn sample_points<C: Curve>(rng: &mut ChaCha8Rng, second: Second) -> (Vec<u32>, Vec<u32>) {
    let (x, y) = C::random(rng);
    let p = (!rng.gen_ratio(1, 6)).then_some((x, y));
    let q = match rng.gen_range(0..6) {
        0 => None,
        1 => Some((x, y)),
        2 => Some((x, y.neg())),
        _ => Some(C::random(rng)),
    };
    let b = match second {
        Second::Affine => affine_words::<C>(q),
        Second::Xyzz | Second::Same => xyzz_words::<C>(rng, q),
    };
    (xyzz_words::<C>(rng, p), b)
}

fn affine_words<C: Curve>(point: Point<C>) -> Vec<u32> {
    match point {
        Some((x, y)) => [x.to_words(), y.to_words()].concat(),
        None => vec![0; 2 * C::Field::WORDS],
    }
}

/// A point with a random z. The identity has ZZ = ZZZ = 0, and anything as X and Y.
fn xyzz_words<C: Curve>(rng: &mut ChaCha8Rng, point: Point<C>) -> Vec<u32> {
    let z = loop {
        let z = C::Field::random(rng);
        if !z.is_zero() {
            break z;
        }
    };
    let (zz, zzz) = (z.sqr(), z.sqr().mul(z));
    let words = match point {
        Some((x, y)) => [x.mul(zz), y.mul(zzz), zz, zzz],
        None => [z, zz, z.sub(z), z.sub(z)],
    };
    words.into_iter().flat_map(Field::to_words).collect()
}

fn xyzz_point<C: Curve>(words: &[u32]) -> Result<Point<C>, String> {
    let part = |i| C::Field::from_words(&words[i * C::Field::WORDS..][..C::Field::WORDS]);
    let [x, y, zz, zzz] = [0, 1, 2, 3].map(part);
    if zz.sqr().mul(zz) != zzz.sqr() {
        return Err("ZZ^3 is not ZZZ^2".to_owned());
    }
    Ok((!zz.is_zero()).then(|| (x.mul(zz.inverse()), y.mul(zzz.inverse()))))
}

fn verify_points<C: Curve>(a: &[u32], b: &[u32], out: &[u32], second: Second) -> Result<(), String> {
    let p = xyzz_point::<C>(a)?;
    let q = match second {
        Second::Same => p,
        Second::Xyzz => xyzz_point::<C>(b)?,
        Second::Affine => b.iter().any(|word| *word != 0).then(|| {
            let (x, y) = b.split_at(C::Field::WORDS);
            (C::Field::from_words(x), C::Field::from_words(y))
        }),
    };
    let (expected, found) = (C::add(p, q), xyzz_point::<C>(out)?);
    match expected == found {
        true => Ok(()),
        false => Err(format!("expected {expected:x?}, found {found:x?}")),
    }
}

fn affine_point(words: &[u32]) -> Point<G1> {
    let (x, y) = words.split_at(12);
    words.iter().any(|word| *word != 0).then(|| (blst_fp::from_words(x), blst_fp::from_words(y)))
}

fn sample_affine(rng: &mut ChaCha8Rng) -> (Vec<u32>, Vec<u32>) {
    let (_, b) = sample_points::<G1>(rng, Second::Affine);
    let a = match (rng.gen_range(0..6), affine_point(&b)) {
        (0, _) => None,
        (1, q) => q,
        (2, q) => q.map(|(x, y)| (x, y.neg())),
        // Then a + b is -b, and the second addition cancels.
        (3, q) => G1::add(q, q).map(|(x, y)| (x, y.neg())),
        _ => Some(G1::random(rng)),
    };
    (affine_words::<G1>(a), b)
}

/// The result is a + b (by way of a + 2 b).
fn verify_affine(a: &[u32], b: &[u32], out: &[u32]) -> Result<(), String> {
    let (a, b) = (affine_point(a), affine_point(b));
    let expected = G1::add(a, b);
    match affine_point(out) == expected {
        true => Ok(()),
        false => Err(format!("expected {expected:x?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_is_the_headers() {
        let header = include_str!("../../../kernels/field_ops.cuh");
        let listed: BTreeSet<_> = OPS.iter().map(|op| (op.name, op.words)).collect();
        let found: BTreeSet<_> = header
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("OP("))
            .filter(|rest| !rest.contains("words of a"))
            .map(|rest| {
                let mut fields = rest.split(',').map(str::trim);
                let name = fields.next().expect("a name");
                (name, std::array::from_fn(|_| fields.next().expect("three sizes").parse().expect("a number")))
            })
            .collect();
        assert_eq!(listed, found);
    }

    #[test]
    fn wrong_results_are_found() {
        use rand::SeedableRng;
        for op in OPS {
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let result = op.check(&mut rng, 4, |a, _| Ok(vec![0xdbdb_dbdb; a.len() / op.words[0] * op.words[2]]));
            assert!(result.is_err(), "{}", op.name);
        }
    }
}
