//! How fast transforms and the quotient are.

use blstrs::Scalar;
use cuzk_synth::planes::Planes;
use ff::Field;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use super::{Ntt, Points, Quotient, TableShape, plan::padded_len, quotient::Workspace};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    fr::Element,
    gpu::Gpu,
    harness::{Bench, Goal, Measurement, time},
    launch::{Args, Grid},
    memory::DeviceBuffer,
    stream::Stream,
};

/// The benches.
pub const BENCHES: &[Bench] = &[
    Bench { name: "fr/products", run: products },
    Bench { name: "ntt/transforms", run: transforms },
    Bench { name: "ntt/two levels", run: two_levels },
    Bench { name: "quotient/from planes", run: quotients },
    Bench { name: "quotient/two levels", run: quotients_two_levels },
];

/// Products by a constant a second that the H200's multiply-add pipe allows: 372 of its cycles for 32 of them.
const CONSTANT_PRODUCTS: f64 = 90.0e9;

fn text(error: CudaError) -> String {
    error.to_string()
}

/// Operations of Fr in registers. Which numbers they are does not matter to the time.
fn products(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    const STEPS: u32 = 2000;
    let kernels = [
        ("fr_bench_products", "products", Some(61.5e9 * 528.0 / 462.0), Some(Goal::Rate(62e9))),
        ("fr_bench_loose_products", "products", Some(61.5e9 * 528.0 / 462.0), None),
        ("fr_bench_constant_products", "products", Some(CONSTANT_PRODUCTS), Some(Goal::Rate(66e9))),
        ("fr_bench_forward_butterflies", "butterflies", Some(CONSTANT_PRODUCTS), None),
        ("fr_bench_inverse_butterflies", "butterflies", Some(CONSTANT_PRODUCTS), None),
    ];
    let run = |(name, unit, ceiling, goal): (&str, &'static str, Option<f64>, Option<Goal>)| {
        let stream = Stream::new(gpu)?;
        let kernel = gpu.function("fr_bench", name)?;
        let blocks = 8 * gpu.info().sms;
        let words: Vec<u32> = (0..blocks as usize * 128 * 32).map(|_| rng.next_u32() >> 1).collect();
        let chains = DeviceBuffer::from_host(&stream, &words, "chains")?;
        let args = Args::new().slice(chains.all()).value(STEPS);
        // SAFETY: four elements for each of the threads.
        let seconds = time(&stream, 3, || unsafe { kernel.launch(&stream, Grid::new(blocks, 128), &args) })?;
        let work = f64::from(blocks) * 128.0 * f64::from(STEPS);
        Ok(Measurement { kernel: name.to_owned(), size: "registers".into(), seconds, work, unit, ceiling, goal })
    };
    kernels.into_iter().map(run).collect::<Result<_, CudaError>>().map_err(text)
}

fn transforms(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let sizes = [(22, Some(0.75e-3)), (24, None), (26, Some(13e-3)), (27, Some(27e-3))];
    transforms_with(gpu, rng, TableShape::whole(27), &sizes).map_err(text)
}

/// What smaller tables cost.
fn two_levels(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let shapes = [26, 25, 23, 20, 14].map(|log_direct| TableShape::two_levels(27, log_direct));
    let rows = shapes.into_iter().map(|shape| transforms_with(gpu, rng, shape, &[(27, None)]));
    Ok(rows.collect::<Result<Vec<_>, _>>().map_err(text)?.concat())
}

fn transforms_with(
    gpu: &Gpu,
    rng: &mut ChaCha8Rng,
    shape: TableShape,
    sizes: &[(u32, Option<f64>)],
) -> Result<Vec<Measurement>, CudaError> {
    let stream = Stream::new(gpu)?;
    let ntt = Ntt::with_table(&stream, shape)?;
    let buffer = DeviceBuffer::<Element>::new(gpu, padded_len(shape.log_n()), "a bench's vector")?;
    let mut rows = Vec::new();
    for &(log_n, goal) in sizes {
        // A tile repeated: below r, and of no special form.
        let data = buffer.all().range(..1 << log_n)?;
        let part: Vec<Element> = (0..1 << 20).map(|_| std::array::from_fn(|i| rng.next_u32() >> (i / 7))).collect();
        for chunk in 0..(1 << log_n) / part.len() {
            data.range(chunk * part.len()..(chunk + 1) * part.len())?.upload(&stream, &part)?;
        }
        for points in [Points::Domain, Points::Coset] {
            let forward = time(&stream, 5, || ntt.forward(&stream, data, log_n, points))?;
            let inverse = time(&stream, 5, || ntt.inverse(&stream, data, log_n, points))?;
            for (direction, seconds) in [("forward", forward), ("inverse", inverse)] {
                rows.push(Measurement {
                    kernel: format!("{direction} transform, {points:?}").to_lowercase(),
                    size: size(log_n, shape),
                    seconds,
                    work: f64::from(log_n) * f64::from(1 << (log_n - 1)),
                    unit: "butterflies",
                    ceiling: Some(CONSTANT_PRODUCTS),
                    goal: goal.map(Goal::Seconds),
                });
            }
        }
    }
    Ok(rows)
}

/// With the table's, if it is in two levels.
fn size(log_n: u32, shape: TableShape) -> String {
    match shape.log_direct() == shape.log_n() {
        true => format!("2^{log_n}"),
        false => format!("2^{log_n}, table 2^{}", shape.log_direct()),
    }
}

fn quotients(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let sizes = [(22, Some(4.3e-3)), (26, Some(77e-3)), (27, Some(160e-3))];
    let rows = sizes.into_iter().map(|(log_n, goal)| quotients_with(gpu, rng, log_n, &[TableShape::whole(27)], goal));
    Ok(rows.collect::<Result<Vec<_>, _>>().map_err(text)?.concat())
}

/// What smaller tables cost.
fn quotients_two_levels(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let shapes = [26, 25, 23, 20, 14].map(|log_direct| TableShape::two_levels(27, log_direct));
    quotients_with(gpu, rng, 27, &shapes, None).map_err(text)
}

/// H from planes as in a PoRep, the multiplication of A's and B's values included. Repeated runs scale the lists of
/// exceptions again: other values, the same time.
fn quotients_with(
    gpu: &Gpu,
    rng: &mut ChaCha8Rng,
    log_n: u32,
    shapes: &[TableShape],
    goal: Option<f64>,
) -> Result<Vec<Measurement>, CudaError> {
    let stream = Stream::new(gpu)?;
    let quotient = Quotient::new(&stream, log_n)?;
    let mut layout = Layout::new();
    let h = layout.add(padded_len(log_n));
    let workspace = Workspace::plan(h, &mut layout, log_n, 1 << (log_n - 4));
    let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
    for (planes, distribution) in [(workspace.a, A_VALUES), (workspace.b, B_VALUES)] {
        planes.upload(&stream, &arena, &repeated(rng, log_n, distribution))?;
    }
    let measure = |&shape: &TableShape| {
        let ntt = Ntt::with_table(&stream, shape)?;
        let seconds = time(&stream, 3, || quotient.from_planes(&stream, &ntt, &arena, &workspace).map(|_| ()))?;
        workspace.check(&stream, &arena)?;
        Ok(Measurement {
            kernel: "quotient from planes".to_owned(),
            size: size(log_n, shape),
            seconds,
            // Six transforms; what the first layers on the domain leave out is not taken off.
            work: 6.0 * f64::from(log_n) * f64::from(1 << (log_n - 1)),
            unit: "butterflies",
            ceiling: Some(CONSTANT_PRODUCTS),
            goal: goal.map(Goal::Seconds),
        })
    };
    shapes.iter().map(measure).collect()
}

/// A·w of a 32 GiB PoRep: of 10,000 values so many are 0, 1, 2, -1; the rest is anything.
const A_VALUES: [u32; 4] = [4930, 1819, 2523, 590];
/// B·w.
const B_VALUES: [u32; 4] = [4938, 4968, 0, 0];

/// Planes of 2^log_n values of such a distribution: 2^20 of them, repeated.
fn repeated(rng: &mut ChaCha8Rng, log_n: u32, distribution: [u32; 4]) -> Planes {
    const LOG_PART: u32 = 20;
    let small = [Scalar::ZERO, Scalar::ONE, Scalar::from(2), -Scalar::ONE];
    let mut value = || {
        let mut drawn = rng.gen_range(0..10_000);
        for (value, count) in small.into_iter().zip(distribution) {
            if drawn < count {
                return value;
            }
            drawn -= count;
        }
        Scalar::random(&mut *rng)
    };
    let values: Vec<Scalar> = (0..1 << LOG_PART).map(|_| value()).collect();
    // Each time from another value on: in bit-reversed order the repetitions of a value would be neighbours.
    Planes::from_plain((0..1 << log_n).map(|i| values[(i + (i >> LOG_PART) * 32 * 1_009) % values.len()]))
}
