//! H, and multi-scalar multiplication over scalars as they are in H (full), in a bit vector (bits) and in a PoRep witness
//! (mixed), in our two arithmetics and in those of peers.

use std::sync::Arc;

use anyhow::Result;
use bellperson::{domain::EvaluationDomain, gpu::LockedMultiexpKernel, multiexp::multiexp};
use blst::MultiPoint;
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_gpu::arith::{Backend, Curve, FrVec, G1, G2, Table, fixed_base, quotient_h};
use ec_gpu_gen::{multiexp_cpu::FullDensity, threadpool::Worker};
use ff::{Field, PrimeField};
use group::{Curve as _, Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    Calibration::AllThreads,
    Candidates, Operation, Tier,
    arkworks::{self, ArkCurve},
    name, power,
};

pub(super) fn add(operations: &mut Vec<Operation>) {
    for (log_n, tier) in [(16, Tier::Ci), (18, Tier::Full), (20, Tier::Full), (22, Tier::Full)] {
        operations.push(Operation::new(["ntt", "fr"], power(log_n), tier, AllThreads, move |c| ntt(c, log_n)));
        operations
            .push(Operation::new(["quotient", "fr"], power(log_n), tier, AllThreads, move |c| quotient(c, log_n)));
    }
    for scalars in [Scalars::Full, Scalars::Bits, Scalars::Mixed] {
        for (log_n, tier) in [(14, Tier::Ci), (16, Tier::Full), (18, Tier::Full), (20, Tier::Full)] {
            let mut add = |group, prepare: fn(&mut Candidates, Scalars, u32) -> Result<()>| {
                operations.push(Operation::new([scalars.room(), group], power(log_n), tier, AllThreads, move |c| {
                    prepare(c, scalars, log_n)
                }));
            };
            add("g1", msm::<G1, G1Affine>);
            add("g2", msm::<G2, G2Affine>);
        }
    }
}

/// One transform: from values on the domain to coefficients. Ours leaves them in bit-reversed order and times n, as H
/// wants them; bellperson puts them in order and divides.
fn ntt(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(2);
    let values: Arc<Vec<Scalar>> = Arc::new((0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect());
    let expected = bellperson_interpolation(&values);
    let n = Scalar::from(1u64 << log_n);
    for backend in Backend::available() {
        let values = values.clone();
        let run = move || FrVec::with_backend(backend, &values, log_n).interpolate();
        let equals = |found: &FrVec| {
            let found = found.to_scalars();
            expected.iter().enumerate().all(|(k, x)| found[k.reverse_bits() >> (usize::BITS - log_n)] == x * n)
        };
        candidates.ours(name(backend), run, equals)?;
    }
    let bellperson = || {
        let values = values.clone();
        Ok(move || bellperson_interpolation(&values))
    };
    candidates.peer("bellperson", bellperson, |found| *found == expected)
}

fn bellperson_interpolation(values: &[Scalar]) -> Vec<Scalar> {
    let mut domain = EvaluationDomain::from_coeffs(values.to_vec()).expect("the size is small");
    domain.ifft(&Worker::new(), &mut None).expect("no device");
    domain.into_coeffs()
}

/// H from the values of A and B on the domain. Ours takes six transforms, peers take seven, and C·w beside.
pub(super) fn quotient(candidates: &mut Candidates, log_n: u32) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(1);
    let mut draw = || -> Arc<Vec<Scalar>> { Arc::new((0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect()) };
    let (a, b) = (draw(), draw());
    let product: Vec<Scalar> = a.iter().zip(b.iter()).map(|(a, b)| a * b).collect();
    let expected = bellperson_quotient(&a, &b, &product);
    for backend in Backend::available() {
        let (a, b) = (a.clone(), b.clone());
        let run = move || {
            let vector = |values: &[Scalar]| FrVec::with_backend(backend, values, log_n);
            quotient_h(vector(&a), vector(&b), None)
        };
        candidates.ours(name(backend), run, |h| *h == expected)?;
    }
    let ark = || arkworks::quotient(&a, &b, &product);
    candidates.peer("arkworks", ark, |h| arkworks::scalars_equal(h, &expected))?;
    let bellperson = || {
        let (a, b, product) = (a.clone(), b.clone(), product.clone());
        Ok(move || bellperson_quotient(&a, &b, &product))
    };
    candidates.peer("bellperson", bellperson, |h| *h == expected)
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

/// What scalars are drawn.
#[derive(Clone, Copy)]
pub(super) enum Scalars {
    Full,
    Bits,
    Mixed,
}

impl Scalars {
    fn room(self) -> &'static str {
        match self {
            Self::Full => "msm_full",
            Self::Bits => "msm_bits",
            Self::Mixed => "msm_mixed",
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

    /// Bits that the largest scalar may have, for implementations that want to know.
    fn bits(self) -> usize {
        match self {
            Self::Bits => 1,
            Self::Full | Self::Mixed => 255,
        }
    }
}

pub(super) fn msm<C, A>(candidates: &mut Candidates, kind: Scalars, log_n: u32) -> Result<()>
where
    C: Curve<Affine = A, Projective = A::Curve>,
    A: PrimeCurveAffine<Scalar = Scalar> + BlstCurve + ArkCurve,
    A::Curve: PartialEq,
{
    let mut rng = StdRng::seed_from_u64(2);
    let secrets: Vec<Scalar> = (0..1 << log_n).map(|_| Scalar::random(&mut rng)).collect();
    let points = Arc::new(fixed_base::<C>(Backend::current(), &A::generator(), &secrets));
    let scalars: Vec<Scalar> = (0..1 << log_n).map(|_| kind.draw(&mut rng)).collect();
    // A sum of known multiples of the generator: an answer that owes nothing to any of the implementations.
    let expected = A::generator() * secrets.iter().zip(&scalars).map(|(a, b)| a * b).sum::<Scalar>();
    let is_right = |sum: &A::Curve| *sum == expected;

    for backend in Backend::available() {
        let table = Table::<C>::with_backend(backend, &points);
        let (ones, indices, full) = split(&scalars);
        let run = move || table.sum_selected(&ones) + table.msm_indexed(&indices, &full);
        candidates.ours(name(backend), run, is_right)?;
    }
    let ark = || Ok(A::ark_msm(&points, &scalars));
    candidates.peer("arkworks", ark, |sum| A::ark_equals(sum, &expected.to_affine()))?;
    let blst = || Ok(A::blst_msm(&points, &scalars, kind.bits()));
    candidates.peer("blst", blst, is_right)?;
    let bellperson = || {
        let integers = Arc::new(scalars.iter().map(Scalar::to_repr).collect::<Vec<_>>());
        let (points, worker) = (points.clone(), Worker::new());
        Ok(move || {
            let kernel = &mut LockedMultiexpKernel::<A>::new(false);
            multiexp(&worker, (points.clone(), 0), FullDensity, integers.clone(), kernel).wait().expect("lengths fit")
        })
    };
    candidates.peer("bellperson", bellperson, is_right)
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

/// A group in which blst has a Pippenger of its own, with its own threads.
pub(super) trait BlstCurve: PrimeCurveAffine<Scalar = Scalar> {
    /// The sum, ready to be computed.
    fn blst_msm(points: &[Self], scalars: &[Scalar], bits: usize) -> impl FnMut() -> Self::Curve + 'static;
}

macro_rules! blst_curve {
    ($Affine:ident, $Projective:ident) => {
        impl BlstCurve for $Affine {
            fn blst_msm(points: &[Self], scalars: &[Scalar], bits: usize) -> impl FnMut() -> $Projective + 'static {
                let points: Vec<_> = points.iter().map(|point| *point.as_ref()).collect();
                let bytes =
                    |scalar: &Scalar| scalar.to_bytes_le().into_iter().take(bits.div_ceil(8)).collect::<Vec<_>>();
                let scalars: Vec<u8> = scalars.iter().flat_map(bytes).collect();
                move || {
                    let mut sum = $Projective::identity();
                    *sum.as_mut() = points.mult(&scalars, bits);
                    sum
                }
            }
        }
    };
}

blst_curve!(G1Affine, G1Projective);
blst_curve!(G2Affine, G2Projective);
