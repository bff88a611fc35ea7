//! A circuit of the size of a 32 GiB partition, made up: 2^27 rows, values and points of a PoRep's kinds and numbers.
//!
//! Point i of each query is fine[i mod 2^16] + coarse[i div 2^16], all different, made on the device. What the sums over the
//! witness must be follows from sums of scalars; H is compared between plans. C is what makes the witness satisfy the circuit,
//! and is not needed.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, Scalar};
use cuzk_synth::{
    bitmap::Bitmap,
    planes::{self, Planes},
    r1cs::R1cs,
    synthesis::Synthesis,
    witness::CompactWitness,
};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{
    Cuda, DeviceKey,
    benches::measurements,
    inputs::{WATCHDOG, config},
};
use crate::{
    arith::{Backend as Arithmetic, G1, Table},
    cuda::{
        error::CudaError,
        gpu::Gpu,
        harness::{Bench, Measurement},
        launch::{Args, Grid},
        load::{List, LoadError},
        memory::DeviceBuffer,
        msm::checks::multiples,
        plan::{Card, Config, MemoryPlan, Room, Rows, Shape},
        spmv::synthetic,
        stream::Stream,
    },
    prover::{Backend, KernelSums, Partition},
    srs::{G1_BYTES, G2_BYTES, Layout, Section, Srs},
    timing::{Phase, Timings},
};

/// All of them.
pub const BENCHES: &[Bench] = &[
    Bench { name: "prove/2^27 from matrices", run: |gpu, rng| run(gpu, rng, "matrices", None, Rows::Matrices) },
    Bench { name: "prove/2^27 resident", run: |gpu, rng| run(gpu, rng, "planes", None, Rows::Planes) },
    Bench { name: "prove/2^27 in 24 GiB", run: |gpu, rng| run(gpu, rng, "24 GiB", Some(24), Rows::Planes) },
    Bench { name: "prove/2^27 in 16 GiB", run: |gpu, rng| run(gpu, rng, "16 GiB", Some(16), Rows::Planes) },
];

/// Rows and auxiliary variables of a 32 GiB partition.
const ROWS: usize = 130_169_893;
/// Of so many variables one is in B.
const VARIABLES_ONE_IN_B: usize = 4;
/// Points of the fine table.
const FINE: usize = 1 << 16;
/// Points made at once.
const CHUNK: usize = 1 << 20;
/// Runs of which the fastest counts.
const RUNS: usize = 3;

/// What all benches of a process prove: it takes half a minute to make.
struct Inputs {
    partition: Partition,
    points: Points,
    /// The sums over l, a and b_g1.
    expected: [G1Projective; 3],
    /// That over h, as the first plan had it.
    h: OnceLock<G1Projective>,
}

static INPUTS: OnceLock<Inputs> = OnceLock::new();

/// The points of all queries.
struct Points {
    fine: Vec<G1Affine>,
    coarse: Vec<G1Affine>,
}

impl Inputs {
    fn new(rng: &mut ChaCha8Rng) -> Self {
        let mut r1cs = synthetic::system(ROWS, rng);
        r1cs.density.b_aux = every(VARIABLES_ONE_IN_B, r1cs.num_aux);
        let witness = synthetic::witness(&r1cs, rng);
        let planes = |matrix| Planes::from_plain(r1cs.multiply(matrix, &witness));
        let (a, b) = rayon::join(|| planes(&r1cs.a), || planes(&r1cs.b));
        let rows = Some(planes::Rows { a, b });
        let (fine, coarse) = (multiples(rng, FINE), multiples(rng, (1 << 27) / FINE));
        let points = Points { fine, coarse };
        let expected = points.expected(&r1cs, &witness);
        let partition = Partition::new(Arc::new(r1cs), Synthesis { witness, rows });
        Self { partition, points, expected, h: OnceLock::new() }
    }
}

/// Proves with up to so many GiB of device memory.
fn run(
    gpu: &Gpu,
    rng: &mut ChaCha8Rng,
    name: &str,
    gib: Option<usize>,
    rows: Rows,
) -> Result<Vec<Measurement>, String> {
    let Inputs { partition, points, expected, h } = INPUTS.get_or_init(|| Inputs::new(rng));
    let vram_limit = gib.map(|gib| gib << 30);
    let config = Config { vram_limit, reserve: 1 << 29, pinned_limit: 64 << 30, ..config(2, rows) };
    let plan = plan(gpu, &partition.r1cs, &config)?;
    eprintln!("{plan}");
    let (sums, timings) = prove(gpu, points, partition, &plan)?;
    let found = [sums.l, sums.a, sums.b_g1];
    if found != *expected || *h.get_or_init(|| sums.h) != sums.h {
        return Err(format!("a wrong sum, of {found:?}"));
    }
    let goal = if gib.is_none() { 0.75 } else { f64::INFINITY };
    let of_kernels = measurements(&format!("2^27, {name}"), &timings, [goal, f64::INFINITY]).into_iter();
    let of_kernels = of_kernels.filter(|row| !row.kernel.contains("release"));
    Ok(of_kernels.map(|row| Measurement { goal: row.goal.filter(|_| goal.is_finite()), ..row }).collect())
}

/// Where everything goes.
fn plan(gpu: &Gpu, r1cs: &R1cs, config: &Config) -> Result<MemoryPlan, String> {
    // These rows have more other values than a PoRep's.
    let room = Room { exceptions: ROWS / 16, ..Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()) };
    let card = Card::new(gpu.info(), gpu.free_memory().map_err(|e| e.to_string())?);
    MemoryPlan::choose(&Shape::of(r1cs, room), &card, config).map_err(|error| error.to_string())
}

/// Puts the circuit on the device and runs the kernel phase: its sums and the fastest run's times.
fn prove(
    gpu: &Gpu,
    points: &Points,
    partition: &Partition,
    plan: &MemoryPlan,
) -> Result<(KernelSums, Timings), String> {
    let r1cs = &partition.r1cs;
    let layout = layout(plan);
    let load =
        |lists: Vec<List<'_>>| lists.into_iter().try_for_each(|list| points.fill(gpu, list)).map_err(LoadError::Device);
    let key = DeviceKey::with_points(gpu, plan.clone(), (&layout, load), WATCHDOG, Arc::new(host()), r1cs.clone());
    let key = key.map_err(|e| e.to_string())?;
    let device = Cuda::new(gpu.clone(), None);
    let mut best: Option<(KernelSums, Timings)> = None;
    for _ in 0..RUNS {
        let mut timings = Timings::default();
        let staged = timings.measure(Phase::Stage, || device.stage(&key, partition)).map_err(|e| e.to_string())?;
        let begin = Instant::now();
        let rest = device.kernels(&key, staged, &mut timings).map_err(|e| e.to_string())?;
        timings.push(Phase::LockHold, begin, Instant::now());
        let sums = rest.sums();
        let held = |timings: &Timings| timings.total(Phase::LockHold);
        if best.as_ref().is_none_or(|(_, fastest)| held(&timings) < held(fastest)) {
            best = Some((sums, timings));
        }
    }
    best.ok_or_else(|| "nothing was run".to_owned())
}

impl Points {
    /// Makes the points of a list where they are to be.
    fn fill(&self, gpu: &Gpu, List { section, resident, pinned }: List<'_>) -> Result<(), CudaError> {
        let stream = Stream::new(gpu)?;
        let upload = |points: &[G1Affine]| {
            // SAFETY: affine points of blst are their coordinates and nothing else.
            let bytes = unsafe { std::slice::from_raw_parts(points.as_ptr().cast::<u8>(), size_of_val(points)) };
            DeviceBuffer::from_host(&stream, bytes, "a bench's points")
        };
        let (fine, coarse) = (upload(&self.fine)?, upload(&self.coarse)?);
        let chunk = DeviceBuffer::<u8>::new(gpu, CHUNK * 96, "a bench's points")?;
        let kernel = gpu.function("msm_sums", "msm_fill_g1")?;
        let mut pinned = pinned;
        let (points, stay) = (section.points as usize, resident.len() / 96);
        for first in (0..points).step_by(CHUNK) {
            let len = CHUNK.min(points - first);
            let args = Args::new().slice(chunk.all()).value(len as u32).slice(fine.all());
            let args = args.slice(coarse.all().range(first / FINE * 96..)?);
            // SAFETY: the chunk has room for `len` points, whose numbers stay inside of both tables.
            unsafe { kernel.launch(&stream, Grid::cover(len, 128), &args)? };
            let on_device = stay.saturating_sub(first).min(len);
            let from = chunk.all().range(..len * 96)?;
            resident
                .range(first.min(stay) * 96..(first.min(stay) + on_device) * 96)?
                .copy_from(&stream, from.range(..on_device * 96)?)?;
            if let (Some(pinned), true) = (&mut pinned, on_device < len) {
                let place = (first + on_device - stay) * 96;
                from.range(on_device * 96..)?.download(&stream, &mut pinned[place..place + (len - on_device) * 96])?;
            }
        }
        stream.wait()
    }

    /// The sums over l, a and b_g1.
    fn expected(&self, r1cs: &R1cs, witness: &CompactWitness) -> [G1Projective; 3] {
        let (inputs, aux) = (witness.inputs(), |i: usize| witness.aux(i).scalar());
        let l = self.sum(r1cs.num_aux, aux);
        let a =
            self.sum(inputs.len() + r1cs.num_aux, |i| if i < inputs.len() { inputs[i] } else { aux(i - inputs.len()) });
        let in_b = r1cs.density.b_aux.count_ones();
        let of_b = |i: usize| if i < inputs.len() { inputs[i] } else { aux((i - inputs.len()) * VARIABLES_ONE_IN_B) };
        [l, a, self.sum(inputs.len() + in_b, of_b)]
    }

    /// The sum of scalars times points, from sums of scalars.
    fn sum(&self, n: usize, scalar: impl Fn(usize) -> Scalar + Sync) -> G1Projective {
        let of_chunk = |mut fine: Vec<Scalar>, c: usize| {
            let mut coarse = Scalar::ZERO;
            for i in c * FINE..n.min((c + 1) * FINE) {
                let s = scalar(i);
                fine[i % FINE] += s;
                coarse += s;
            }
            (fine, (c, coarse))
        };
        let join = |mut a: Vec<Scalar>, b: Vec<Scalar>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        let none = || (vec![Scalar::ZERO; FINE], Vec::new());
        let (mut scalars, coarse) = (0..n.div_ceil(FINE))
            .into_par_iter()
            .fold(none, |(fine, mut list): (Vec<Scalar>, Vec<(usize, Scalar)>), c| {
                let (fine, sum) = of_chunk(fine, c);
                list.push(sum);
                (fine, list)
            })
            .reduce(none, |(a, mut list), (b, more)| {
                list.extend(more);
                (join(a, b), list)
            });
        let points = self.fine.iter().copied().chain(coarse.iter().map(|(c, _)| self.coarse[*c]));
        let points: Vec<G1Affine> = points.collect();
        scalars.extend(coarse.iter().map(|(_, s)| *s));
        let indices: Vec<u32> = (0..scalars.len() as u32).collect();
        Table::<G1>::with_backend(Arithmetic::current(), &points).msm_indexed(&indices, &scalars)
    }
}

/// Every so many positions, from the first on.
fn every(step: usize, len: usize) -> Bitmap {
    let mut bitmap = Bitmap::zeros(len);
    (0..len).step_by(step).for_each(|i| bitmap.set(i));
    bitmap
}

/// The lists of a file that is not there.
fn layout(plan: &MemoryPlan) -> Layout {
    let list = |name, points: usize, point_bytes| Section { name, offset: 0, points: points as u64, point_bytes };
    let g1 = |name, points| list(name, points, G1_BYTES);
    let [h, l, a, b] = [plan.h, plan.l, plan.a, plan.b_g1].map(|vector| vector.points);
    let sections = [g1("ic", 1), g1("h", h), g1("l", l), g1("a", a), g1("b_g1", b), list("b_g2", b, G2_BYTES)];
    Layout { sections }
}

/// Parameters without points: the kernel phase does not use the host's.
fn host() -> Srs {
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    let vk = VerifyingKey::<Bls12> {
        alpha_g1: g1,
        beta_g1: g1,
        beta_g2: g2,
        gamma_g2: g2,
        delta_g1: g1,
        delta_g2: g2,
        ic: vec![g1],
    };
    Srs::new(vk, [(); 4].map(|()| Table::new(&[])), Table::new(&[]))
}
