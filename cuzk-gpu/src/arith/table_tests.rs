//! Sums over tables in both groups and both backends, against blstrs' scalar multiplication and addition.

use blstrs::Scalar;
use ff::Field;
use group::Group;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::arith::backend::Backend;
use crate::arith::curve::{Curve, G1, G2};
use crate::arith::table::Table;

/// Points A[i] + B[j], which do not collide in the rounds of a tree as an arithmetic progression would.
fn random_points<C: Curve>(n: usize, rng: &mut StdRng) -> Vec<C::Affine> {
    let side = (n as f64).sqrt() as usize + 1;
    let a: Vec<C::Projective> = (0..side).map(|_| C::Projective::random(&mut *rng)).collect();
    let b: Vec<C::Projective> = (0..side).map(|_| C::Projective::random(&mut *rng)).collect();
    let sums: Vec<C::Projective> = (0..n).map(|i| a[i / side] + b[i % side]).collect();
    C::to_affine(&sums)
}

/// Points with many repetitions, opposites and identities.
fn awkward_points<C: Curve>(n: usize, rng: &mut StdRng) -> Vec<C::Affine> {
    let few: Vec<C::Projective> = (0..3).map(|_| C::Projective::random(&mut *rng)).collect();
    let points: Vec<C::Projective> = (0..n)
        .map(|_| match rng.gen_range(0..8) {
            0 => C::Projective::identity(),
            k => few[k % 3] * if rng.r#gen() { Scalar::ONE } else { -Scalar::ONE },
        })
        .collect();
    C::to_affine(&points)
}

fn awkward_scalar(rng: &mut StdRng) -> Scalar {
    let half = Scalar::from(2).invert().unwrap();
    match rng.gen_range(0..12) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        3 => half,
        4 => -half,
        5 => Scalar::from(rng.gen_range(0..300)),
        6 => Scalar::from(1 << rng.gen_range(0..63)).square(),
        7 => -Scalar::from(u64::MAX),
        _ => Scalar::random(rng),
    }
}

fn naive<C: Curve>(points: &[C::Affine], scalars: &[Scalar]) -> C::Projective {
    points.iter().zip(scalars).map(|(p, s)| C::Projective::from(p) * s).sum()
}

fn check_msm<C: Curve>(points: &[C::Affine], scalars: &[Scalar], rng: &mut StdRng) {
    let expected = naive::<C>(points, scalars);
    let indices: Vec<u32> = (0..scalars.len()).map(|_| rng.gen_range(0..points.len()) as u32).collect();
    let picked: Vec<C::Affine> = indices.iter().map(|&i| points[i as usize]).collect();
    let expected_indexed = naive::<C>(&picked, scalars);
    for backend in Backend::available() {
        let table = Table::<C>::with_backend(backend, points);
        assert!(table.msm(scalars) == expected, "{backend:?}, {} points", points.len());
        assert!(table.msm_indexed(&indices, scalars) == expected_indexed, "{backend:?}, {} points", points.len());
    }
}

fn msm_in<C: Curve>(sizes: &[usize]) {
    let mut rng = StdRng::seed_from_u64(3);
    for &n in sizes {
        let points = random_points::<C>(n, &mut rng);
        let random: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
        let awkward: Vec<Scalar> = (0..n).map(|_| awkward_scalar(&mut rng)).collect();
        check_msm::<C>(&points, &random, &mut rng);
        check_msm::<C>(&points, &awkward, &mut rng);
        let points = awkward_points::<C>(n, &mut rng);
        check_msm::<C>(&points, &random, &mut rng);
        check_msm::<C>(&points, &awkward, &mut rng);
        check_msm::<C>(&points, &vec![random[0]; n], &mut rng);
    }
}

#[test]
fn msm_g1_equals_the_naive_sum() {
    msm_in::<G1>(&[1, 2, 3, 7, 8, 9, 63, 200, 1000, 3000]);
}

#[test]
fn msm_g2_equals_the_naive_sum() {
    msm_in::<G2>(&[1, 2, 9, 100, 700]);
}

/// Everything in one bucket: the lists have to be cut into pieces, more than once.
#[test]
fn skewed_scalars() {
    let mut rng = StdRng::seed_from_u64(4);
    let n = 70_000;
    let points = random_points::<G1>(n, &mut rng);
    let ones = vec![Scalar::ONE; n];
    let expected: blstrs::G1Projective = points.iter().map(blstrs::G1Projective::from).sum();
    for backend in Backend::available() {
        let table = Table::<G1>::with_backend(backend, &points);
        assert!(table.msm(&ones) == expected);
        assert!(table.msm(&vec![-Scalar::ONE; n]) == -expected);
    }
}

#[test]
fn no_scalars() {
    for backend in Backend::available() {
        let table = Table::<G1>::with_backend(backend, &[]);
        assert!(bool::from(table.msm(&[]).is_identity()));
        assert!(bool::from(table.sum_selected(&[!0, 1]).is_identity()));
    }
}

fn selected_in<C: Curve>(sizes: &[usize]) {
    let mut rng = StdRng::seed_from_u64(5);
    for &n in sizes {
        for points in [random_points::<C>(n, &mut rng), awkward_points::<C>(n, &mut rng)] {
            for density in [0.0, 0.02, 0.5, 1.0] {
                let bitmap: Vec<u64> = (0..n.div_ceil(64))
                    .map(|_| (0..64).fold(0, |word, bit| word | u64::from(rng.gen_bool(density)) << bit))
                    .collect();
                let expected: C::Projective = (0..n)
                    .filter(|i| bitmap[i / 64] >> (i % 64) & 1 == 1)
                    .map(|i| C::Projective::from(&points[i]))
                    .sum();
                for backend in Backend::available() {
                    let sum = Table::<C>::with_backend(backend, &points).sum_selected(&bitmap);
                    assert!(sum == expected, "{backend:?}, {n} points, density {density}");
                }
            }
        }
    }
}

#[test]
fn selected_sum_g1() {
    selected_in::<G1>(&[1, 2, 8, 63, 64, 65, 600, 5000, 20_000]);
}

#[test]
fn selected_sum_g2() {
    selected_in::<G2>(&[1, 65, 600, 3000]);
}
