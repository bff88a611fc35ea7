//! blst's fields and curves, behind the little that the checks need of them.

use blst::{
    blst_fp, blst_fp_add, blst_fp_cneg, blst_fp_eucl_inverse, blst_fp_from_uint64, blst_fp_mul, blst_fp_sqr,
    blst_fp_sub, blst_fp2, blst_fp2_add, blst_fp2_cneg, blst_fp2_eucl_inverse, blst_fp2_mul, blst_fp2_sqr,
    blst_fp2_sub, blst_p1, blst_p1_add_or_double, blst_p1_affine, blst_p1_from_affine, blst_p1_is_inf,
    blst_p1_to_affine, blst_p2, blst_p2_add_or_double, blst_p2_affine, blst_p2_from_affine, blst_p2_is_inf,
    blst_p2_to_affine,
};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::{Curve as _, Group as _};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::arith::primes;

/// A field with the layout that kernels have in memory: words of 32 bits, Montgomery form, below p.
pub(super) trait Field: Copy + PartialEq + std::fmt::Debug {
    /// Words of an element.
    const WORDS: usize;

    fn from_words(words: &[u32]) -> Self;
    fn to_words(self) -> Vec<u32>;
    fn random(rng: &mut ChaCha8Rng) -> Self;
    fn mul(self, other: Self) -> Self;
    fn sqr(self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn neg(self) -> Self;
    /// 0 for 0.
    fn inverse(self) -> Self;

    fn is_zero(self) -> bool {
        self == self.sub(self)
    }
}

/// The element of a number of 384 bits.
pub(super) fn from_number(limbs: [u64; 6]) -> blst_fp {
    let mut out = blst_fp::default();
    // SAFETY: the number has six words.
    unsafe { blst_fp_from_uint64(&mut out, limbs.as_ptr()) };
    out
}

macro_rules! arithmetic {
    ($mul:ident, $sqr:ident, $add:ident, $sub:ident, $cneg:ident, $inverse:ident) => {
        fn mul(self, other: Self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $mul(&mut out, &self, &other) };
            out
        }
        fn sqr(self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $sqr(&mut out, &self) };
            out
        }
        fn add(self, other: Self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $add(&mut out, &self, &other) };
            out
        }
        fn sub(self, other: Self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $sub(&mut out, &self, &other) };
            out
        }
        fn neg(self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $cneg(&mut out, &self, true) };
            out
        }
        fn inverse(self) -> Self {
            let mut out = Self::default();
            // SAFETY: the pointers are to elements.
            unsafe { $inverse(&mut out, &self) };
            out
        }
    };
}

impl Field for blst_fp {
    const WORDS: usize = 12;

    fn from_words(words: &[u32]) -> Self {
        let mut out = Self::default();
        for (limb, pair) in out.l.iter_mut().zip(words.chunks_exact(2)) {
            *limb = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        out
    }

    fn to_words(self) -> Vec<u32> {
        self.l.iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]).collect()
    }

    /// Often an extreme: of the number, or of its Montgomery form.
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let minus = |k| {
            // p - 1, p - 2 and R mod p are tried often.
            let mut l = primes::Q;
            l[0] -= k;
            l
        };
        match rng.gen_range(0..16) {
            0 => Self::default(),
            1 => Self { l: [1, 0, 0, 0, 0, 0] },
            2 => Self { l: minus(1) },
            3 => Self { l: minus(2) },
            4 => from_number([1, 0, 0, 0, 0, 0]),
            5 => from_number(minus(1)),
            // Words of ones, and of zeros.
            6 | 7 => {
                let mut l = [0; 6].map(|_: u64| [0, u64::MAX, 0xffff_ffff, !0xffff_ffff][rng.gen_range(0..4)]);
                l[5] >>= 4; // below 2^380
                Self { l }
            }
            _ => from_number(rng.r#gen()),
        }
    }

    arithmetic!(blst_fp_mul, blst_fp_sqr, blst_fp_add, blst_fp_sub, blst_fp_cneg, blst_fp_eucl_inverse);
}

impl Field for blst_fp2 {
    const WORDS: usize = 24;

    fn from_words(words: &[u32]) -> Self {
        Self { fp: [blst_fp::from_words(&words[..12]), blst_fp::from_words(&words[12..])] }
    }

    fn to_words(self) -> Vec<u32> {
        self.fp.into_iter().flat_map(Field::to_words).collect()
    }

    fn random(rng: &mut ChaCha8Rng) -> Self {
        Self { fp: [blst_fp::random(rng), blst_fp::random(rng)] }
    }

    arithmetic!(blst_fp2_mul, blst_fp2_sqr, blst_fp2_add, blst_fp2_sub, blst_fp2_cneg, blst_fp2_eucl_inverse);
}

/// A curve; points are affine, the identity is `None`.
pub(super) trait Curve {
    type Field: Field;

    /// Any point.
    fn random(rng: &mut ChaCha8Rng) -> (Self::Field, Self::Field);
    /// p + q.
    fn add(p: Point<Self>, q: Point<Self>) -> Point<Self>;
}

pub(super) type Point<C> = Option<(<C as Curve>::Field, <C as Curve>::Field)>;

pub(super) struct G1;
pub(super) struct G2;

macro_rules! curve {
    ($name:ident, $field:ty, $projective:ty, $affine:ty, $raw:ident, $raw_affine:ident, $from:ident, $add:ident, $inf:ident,
     $to:ident) => {
        impl Curve for $name {
            type Field = $field;

            fn random(rng: &mut ChaCha8Rng) -> (Self::Field, Self::Field) {
                let point: $affine = <$projective>::random(rng).to_affine();
                let raw: &$raw_affine = point.as_ref();
                (raw.x, raw.y)
            }

            fn add(p: Point<Self>, q: Point<Self>) -> Point<Self> {
                let [p, q] = [p, q].map(|point| {
                    let mut raw = <$raw>::default();
                    if let Some((x, y)) = point {
                        // SAFETY: the pointers are to points.
                        unsafe { $from(&mut raw, &$raw_affine { x, y }) };
                    }
                    raw
                });
                let (mut sum, mut affine) = (<$raw>::default(), <$raw_affine>::default());
                // SAFETY: the pointers are to points.
                unsafe {
                    $add(&mut sum, &p, &q);
                    if $inf(&sum) {
                        return None;
                    }
                    $to(&mut affine, &sum);
                }
                Some((affine.x, affine.y))
            }
        }
    };
}
curve!(
    G1,
    blst_fp,
    G1Projective,
    G1Affine,
    blst_p1,
    blst_p1_affine,
    blst_p1_from_affine,
    blst_p1_add_or_double,
    blst_p1_is_inf,
    blst_p1_to_affine
);
curve!(
    G2,
    blst_fp2,
    G2Projective,
    G2Affine,
    blst_p2,
    blst_p2_affine,
    blst_p2_from_affine,
    blst_p2_add_or_double,
    blst_p2_is_inf,
    blst_p2_to_affine
);
