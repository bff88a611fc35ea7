//! How fast multi-scalar multiplications are, at the sizes of proofs. Every result is checked first.

use std::time::Instant;

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Base, Msm, Plan, Query, Request, Scalars, Size, Windows, Witness, checks::multiples};
use crate::{
    arith::{Backend, G1, Table},
    cuda::{
        Arena, Args, CudaError, DeviceBuffer, Gpu, Grid, Layout, PinnedBuffer, Stream,
        harness::{Bench, Goal, Measurement},
    },
};

/// All of them.
pub const BENCHES: &[Bench] = &[
    Bench { name: "msm/full 2^22", run: |gpu, rng| full(gpu, rng, 22, 13, &[(13, 13), (13, 1)], 22e-3) },
    Bench { name: "msm/full 2^26", run: |gpu, rng| full(gpu, rng, 26, 4, &[(11, 4), (12, 1)], 220e-3) },
    Bench { name: "msm/full 2^27", run: |gpu, rng| full(gpu, rng, 27, 4, &[(11, 4)], 420e-3) },
    Bench { name: "msm/bits", run: bits },
];

/// Points of the fine table, by which the device makes as many as are wanted.
const FINE: usize = 1 << 16;

/// Points on the device, made from few: number i is fine[i mod 2^16] + coarse[i div 2^16].
struct Points {
    fine: Vec<G1Affine>,
    coarse: Vec<G1Affine>,
    device: DeviceBuffer<u8>,
}

impl Points {
    fn new(stream: &Stream, rng: &mut ChaCha8Rng, n: usize, tables: usize) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        let (fine, coarse) = (multiples(rng, FINE), multiples(rng, n.div_ceil(FINE)));
        let device = DeviceBuffer::new(gpu, n * tables * 96, "a bench's points")?;
        let upload = |points: &[G1Affine]| {
            // SAFETY: affine points of blst are their coordinates and nothing else.
            let bytes = unsafe { std::slice::from_raw_parts(points.as_ptr().cast::<u8>(), size_of_val(points)) };
            DeviceBuffer::from_host(stream, bytes, "a bench's points")
        };
        let (fine_bytes, coarse_bytes) = (upload(&fine)?, upload(&coarse)?);
        let args = Args::new().slice(device.all()).value(n as u32).slice(fine_bytes.all()).slice(coarse_bytes.all());
        // SAFETY: `n` points have room, and their numbers stay inside of both tables.
        unsafe { gpu.function("msm_sums", "msm_fill_g1")?.launch(stream, Grid::cover(n, 128), &args)? };
        stream.wait()?;
        Ok(Self { fine, coarse, device })
    }

    /// The sum of scalars times points, from sums of scalars.
    fn expected(&self, n: usize, scalar: impl Fn(usize) -> Scalar + Sync) -> G1Projective {
        let chunk = |c: usize| {
            let mut fine = vec![Scalar::ZERO; FINE];
            let mut coarse = Scalar::ZERO;
            for i in c * FINE..n.min((c + 1) * FINE) {
                let s = scalar(i);
                fine[i % FINE] += s;
                coarse += s;
            }
            (fine, vec![(c, coarse)])
        };
        let join = |(mut a, mut list): (Vec<Scalar>, Vec<(usize, Scalar)>), (b, more): (Vec<Scalar>, Vec<_>)| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            list.extend(more);
            (a, list)
        };
        let none = || (vec![Scalar::ZERO; FINE], Vec::new());
        let (mut scalars, coarse) = (0..n.div_ceil(FINE)).into_par_iter().map(chunk).reduce(none, join);
        let points: Vec<G1Affine> =
            self.fine.iter().copied().chain(coarse.iter().map(|(c, _)| self.coarse[*c])).collect();
        scalars.extend(coarse.iter().map(|(_, s)| *s));
        let indices: Vec<u32> = (0..scalars.len() as u32).collect();
        Table::<G1>::with_backend(Backend::current(), &points).msm_indexed(&indices, &scalars)
    }
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

/// Full scalars on resident points. The goal is for the first shape, with tables.
fn full(
    gpu: &Gpu,
    rng: &mut ChaCha8Rng,
    log: u32,
    tables: usize,
    shapes: &[(usize, usize)],
    goal: f64,
) -> Result<Vec<Measurement>, String> {
    let n = 1usize << log;
    let mut run = || {
        let stream = Stream::new(gpu)?;
        let points = Points::new(&stream, rng, n, tables)?;
        let seed = rng.r#gen();
        let mut scalars = PinnedBuffer::<[u64; 4]>::new(gpu, n, "a bench's scalars")?;
        scalars.par_chunks_mut(FINE).enumerate().for_each(|(i, chunk)| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(i as u64);
            // Below r: its top word begins with 0x73ed.
            chunk
                .iter_mut()
                .for_each(|s| *s = [rng.r#gen(), rng.r#gen(), rng.r#gen(), rng.gen_range(0..0x73ed_0000_0000_0000)]);
        });
        let words = DeviceBuffer::from_host(&stream, &scalars, "a bench's scalars")?;
        let expected = points.expected(n, |i| Scalar::from_u64s_le(&scalars[i]).unwrap_or(Scalar::ZERO));
        drop(scalars);
        let mut rows = Vec::new();
        for &(count, tables) in shapes {
            let Some(windows) = Windows::balanced(count, tables) else { continue };
            let request = Request {
                queries: vec![Size { points: n, scalars: n, bits: 0 }],
                streamed: false,
                tables,
                workspace: usize::MAX,
                point_bytes: 96,
                sms: gpu.info().sms as usize,
            };
            let plan = Plan::with_windows(request, windows, None);
            let mut layout = Layout::new();
            let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
            let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
            let base = Base { points: points.device.all(), first: 0, len: n };
            let begin = Instant::now();
            msm.fill_tables(&stream, base)?;
            stream.wait()?;
            let filled = begin.elapsed().as_secs_f64();
            let scalars = Scalars { words: words.all().cast()?, len: n, montgomery: false };
            let size = format!("2^{log}, {count}/{tables}");
            let goal = (tables > 1).then_some(goal);
            rows.push(measure(&mut msm, "msm full g1", (&size, n), goal, expected, |msm| {
                msm.full(&stream, &arena, base, scalars)
            }));
            if tables > 1 {
                rows.push(Ok(vec![row("msm fill tables".to_owned(), size, filled, n * (tables - 1), None)]));
            }
        }
        Ok::<_, CudaError>(rows)
    };
    let rows = run().map_err(|e| e.to_string())?;
    Ok(rows.into_iter().collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect())
}

/// 130 million bits, half of them ones, and no other values.
fn bits(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let n = 130_000_000 / 64 * 64;
    let mut run = || {
        let stream = Stream::new(gpu)?;
        let points = Points::new(&stream, rng, n, 1)?;
        let words: Vec<u32> = (0..n / 32).map(|_| rng.r#gen()).collect();
        let ones = DeviceBuffer::from_host(&stream, &words, "a bench's bits")?;
        let none = DeviceBuffer::from_host(&stream, &vec![0u32; n / 32], "a bench's bits")?;
        let expected = points.expected(n, |i| Scalar::from(u64::from(words[i / 32] >> (i % 32) & 1)));
        let request = Request {
            queries: vec![Size { points: n, scalars: 1, bits: n }],
            streamed: false,
            tables: 1,
            workspace: usize::MAX,
            point_bytes: 96,
            sms: gpu.info().sms as usize,
        };
        let plan = Plan::choose(request).ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))?;
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
        let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
        let nothing = none.all().range(..0)?;
        let witness = Witness { ones: ones.all(), full: none.all(), values: nothing, first_value: 0, montgomery: true };
        let query = Query { first: 0, len: n, inputs: nothing, mask: None };
        Ok::<_, CudaError>(measure(&mut msm, "msm bits g1", ("130 M, half ones", n), Some(19e-3), expected, |msm| {
            msm.mixed(&stream, &arena, points.device.all(), &[query], witness)
        }))
    };
    run().map_err(|e| e.to_string())?
}
