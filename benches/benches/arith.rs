//! H, and multi-scalar multiplication over scalars as they are in H (full), in a bit vector (bits) and in a PoRep witness
//! (mixed): our two arithmetics beside bellperson's, on the same input. Ids read group/implementation/size;
//! `cargo run --release -p cuzk-benches --bin peers -- ratios` prints the ratios afterwards.

use std::{hint::black_box, sync::Arc, time::Duration};

use bellperson::{domain::EvaluationDomain, gpu::LockedMultiexpKernel, multiexp::multiexp};
use blstrs::{G1Affine, G2Affine, Scalar};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cuzk_gpu::arith::{Backend, Curve, FrVec, G1, G2, Table, fixed_base, quotient_h};
use ec_gpu_gen::{multiexp_cpu::FullDensity, threadpool::Worker};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Few samples: the longest take seconds each.
fn configured() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
}

fn quotient(c: &mut Criterion) {
    let mut group = c.benchmark_group("quotient_fr");
    let mut rng = StdRng::seed_from_u64(1);
    for log_n in [16, 18, 20, 22] {
        let a: Vec<Scalar> = (0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect();
        let b: Vec<Scalar> = (0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect();
        let product: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
        let expected = bellperson_quotient(&a, &b, &product);
        for backend in Backend::available() {
            let run = || {
                let vector = |values: &[Scalar]| FrVec::with_backend(backend, values, log_n);
                quotient_h(vector(&a), vector(&b), None)
            };
            assert!(run() == expected, "H is wrong");
            group.bench_function(id(backend, log_n), |bencher| bencher.iter(|| black_box(run())));
        }
        group.bench_function(BenchmarkId::new("bellperson", size(log_n)), |bencher| {
            bencher.iter(|| black_box(bellperson_quotient(&a, &b, &product)));
        });
    }
}

fn bellperson_quotient(a: &[Scalar], b: &[Scalar], c: &[Scalar]) -> Vec<Scalar> {
    let worker = Worker::new();
    let on_coset = |values: &[Scalar]| {
        let mut domain = EvaluationDomain::from_coeffs(values.to_vec()).expect("the size is small");
        domain.ifft(&worker, &mut None).expect("no device");
        domain.coset_fft(&worker, &mut None).expect("no device");
        domain
    };
    let mut h = on_coset(a);
    h.mul_assign(&worker, &on_coset(b));
    h.sub_assign(&worker, &on_coset(c));
    h.divide_by_z_on_coset(&worker);
    h.icoset_fft(&worker, &mut None).expect("no device");
    let mut h = h.into_coeffs();
    h.pop();
    h
}

#[derive(Clone, Copy)]
enum Scalars {
    Full,
    Bits,
    Mixed,
}

impl Scalars {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Bits => "bits",
            Self::Mixed => "mixed",
        }
    }

    fn draw(self, rng: &mut StdRng) -> Scalar {
        match self {
            Self::Full => Scalar::random(rng),
            // As in a PoRep witness: 1.3 % full.
            Self::Mixed if rng.gen_bool(0.013) => Scalar::random(rng),
            Self::Bits | Self::Mixed => Scalar::from(u64::from(rng.r#gen::<bool>())),
        }
    }
}

fn msm<C, A>(c: &mut Criterion, curve: &str, sizes: &[u32])
where
    C: Curve<Affine = A, Projective = A::Curve>,
    A: PrimeCurveAffine<Scalar = Scalar>,
    A::Curve: PartialEq,
{
    let mut rng = StdRng::seed_from_u64(2);
    for kind in [Scalars::Full, Scalars::Bits, Scalars::Mixed] {
        let mut group = c.benchmark_group(format!("msm_{curve}_{}", kind.name()));
        for &log_n in sizes {
            let secrets: Vec<Scalar> = (0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect();
            let points = fixed_base::<C>(Backend::current(), &A::generator(), &secrets);
            let scalars: Vec<Scalar> = (0..1 << log_n).map(|_| kind.draw(&mut rng)).collect();
            // A sum of known multiples of the generator: an answer that owes nothing to either implementation.
            let expected = A::generator() * secrets.iter().zip(&scalars).map(|(a, b)| a * b).sum::<Scalar>();

            let (ones, indices, full) = split(&scalars);
            for backend in Backend::available() {
                let table = Table::<C>::with_backend(backend, &points);
                let run = || table.sum_selected(&ones) + table.msm_indexed(&indices, &full);
                assert!(run() == expected, "the sum is wrong");
                group.bench_function(id(backend, log_n), |bencher| bencher.iter(|| black_box(run())));
            }

            let worker = Worker::new();
            let points = Arc::new(points);
            let integers = Arc::new(scalars.iter().map(Scalar::to_repr).collect::<Vec<_>>());
            let run = || {
                let kernel = &mut LockedMultiexpKernel::<A>::new(false);
                multiexp(&worker, (points.clone(), 0), FullDensity, integers.clone(), kernel)
                    .wait()
                    .expect("lengths fit")
            };
            assert!(run() == expected, "bellperson's sum is wrong");
            group.bench_function(BenchmarkId::new("bellperson", size(log_n)), |bencher| {
                bencher.iter(|| black_box(run()));
            });
        }
    }
}

/// Ones as a bitmap, and the scalars that are neither 0 nor 1 with their indices.
fn split(scalars: &[Scalar]) -> (Vec<u64>, Vec<u32>, Vec<Scalar>) {
    let mut ones = vec![0; scalars.len().div_ceil(64)];
    let (mut indices, mut full) = (Vec::new(), Vec::new());
    for (i, scalar) in scalars.iter().enumerate() {
        if *scalar == Scalar::ONE {
            ones[i / 64] |= 1 << (i % 64);
        } else if *scalar != Scalar::ZERO {
            indices.push(i as u32);
            full.push(*scalar);
        }
    }
    (ones, indices, full)
}

fn id(backend: Backend, log_n: u32) -> BenchmarkId {
    BenchmarkId::new(format!("{backend:?}").to_lowercase(), size(log_n))
}

fn size(log_n: u32) -> String {
    format!("2^{log_n}")
}

fn msm_g1(c: &mut Criterion) {
    msm::<G1, G1Affine>(c, "g1", &[14, 16, 18, 20]);
}

fn msm_g2(c: &mut Criterion) {
    msm::<G2, G2Affine>(c, "g2", &[14, 16, 18]);
}

criterion_group! {
    name = arith;
    config = configured();
    targets = quotient, msm_g1, msm_g2
}
criterion_main!(arith);
