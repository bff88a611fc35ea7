//! Rates of the fields: chains of products in registers.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cuda::{
    error::CudaError,
    gpu::Gpu,
    harness::{Bench, Goal, Measurement, time},
    launch::{Args, Grid},
    memory::DeviceBuffer,
    stream::Stream,
};

/// Benches of fields and curves.
pub const BENCHES: &[Bench] = &[Bench { name: "field/products", run: products }];

/// A kernel that does `ROUNDS` operations on an element a thread.
struct Chain {
    module: &'static str,
    kernel: &'static str,
    words: usize,
    /// Bytes of shared memory a thread.
    shared: u32,
    /// On one H200: what the units can give that limit it most, if that was reckoned.
    ceiling: Option<f64>,
    goal: Option<f64>,
}

/// design.md: 8 T wide multiply-adds a second make 27.9 G integer products in Fq.
const INTEGER_CEILING: f64 = 27.9e9;

/// A multiprocessor quarter reads one register of each bank a cycle: 33.45 T cycles a second and lane. An earlier study's loops
/// of the same forms needed so many a product and a square: Fq 778 and 633, Fr 430 and 345 (squares from rounded shares). Not
/// counted anew in these kernels: a guide, not a bound.
const fn reads_ceiling(cycles: u32) -> Option<f64> {
    Some(33.45e12 / cycles as f64)
}

const INTEGER: &str = "field_bench";
const HYBRID: &str = "field_bench_hybrid";
const FR_HYBRID: &str = "fr_bench_hybrid";

const fn chain(module: &'static str, kernel: &'static str, words: usize, shared: u32, goal: Option<f64>) -> Chain {
    Chain { module, kernel, words, shared, ceiling: None, goal }
}

const CHAINS: &[Chain] = &[
    Chain { ceiling: Some(INTEGER_CEILING), ..chain(INTEGER, "bench_fq_mul", 12, 0, Some(26e9)) },
    chain(INTEGER, "bench_fq_sqr", 12, 0, None),
    Chain { ceiling: Some(INTEGER_CEILING / 3.0), ..chain(INTEGER, "bench_fq2_mul", 24, 0, None) },
    Chain { ceiling: reads_ceiling(778), ..chain(HYBRID, "bench_fqh_mul", 12, 0, Some(38e9)) },
    Chain { ceiling: reads_ceiling(633), ..chain(HYBRID, "bench_fqh_sqr", 12, 0, Some(48e9)) },
    chain("fq2_bench_hybrid", "bench_fqh2_mul", 24, 160, Some(12e9)),
    chain("fq2_bench_hybrid", "bench_fqh2_sqr", 24, 160, None),
    Chain { ceiling: reads_ceiling(430), ..chain(FR_HYBRID, "bench_frh_mul", 8, 0, Some(66e9)) },
    Chain { ceiling: reads_ceiling(345), ..chain(FR_HYBRID, "bench_frh_sqr", 8, 0, None) },
];

const THREADS: u32 = 128;
const ROUNDS: u32 = 1500;

fn products(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    CHAINS.iter().map(|chain| measure(gpu, rng, chain).map_err(|e| e.to_string())).collect()
}

/// The best number of blocks a multiprocessor.
fn measure(gpu: &Gpu, rng: &mut ChaCha8Rng, chain: &Chain) -> Result<Measurement, CudaError> {
    let stream = Stream::new(gpu)?;
    let kernel = gpu.function(chain.module, chain.kernel)?;
    kernel.allow_shared(THREADS * chain.shared)?;
    let most = kernel.blocks_per_sm(THREADS, THREADS * chain.shared)?;
    let len = (gpu.info().sms * most * THREADS) as usize * chain.words;
    // Numbers below 2^380 or 2^252, so below p or r.
    let number = chain.words.min(12);
    let words: Vec<u32> = (0..len).map(|i| rng.r#gen::<u32>() >> if (i + 1) % number == 0 { 4 } else { 0 }).collect();
    let elements = DeviceBuffer::from_host(&stream, &words, "a bench's elements")?;
    let mut best: Option<Measurement> = None;
    for blocks in 1..=most {
        let grid = Grid::new(gpu.info().sms * blocks, THREADS).with_shared(THREADS * chain.shared);
        let args = Args::new().slice(elements.all()).value(ROUNDS);
        // SAFETY: the kernel reads and writes one element a thread, and there are as many.
        let seconds = time(&stream, 3, || unsafe { kernel.launch(&stream, grid, &args) })?;
        let measurement = Measurement {
            kernel: chain.kernel.to_owned(),
            size: format!("{blocks} x {THREADS} threads"),
            seconds,
            work: f64::from(grid.blocks[0] * THREADS) * f64::from(ROUNDS),
            unit: "operations",
            ceiling: chain.ceiling,
            goal: chain.goal.map(Goal::Rate),
        };
        if best.as_ref().is_none_or(|b| measurement.rate() > b.rate()) {
            best = Some(measurement);
        }
    }
    best.ok_or_else(|| CudaError::Misuse {
        device: gpu.label().to_owned(),
        what: format!("kernel {} does not fit a multiprocessor", chain.kernel),
    })
}
