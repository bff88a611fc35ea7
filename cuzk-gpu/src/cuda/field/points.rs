//! Sums of points on a device: rates, and whether the sums of the rate's kernels are right.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::{Curve as _, Group as _, prime::PrimeCurveAffine as _};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::reference::Field as _;
use crate::cuda::{
    error::CudaError,
    gpu::Gpu,
    harness::{Bench, Check, Goal, Measurement, time},
    launch::{Args, Grid},
    memory::DeviceBuffer,
    stream::Stream,
};

/// Checks of the kernels below.
pub const CHECKS: &[Check] = &[
    Check { name: "curve/g1 batches", run: |gpu, rng| check_batches(gpu, rng, BATCHES) },
    Check { name: "curve/g1 batches, integer", run: |gpu, rng| check_batches(gpu, rng, INTEGER_BATCHES) },
];

/// Benches of the kernels below.
pub const BENCHES: &[Bench] = &[
    Bench { name: "curve/xyzz additions", run: xyzz_rates },
    Bench { name: "curve/affine additions", run: batch_rates },
];

/// The module of batches in the form that suits the architecture, and in the integer form.
const BATCHES: &str = "g1_batch_bench";
const INTEGER_BATCHES: &str = "g1_batch_bench_integer";
/// As in `xyzz_bench.cuh`, `g1_bench_hybrid.cu` and `g1_batch_bench.cu`.
const POOL: usize = 512;
/// Threads of a block: of XYZZ sums in the integer and in the hybrid form, and of batches.
const THREADS: u32 = 128;
const HYBRID_THREADS: u32 = 384;
const BATCH_THREADS: u32 = 256;
/// Words of an affine point.
const WORDS: usize = 24;
/// Bytes of shared memory a thread, of hybrid XYZZ sums.
const XYZZ_SHARED: u32 = 6 * 80;

/// Bytes of shared memory a thread, of batches.
fn batch_shared(gpu: &Gpu, module: &str) -> u32 {
    if module == BATCHES && gpu.info().arch.prefers_hybrid() { 5 * 80 } else { 0 }
}

fn words(points: &[G1Affine]) -> Vec<u32> {
    let parts = points.iter().flat_map(|point| {
        let raw: &blst::blst_p1_affine = point.as_ref();
        // blst, too, has zeros for the identity.
        [raw.x, raw.y]
    });
    parts.flat_map(blst::blst_fp::to_words).collect()
}

fn words_g2(points: &[G2Affine]) -> Vec<u32> {
    let parts = points.iter().flat_map(|point| {
        let raw: &blst::blst_p2_affine = point.as_ref();
        [raw.x, raw.y]
    });
    parts.flat_map(blst::blst_fp2::to_words).collect()
}

/// Sums over a pool in which points repeat, oppose each other, and are the identity.
fn check_batches(gpu: &Gpu, rng: &mut ChaCha8Rng, module: &str) -> Result<(), String> {
    let few: Vec<G1Affine> = (0..8).map(|_| G1Projective::random(&mut *rng).to_affine()).collect();
    let pool: Vec<G1Affine> = (0..POOL)
        .map(|_| match (rng.gen_range(0..8), few[rng.gen_range(0..few.len())]) {
            (0, _) => G1Affine::identity(),
            (1..4, point) => -point,
            (_, point) => point,
        })
        .collect();
    let (blocks, chain, rounds) = (2u32, 5usize, 40usize);
    let lanes = (blocks * BATCH_THREADS) as usize;
    let run = || {
        let stream = Stream::new(gpu)?;
        let pool = DeviceBuffer::from_host(&stream, &words(&pool), "points")?;
        let sums = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums")?;
        let prefixes = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS / 2, "prefix products")?;
        let out = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums in blst's form")?;
        [&sums, &prefixes, &out].into_iter().try_for_each(|buffer| buffer.all().fill_bytes(&stream, 0xdb))?;
        let grid = Grid::new(blocks, BATCH_THREADS);
        let shared = BATCH_THREADS * batch_shared(gpu, module);
        let add = gpu.function(module, "bench_g1_batch")?;
        let args = Args::new().slice(pool.all()).slice(sums.all()).slice(prefixes.all());
        let args = args.value(chain as u32).value(rounds as u32);
        let unpack = gpu.function(module, "bench_g1_batch_sums")?;
        add.allow_shared(shared)?;
        // SAFETY: the buffers have the extents that the kernels' comments tell, for this grid and chain.
        unsafe {
            add.launch(&stream, grid.with_shared(shared), &args)?;
            unpack.launch(&stream, grid, &Args::new().slice(sums.all()).slice(out.all()).value(chain as u32))?;
        }
        out.all().to_vec(&stream)
    };
    let found = run().map_err(|e: CudaError| e.to_string())?;
    for k in 0..chain {
        for lane in 0..lanes {
            let point = |r: usize| G1Projective::from(pool[(lane + 37 * r + 41 * k) % POOL]);
            let sum: G1Projective = point(0)
                + (1..=rounds).map(|r| if (37 * r + k) % 2 == 1 { -point(r) } else { point(r) }).sum::<G1Projective>();
            let expected = words(&[sum.to_affine()]);
            let found = &found[(k * lanes + lane) * WORDS..][..WORDS];
            if expected != found {
                return Err(format!("sum {k} of lane {lane}: expected {expected:x?}, found {found:x?}"));
            }
        }
    }
    Ok(())
}

/// Sums of random points: as in practice, none equal to each other.
fn random_pool(rng: &mut ChaCha8Rng) -> Vec<G1Affine> {
    (0..POOL).map(|_| G1Projective::random(&mut *rng).to_affine()).collect()
}

fn xyzz_rates(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let g1 = words(&random_pool(rng));
    let g2: Vec<G2Affine> = (0..POOL).map(|_| G2Projective::random(&mut *rng).to_affine()).collect();
    let g2 = words_g2(&g2);
    let run = |module: &str, kernel: &str, pool: &[u32], threads: u32, shared: u32, goal| {
        const ROUNDS: u32 = 300;
        let stream = Stream::new(gpu)?;
        // Two coordinates a point of the pool, four a sum.
        let sum_words = 2 * pool.len() / POOL;
        let pool = DeviceBuffer::from_host(&stream, pool, "points")?;
        let function = gpu.function(module, kernel)?;
        function.allow_shared(threads * shared)?;
        let most = function.blocks_per_sm(threads, threads * shared)?;
        let out = DeviceBuffer::<u32>::new(gpu, (gpu.info().sms * most * threads) as usize * sum_words, "sums")?;
        best_of(gpu, &stream, threads, 1..=most, |blocks| {
            let grid = Grid::new(blocks, threads).with_shared(threads * shared);
            let args = Args::new().slice(pool.all()).slice(out.all()).value(ROUNDS);
            // SAFETY: the kernel writes a sum of `sum_words` a thread, and reads the pool.
            let seconds = time(&stream, 3, || unsafe { function.launch(&stream, grid, &args) })?;
            Ok((seconds, f64::from(ROUNDS)))
        })
        .map(|best| best.named(kernel, goal))
    };
    let rows = [
        run("g1_bench", "bench_g1_xyzz", &g1, THREADS, 0, None),
        run("g1_bench_hybrid", "bench_g1_xyzz_hybrid", &g1, HYBRID_THREADS, XYZZ_SHARED, Some(3.4e9)),
        run("g2_bench", "bench_g2_xyzz", &g2, THREADS, 0, None),
    ];
    rows.into_iter().collect::<Result<_, CudaError>>().map_err(|e| e.to_string())
}

fn batch_rates(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let points = random_pool(rng);
    let run = |module: &str, chain: usize, goal| {
        const ROUNDS: u32 = 4;
        let stream = Stream::new(gpu)?;
        let pool = DeviceBuffer::from_host(&stream, &words(&points), "points")?;
        let function = gpu.function(module, "bench_g1_batch")?;
        let shared = BATCH_THREADS * batch_shared(gpu, module);
        function.allow_shared(shared)?;
        let most = function.blocks_per_sm(BATCH_THREADS, shared)?;
        let lanes = (gpu.info().sms * most * BATCH_THREADS) as usize;
        let sums = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums")?;
        let products = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS / 2, "products of differences")?;
        best_of(gpu, &stream, BATCH_THREADS, 1..=most, |blocks| {
            let grid = Grid::new(blocks, BATCH_THREADS).with_shared(shared);
            let args = Args::new().slice(pool.all()).slice(sums.all()).slice(products.all());
            let args = args.value(chain as u32).value(ROUNDS);
            // SAFETY: sums and products have room for every lane of the largest grid.
            let seconds = time(&stream, 2, || unsafe { function.launch(&stream, grid, &args) })?;
            Ok((seconds, f64::from(ROUNDS) * chain as f64))
        })
        .map(|best| best.named(&format!("{module}, {chain} a batch"), goal))
    };
    let goal = Some(4.2e9);
    let rows =
        [run(BATCHES, 64, goal), run(BATCHES, 256, goal), run(BATCHES, 512, goal), run(INTEGER_BATCHES, 256, None)];
    rows.into_iter().collect::<Result<_, CudaError>>().map_err(|e| e.to_string())
}

/// The fastest of several launches.
struct Best {
    blocks: u32,
    threads: u32,
    seconds: f64,
    additions: f64,
}

impl Best {
    fn named(self, kernel: &str, goal: Option<f64>) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            size: format!("{} x {} threads", self.blocks, self.threads),
            seconds: self.seconds,
            work: self.additions,
            unit: "additions",
            ceiling: None,
            goal: goal.map(Goal::Rate),
        }
    }
}

/// Tries numbers of blocks a multiprocessor. `run` gets the number of all blocks, and tells seconds and additions a thread.
fn best_of(
    gpu: &Gpu,
    stream: &Stream,
    threads: u32,
    per_sm: std::ops::RangeInclusive<u32>,
    mut run: impl FnMut(u32) -> Result<(f64, f64), CudaError>,
) -> Result<Best, CudaError> {
    let mut best: Option<Best> = None;
    for per_sm in per_sm {
        let blocks = gpu.info().sms * per_sm;
        let (seconds, each) = run(blocks)?;
        let additions = f64::from(blocks * threads) * each;
        if best.as_ref().is_none_or(|b| additions / seconds > b.additions / b.seconds) {
            best = Some(Best { blocks: per_sm, threads, seconds, additions });
        }
    }
    // Buffers of the caller are freed only after that.
    stream.wait()?;
    best.ok_or_else(|| gpu.misuse("the kernel does not fit a multiprocessor".to_owned()))
}
