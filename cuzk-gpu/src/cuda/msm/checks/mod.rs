//! Checks on a device, against blstrs and the CPU's arithmetic.

mod full;
mod mixed;
pub(super) mod parts;
mod sort;

use blstrs::{G1Affine, G1Projective, Scalar};
use group::{Curve as _, Group as _};
use rand_chacha::ChaCha8Rng;

use super::{DeviceCurve, Plan, Request, Size};
use crate::{
    arith::{Backend, G1, G2, Table},
    cuda::{Gpu, harness::Check},
};

/// All of them.
pub const CHECKS: &[Check] = &[
    Check { name: "msm/sort", run: sort::sort },
    Check { name: "msm/g1 sizes", run: |gpu, rng| full::sizes::<G1>(gpu, rng, &[0, 1, 2, 3, 31, 257, 1000, 4097]) },
    Check { name: "msm/g1 special scalars and points", run: full::special::<G1> },
    Check { name: "msm/g1 windows and caps", run: full::windows_and_caps::<G1> },
    Check { name: "msm/g1 one bucket", run: full::one_bucket },
    Check { name: "msm/g1 streamed", run: full::streamed },
    Check { name: "msm/g1 selected", run: mixed::selected::<G1> },
    Check { name: "msm/g1 three queries", run: mixed::three_queries },
    Check { name: "msm/g1 mixed in parts", run: mixed::in_parts::<G1> },
    Check { name: "msm/g1 again and again", run: full::again },
    Check { name: "msm/g2 sizes", run: |gpu, rng| full::sizes::<G2>(gpu, rng, &[0, 1, 2, 65, 500]) },
    Check { name: "msm/g2 special scalars and points", run: full::special::<G2> },
    Check { name: "msm/g2 selected", run: mixed::selected::<G2> },
    Check { name: "msm/g2 mixed in parts", run: mixed::in_parts::<G2> },
];

type Outcome = Result<(), String>;

/// Bytes of points as the device keeps them, which are blst's.
fn bytes<C: DeviceCurve>(points: &[C::Affine]) -> Vec<u8> {
    assert_eq!(size_of::<C::Affine>(), C::POINT_BYTES);
    // SAFETY: affine points of blst are their coordinates and nothing else.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast::<u8>(), size_of_val(points)) }.to_vec()
}

/// Words of scalars as blst keeps them.
fn words(scalars: &[Scalar]) -> Vec<u32> {
    // SAFETY: a scalar is its eight words in Montgomery form and nothing else.
    unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast::<u32>(), 8 * scalars.len()) }.to_vec()
}

fn random_points<C: DeviceCurve>(rng: &mut ChaCha8Rng, n: usize) -> Vec<C::Affine> {
    let projective: Vec<C::Projective> = (0..n).map(|_| C::Projective::random(&mut *rng)).collect();
    C::to_affine(&projective)
}

/// For one query.
fn request<C: DeviceCurve>(gpu: &Gpu, size: Size) -> Request {
    Request {
        queries: vec![size],
        streamed: false,
        tables: 1,
        workspace: usize::MAX,
        point_bytes: C::POINT_BYTES,
        sms: gpu.info().sms as usize,
    }
}

fn chosen(request: Request) -> Result<Plan, String> {
    Plan::choose(request.clone()).ok_or_else(|| format!("no plan for {request:?}"))
}

fn expected<C: DeviceCurve>(points: &[C::Affine], scalars: &[Scalar]) -> C::Projective {
    Table::<C>::with_backend(Backend::current(), points)
        .msm_indexed(&(0..scalars.len() as u32).collect::<Vec<_>>(), scalars)
}

/// `n` points in arithmetic progression, all different: an addition each.
pub(in crate::cuda) fn multiples(rng: &mut ChaCha8Rng, n: usize) -> Vec<G1Affine> {
    let step = G1Projective::random(&mut *rng);
    let projective: Vec<G1Projective> =
        std::iter::successors(Some(G1Projective::random(&mut *rng)), |p| Some(p + step)).take(n).collect();
    let mut affine = vec![G1Affine::default(); n];
    G1Projective::batch_normalize(&projective, &mut affine);
    affine
}
