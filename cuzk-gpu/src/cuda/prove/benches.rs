//! How long the phases of a partition take. Every proof is compared with the CPU's, or verified, before it is timed.

use cuzk_synth::porep::PorepTask;
use rand::rngs::OsRng;
use rand_chacha::ChaCha8Rng;

use super::inputs::{BOTH, Pair, Porep};
use crate::{
    cuda::{
        gpu::Gpu,
        harness::{Bench, Goal, Measurement},
        plan::Rows,
    },
    prover::{Blinding, Partition},
    timing::{Phase, Timings},
};

/// All of them.
pub const BENCHES: &[Bench] = &[Bench { name: "prove/2 KiB", run: porep }];

/// Proofs of which the one with the median time of the kernel phase counts.
const RUNS: usize = 9;

fn porep(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let porep = Porep::new(rng)?;
    let (task, partition) = porep.partitions.first().ok_or("there is no sample")?;
    let of = |rows| timed(&porep.pair(gpu, 2, rows)?, task, partition, rows);
    BOTH.into_iter().map(of).collect::<Result<Vec<_>, String>>().map(|rows| rows.concat())
}

fn timed(pair: &Pair, task: &PorepTask, partition: &Partition, rows: Rows) -> Result<Vec<Measurement>, String> {
    let prove = || pair.device.prove(&pair.key, partition, Blinding::random(OsRng)).map_err(|e| e.to_string());
    let (proof, _) = prove()?;
    if !task.verify_partition(0, &pair.srs.prepared, &proof).map_err(|e| e.to_string())? {
        return Err("a wrong proof".to_owned());
    }
    let mut runs = (0..RUNS).map(|_| Ok(prove()?.1)).collect::<Result<Vec<_>, String>>()?;
    runs.sort_by_key(|timings| timings.total(Phase::LockHold));
    let size = format!("2 KiB, {} tables, {rows:?}", pair.key.plan().h.tables);
    Ok(measurements(&size, &runs[RUNS / 2], [60e-3, 60e-3]))
}

/// A row for each phase, then the kernel phase and what follows it, with their goals.
pub(super) fn measurements(size: &str, timings: &Timings, [kernels, tail]: [f64; 2]) -> Vec<Measurement> {
    let row = |kernel: &str, seconds: f64, goal: Option<f64>| Measurement {
        kernel: kernel.to_owned(),
        size: size.to_owned(),
        seconds,
        work: 1.0,
        unit: "partitions",
        ceiling: None,
        goal: goal.map(Goal::Seconds),
    };
    let seconds = |phase| timings.total(phase).as_secs_f64();
    let mut rows: Vec<_> = timings
        .intervals()
        .iter()
        .filter(|interval| !matches!(interval.phase, Phase::LockHold | Phase::LockWait))
        .map(|interval| row(&format!("  {}", interval.phase.name()), seconds(interval.phase).max(1e-9), None))
        .collect();
    rows.push(row("prove kernel phase", seconds(Phase::LockHold), Some(kernels)));
    rows.push(row("prove from release to proof", seconds(Phase::MsmBG2) + seconds(Phase::Epilogue), Some(tail)));
    rows
}
