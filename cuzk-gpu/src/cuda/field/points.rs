//! Sums of points on a device: rates, and whether the sums of the rate's kernels are right.

use blstrs::{G1Affine, G1Projective};
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
pub const CHECKS: &[Check] = &[Check { name: "curve/g1 affine batches", run: affine_batches }];

/// Benches of the kernels below.
pub const BENCHES: &[Bench] = &[
    Bench { name: "curve/xyzz additions", run: xyzz_rates },
    Bench { name: "curve/affine additions", run: affine_rates },
];

/// The module of the hybrid form.
const HYBRID: &str = "g1_bench_hybrid";
/// As in `g1_bench.cu` and `g1_bench_hybrid.cu`.
const POOL: usize = 512;
const THREADS: u32 = 128;
/// Words of an affine point.
const WORDS: usize = 24;
/// Bytes of shared memory a thread, of XYZZ sums and of affine batches.
const XYZZ_SHARED: u32 = 7 * 80;
const BATCH_SHARED: u32 = 5 * 80;

fn words(points: &[G1Affine]) -> Vec<u32> {
    let parts = points.iter().flat_map(|point| {
        let raw: &blst::blst_p1_affine = point.as_ref();
        // blst, too, has zeros for the identity.
        [raw.x, raw.y]
    });
    parts.flat_map(blst::blst_fp::to_words).collect()
}

/// Sums over a pool in which points repeat, oppose each other, and are the identity.
fn affine_batches(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let few: Vec<G1Affine> = (0..8).map(|_| G1Projective::random(&mut *rng).to_affine()).collect();
    let pool: Vec<G1Affine> = (0..POOL)
        .map(|_| match (rng.gen_range(0..8), few[rng.gen_range(0..few.len())]) {
            (0, _) => G1Affine::identity(),
            (1..4, point) => -point,
            (_, point) => point,
        })
        .collect();
    let (blocks, chain, rounds) = (2u32, 5usize, 40usize);
    let lanes = (blocks * THREADS) as usize;
    let run = || {
        let stream = Stream::new(gpu)?;
        let pool = DeviceBuffer::from_host(&stream, &words(&pool), "points")?;
        let sums = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums")?;
        let prefixes = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS / 2, "prefix products")?;
        let out = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums in blst's form")?;
        [&sums, &prefixes, &out].into_iter().try_for_each(|buffer| buffer.all().fill_bytes(&stream, 0xdb))?;
        let grid = Grid::new(blocks, THREADS);
        let add = gpu.function(HYBRID, "bench_g1_affine_hybrid")?;
        let args = Args::new().slice(pool.all()).slice(sums.all()).slice(prefixes.all());
        let args = args.value(chain as u32).value(rounds as u32);
        let unpack = gpu.function(HYBRID, "g1_unpack_sums")?;
        // SAFETY: the buffers have the extents that the kernels' comments tell, for this grid and chain.
        unsafe {
            add.launch(&stream, grid.with_shared(THREADS * BATCH_SHARED), &args)?;
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
    let pool = random_pool(rng);
    let run = |module: &str, kernel: &str, shared, goal| {
        const ROUNDS: u32 = 300;
        let stream = Stream::new(gpu)?;
        let pool = DeviceBuffer::from_host(&stream, &words(&pool), "points")?;
        let function = gpu.function(module, kernel)?;
        function.allow_shared(THREADS * shared)?;
        let most = function.blocks_per_sm(THREADS, THREADS * shared)?;
        let out = DeviceBuffer::<u32>::new(gpu, (gpu.info().sms * most * THREADS) as usize * 2 * WORDS, "sums")?;
        best_of(gpu, &stream, 1..=most, |blocks| {
            let grid = Grid::new(blocks, THREADS).with_shared(THREADS * shared);
            let args = Args::new().slice(pool.all()).slice(out.all()).value(ROUNDS);
            // SAFETY: the kernel writes a sum of 48 words a thread, and reads the pool.
            let seconds = time(&stream, 3, || unsafe { function.launch(&stream, grid, &args) })?;
            Ok((seconds, f64::from(ROUNDS)))
        })
        .map(|best| best.named(kernel, goal))
    };
    let rows =
        [run("g1_bench", "bench_g1_xyzz", 0, None), run(HYBRID, "bench_g1_xyzz_hybrid", XYZZ_SHARED, Some(3.4e9))];
    rows.into_iter().collect::<Result<_, CudaError>>().map_err(|e| e.to_string())
}

fn affine_rates(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let points = random_pool(rng);
    let run = |chain: usize| {
        const ROUNDS: u32 = 3;
        let stream = Stream::new(gpu)?;
        let pool = DeviceBuffer::from_host(&stream, &words(&points), "points")?;
        let function = gpu.function(HYBRID, "bench_g1_affine_hybrid")?;
        function.allow_shared(THREADS * BATCH_SHARED)?;
        let most = function.blocks_per_sm(THREADS, THREADS * BATCH_SHARED)?;
        let lanes = (gpu.info().sms * most * THREADS) as usize;
        let sums = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS, "sums")?;
        let prefixes = DeviceBuffer::<u32>::new(gpu, lanes * chain * WORDS / 2, "prefix products")?;
        best_of(gpu, &stream, 2..=most, |blocks| {
            let grid = Grid::new(blocks, THREADS).with_shared(THREADS * BATCH_SHARED);
            let args = Args::new().slice(pool.all()).slice(sums.all()).slice(prefixes.all());
            let args = args.value(chain as u32).value(ROUNDS);
            // SAFETY: sums and prefix products have room for every lane of the largest grid.
            let seconds = time(&stream, 2, || unsafe { function.launch(&stream, grid, &args) })?;
            Ok((seconds, f64::from(ROUNDS) * chain as f64))
        })
        .map(|best| best.named(&format!("bench_g1_affine_hybrid, {chain} a batch"), Some(4.2e9)))
    };
    let rows = [run(64), run(256), run(512)];
    rows.into_iter().collect::<Result<_, CudaError>>().map_err(|e| e.to_string())
}

/// The fastest of several launches.
struct Best {
    blocks: u32,
    seconds: f64,
    additions: f64,
}

impl Best {
    fn named(self, kernel: &str, goal: Option<f64>) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            size: format!("{} x {THREADS} threads", self.blocks),
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
    per_sm: std::ops::RangeInclusive<u32>,
    mut run: impl FnMut(u32) -> Result<(f64, f64), CudaError>,
) -> Result<Best, CudaError> {
    let mut best: Option<Best> = None;
    for per_sm in per_sm {
        let blocks = gpu.info().sms * per_sm;
        let (seconds, each) = run(blocks)?;
        let additions = f64::from(blocks * THREADS) * each;
        if best.as_ref().is_none_or(|b| additions / seconds > b.additions / b.seconds) {
            best = Some(Best { blocks: per_sm, seconds, additions });
        }
    }
    // Buffers of the caller are freed only after that.
    stream.wait()?;
    best.ok_or_else(|| gpu.misuse("the kernel does not fit a multiprocessor".to_owned()))
}
