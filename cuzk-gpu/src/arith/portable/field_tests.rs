//! The products and sums of both fields: against the compiled product, against blst, and their ranges.

use blst::{blst_fp, blst_fp_mul, blst_fp_sub, blst_fp2, blst_fp2_inverse, blst_fp2_mul, blst_fp2_sqr};
use blstrs::Scalar;
use ff::Field;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::coordinate::{Coordinate, Fq2};
use super::fq::{self, Fq};
use super::fr::{self, Fr};
use super::limbs::{add, sub};
use super::mont::{has_two_carry_chains, mul_compiled, mul4, mul6};

/// Any limbs, often extreme ones, below `bound`.
fn limbs<const N: usize>(bound: &[u64; N], rng: &mut StdRng) -> [u64; N] {
    loop {
        let limbs = core::array::from_fn(|_| match rng.gen_range(0..4) {
            0 => 0,
            1 => u64::MAX,
            _ => rng.r#gen(),
        });
        let mut limbs: [u64; N] = if rng.gen_range(0..8) == 0 { sub(bound, &[1; N]).0 } else { limbs };
        limbs[N - 1] = limbs[N - 1].min(bound[N - 1]);
        if sub(&limbs, bound).1 == 1 {
            return limbs;
        }
    }
}

fn times<const N: usize>(k: usize, p: &[u64; N]) -> [u64; N] {
    (0..k).fold([0; N], |sum, _| add(&sum, p).0)
}

/// First factors may be anything that leaves room for the modulus, second factors anything.
#[test]
fn both_forms_of_the_product_agree() {
    if !has_two_carry_chains() {
        return;
    }
    let mut rng = StdRng::seed_from_u64(20);
    let (eight, any) = (times(8, &fq::MODULUS.prime), [u64::MAX; 6]);
    let (tight, any_four) = (sub(&[u64::MAX; 4], &fr::MODULUS.prime).0, [u64::MAX; 4]);
    for _ in 0..20_000 {
        let (a, b) = (limbs(&eight, &mut rng), limbs(&any, &mut rng));
        let [mut chains, mut compiled] = [[0; 6]; 2];
        // SAFETY: seen above.
        unsafe { mul6(&mut chains, &a, &b, &fq::MODULUS) };
        mul_compiled(&mut compiled, &a, &b, &fq::MODULUS);
        assert_eq!(chains, compiled, "{a:x?} {b:x?}");
        let (a, b) = (limbs(&tight, &mut rng), limbs(&any_four, &mut rng));
        let [mut chains, mut compiled] = [[0; 4]; 2];
        // SAFETY: seen above.
        unsafe { mul4(&mut chains, &a, &b, &fr::MODULUS) };
        mul_compiled(&mut compiled, &a, &b, &fr::MODULUS);
        assert_eq!(chains, compiled, "{a:x?} {b:x?}");
    }
}

/// An element somewhere in its range: below p, or above where there is room.
fn element(rng: &mut StdRng) -> Fq {
    let mut bound = fq::MODULUS.prime;
    bound[5] += 1 << 60;
    Fq(limbs(&bound, rng))
}

fn to_blst(a: &Fq) -> blst_fp {
    blst_fp { l: a.canonical().0 }
}

fn assert_in_range(a: &Fq) {
    let mut bound = fq::MODULUS.prime;
    bound[5] += 1 << 60;
    assert_eq!(sub(&a.0, &bound).1, 1, "{a:x?}");
    assert_eq!(sub(&a.canonical().0, &fq::MODULUS.prime).1, 1, "{a:x?}");
}

#[test]
fn the_base_field_agrees_with_blst() {
    let mut rng = StdRng::seed_from_u64(21);
    for _ in 0..20_000 {
        let (a, b, c) = (element(&mut rng), element(&mut rng), element(&mut rng));
        let (mut product, mut difference) = (blst_fp::default(), blst_fp::default());
        // SAFETY: references are valid pointers.
        unsafe {
            blst_fp_mul(&mut product, &to_blst(&a), &to_blst(&b));
            blst_fp_sub(&mut difference, &to_blst(&a), &to_blst(&b));
        }
        for (ours, theirs) in [(Fq::mul(&a, &b), product), (Fq::sub(&a, &b), difference)] {
            assert_in_range(&ours);
            assert_eq!(to_blst(&ours), theirs, "{a:x?} {b:x?}");
        }
        let back = Fq::add(&Fq::sub_both(&a, &b, &c), &Fq::add(&b, &c));
        assert_in_range(&back);
        assert_eq!(to_blst(&back), to_blst(&a), "{a:x?} {b:x?} {c:x?}");
        assert!(Fq::sub(&a, &a).is_zero());
    }
}

#[test]
fn the_quadratic_extension_agrees_with_blst() {
    let mut rng = StdRng::seed_from_u64(22);
    let mut draw = || Fq2 { c0: element(&mut rng), c1: element(&mut rng) };
    let convert = |a: &Fq2| blst_fp2 { fp: [to_blst(&a.c0), to_blst(&a.c1)] };
    for _ in 0..5_000 {
        let (a, b) = (draw(), draw());
        let [mut product, mut square, mut inverse] = [blst_fp2::default(); 3];
        // SAFETY: references are valid pointers.
        unsafe {
            blst_fp2_mul(&mut product, &convert(&a), &convert(&b));
            blst_fp2_sqr(&mut square, &convert(&a));
            blst_fp2_inverse(&mut inverse, &convert(&a));
        }
        for (ours, theirs) in [(Fq2::mul(&a, &b), product), (Fq2::sqr(&a), square), (a.invert(), inverse)] {
            assert_in_range(&ours.c0);
            assert_in_range(&ours.c1);
            assert_eq!(convert(&ours), theirs, "{a:x?} {b:x?}");
        }
    }
}

#[test]
fn the_scalar_field_agrees_with_blstrs() {
    let mut rng = StdRng::seed_from_u64(23);
    // Any representative: its canonical form names the number.
    let number = |a: &Fr| {
        let mut scalar = [Scalar::ZERO];
        Fr::in_scalars(&mut scalar)[0] = a.canonical();
        scalar[0]
    };
    for _ in 0..20_000 {
        let (a, b) = (Fr(limbs(&[u64::MAX; 4], &mut rng)), Fr(limbs(&[u64::MAX; 4], &mut rng)));
        let tight = a.tighten();
        assert_eq!(sub(&tight.0, &[0, 0, 0, fr::MODULUS.prime[3] + (1 << 60) + 1]).1, 1, "{a:x?}");
        assert_eq!(number(&Fr::mul(&tight, &b)), number(&a) * number(&b), "{a:x?} {b:x?}");
        assert_eq!(number(&Fr::add(&a, &b)), number(&a) + number(&b), "{a:x?} {b:x?}");
        assert_eq!(number(&Fr::sub(&a, &b)), number(&a) - number(&b), "{a:x?} {b:x?}");
    }
}
