//! The vector field Fq against blst: random values, values near 0 and p, and factors beyond p.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one contract throughout: the features are checked at each test's start"
)]

use blst::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::Fq;
use crate::arith::backend::Backend;

type FqLanes = [blst_fp; 8];

fn random_fq(rng: &mut StdRng) -> blst_fp {
    let p = Fq::constants().multiples[1];
    let _ = p;
    let mut fp = blst_fp::default();
    let special = rng.gen_range(0..12);
    let bytes: [u8; 48] = core::array::from_fn(|_| rng.r#gen());
    let mut words = [0u64; 8];
    words[..6].copy_from_slice(&core::array::from_fn::<u64, 6, _>(|i| {
        u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap())
    }));
    words[5] &= 0x0fff_ffff_ffff_ffff;
    match special {
        0 => words = [0; 8],
        1 => words = [1, 0, 0, 0, 0, 0, 0, 0],
        _ => {}
    }
    unsafe { blst_fp_from_uint64(&mut fp, words.as_ptr()) };
    if special == 2 || special == 1 && rng.r#gen() {
        let one = blst_fp::default();
        let mut r = blst_fp::default();
        unsafe { blst_fp_sub(&mut r, &one, &fp) };
        fp = r;
    }
    fp
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_fq(a: &FqLanes) -> Fq {
    unsafe { Fq::from_blst(core::array::from_fn(|l| &raw const a[l])) }
}

fn map2<T: Copy + Default, const N: usize>(
    a: &[T; N],
    b: &[T; N],
    f: unsafe extern "C" fn(*mut T, *const T, *const T),
) -> [T; N] {
    core::array::from_fn(|l| {
        let mut r = T::default();
        unsafe { f(&mut r, &a[l], &b[l]) };
        r
    })
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn check_fq() {
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..2000 {
        let a: FqLanes = core::array::from_fn(|_| random_fq(&mut rng));
        let b: FqLanes = core::array::from_fn(|_| random_fq(&mut rng));
        let (va, vb) = unsafe { (load_fq(&a), load_fq(&b)) };
        assert_eq!(va.to_blst(), a);
        let product = map2(&a, &b, blst_fp_mul);
        assert_eq!(Fq::mul(&va, &vb).to_blst(), product);
        assert_eq!(Fq::mul_raw(&va, &vb).norm().to_blst(), product);
        assert_eq!(Fq::mul(&va.plus::<5>().norm(), &vb.plus::<8>().norm()).to_blst(), product);
        assert_eq!(Fq::sqr_raw(&va).norm().to_blst(), map2(&a, &a, blst_fp_mul));
        assert_eq!(Fq::sqr_raw(&va.plus::<6>().norm()).norm().to_blst(), map2(&a, &a, blst_fp_mul));
        assert_eq!(va.add_raw(vb).norm().to_blst(), map2(&a, &b, blst_fp_add));
        assert_eq!(va.sub_raw(vb).plus::<4>().norm().to_blst(), map2(&a, &b, blst_fp_sub));
        assert_eq!(va.sub_raw(vb).plus::<6>().cut::<4>().cut::<2>().norm().to_blst(), map2(&a, &b, blst_fp_sub));
        let squares = map2(&map2(&a, &a, blst_fp_mul), &map2(&b, &b, blst_fp_mul), blst_fp_add);
        assert_eq!(Fq::mul_mul_add_raw(&va, &va, &vb, &vb).norm().to_blst(), squares);
        let zero = va.sub_raw(vb).plus::<4>().zero_lanes();
        for l in 0..8 {
            assert_eq!(zero >> l & 1 == 1, a[l] == b[l]);
        }
        match va.invert() {
            None => assert!(a.contains(&blst_fp::default())),
            Some(inverse) => {
                let one = map2(&inverse.to_blst(), &a, blst_fp_mul);
                assert_eq!(one, Fq::one().to_blst());
            }
        }
    }
}

#[test]
fn fields_agree_with_blst() {
    if Backend::detect() == Backend::Ifma {
        unsafe {
            check_fq();
        }
    }
}
