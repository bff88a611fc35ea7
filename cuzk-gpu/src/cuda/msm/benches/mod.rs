//! How fast multi-scalar multiplications are, at the sizes of proofs. Every result is checked first.

mod full;
mod inputs;
mod mixed;
mod streamed;

use std::time::Instant;

use blstrs::G1Projective;

use super::{Msm, Plan, Request, Size};
use crate::{
    arith::G1,
    cuda::{
        CudaError, Gpu,
        harness::{Bench, Goal, Measurement},
    },
};

/// All of them.
pub const BENCHES: &[Bench] = &[
    Bench { name: "msm/full 2^22", run: |gpu, rng| full::full(gpu, rng, 22, 13, &[(13, 13), (13, 1)], 22e-3) },
    Bench { name: "msm/full 2^26", run: |gpu, rng| full::full(gpu, rng, 26, 4, &[(11, 4), (12, 1)], 220e-3) },
    Bench { name: "msm/full 2^27", run: |gpu, rng| full::full(gpu, rng, 27, 4, &[(11, 4)], 420e-3) },
    Bench { name: "msm/streamed 2^26", run: |gpu, rng| streamed::streamed(gpu, rng, 26) },
    Bench { name: "msm/bits", run: mixed::bits },
    Bench { name: "msm/mixed 2.7 M", run: |gpu, rng| mixed::mixed(gpu, rng, "2.7 M", 2_685_673) },
    Bench { name: "msm/mixed 130 M", run: |gpu, rng| mixed::mixed(gpu, rng, "130 M", 130_169_893) },
];

fn request(gpu: &Gpu, queries: Vec<Size>) -> Request {
    let sms = gpu.info().sms as usize;
    Request { queries, streamed: false, tables: 1, workspace: usize::MAX, point_bytes: 96, sms }
}

fn chosen(request: Request) -> Result<Plan, CudaError> {
    Plan::choose(request).ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))
}

fn row(kernel: String, size: String, seconds: f64, work: usize, goal: Option<f64>) -> Measurement {
    Measurement {
        kernel,
        size,
        seconds,
        work: work as f64,
        unit: "points",
        ceiling: None,
        goal: goal.map(Goal::Seconds),
    }
}

/// Runs, checks, then takes the least of three times by the host's clock; adds the stages of one run.
fn measure(
    msm: &mut Msm<G1>,
    name: &str,
    (size, n): (&str, usize),
    goal: Option<f64>,
    expected: G1Projective,
    mut call: impl FnMut(&mut Msm<G1>) -> Result<(), CudaError>,
) -> Result<Vec<Measurement>, String> {
    let mut least = f64::INFINITY;
    for run in 0..4 {
        let begin = Instant::now();
        let sum = call(msm).and_then(|()| msm.sums()).map_err(|e| e.to_string())?[0];
        let seconds = begin.elapsed().as_secs_f64();
        if sum != expected {
            return Err(format!("{name} {size}: a wrong sum"));
        }
        if run > 0 {
            least = least.min(seconds);
        }
    }
    let mut rows = vec![row(name.to_owned(), size.to_owned(), least, n, goal)];
    msm.trace();
    call(msm).and_then(|()| msm.sums()).map_err(|e| e.to_string())?;
    let stages = msm.stages().map_err(|e| e.to_string())?;
    let pairs = msm.plan().pairs();
    rows.extend(stages.into_iter().map(|(stage, time)| {
        let row = row(format!("  {stage}"), size.to_owned(), time.as_secs_f64().max(1e-9), n, None);
        match stage {
            "sort" => Measurement { work: pairs as f64, unit: "pairs", goal: Some(Goal::Rate(40e9)), ..row },
            _ => row,
        }
    }));
    Ok(rows)
}
