//! Checks on a device, against blstrs and the CPU's arithmetic.

use blstrs::{G1Affine, G1Projective, Scalar};
use cuzk_synth::bitmap::Bitmap;
use ff::Field;
use group::{Curve as _, Group as _};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    Base, DeviceCurve, Msm, Plan, Request, Scalars, Selected, Windows,
    plan::{MAX_LENGTH, SORT_TILE},
};
use crate::{
    arith::{Backend, G1, G2, Table},
    cuda::{Arena, Args, CudaError, DeviceBuffer, Gpu, Grid, Layout, PinnedBuffer, Stream, harness::Check},
};

/// All of them.
pub const CHECKS: &[Check] = &[
    Check { name: "msm/sort", run: sort },
    Check { name: "msm/g1 sizes", run: |gpu, rng| sizes::<G1>(gpu, rng, &[0, 1, 2, 3, 31, 257, 1000, 4097]) },
    Check { name: "msm/g1 special scalars and points", run: special::<G1> },
    Check { name: "msm/g1 windows and caps", run: windows_and_caps::<G1> },
    Check { name: "msm/g1 one bucket", run: one_bucket },
    Check { name: "msm/g1 streamed", run: streamed },
    Check { name: "msm/g1 selected", run: selected::<G1> },
    Check { name: "msm/g1 again and again", run: again },
    Check { name: "msm/g2 sizes", run: |gpu, rng| sizes::<G2>(gpu, rng, &[0, 1, 2, 65, 500]) },
    Check { name: "msm/g2 special scalars and points", run: special::<G2> },
    Check { name: "msm/g2 selected", run: selected::<G2> },
];

type Outcome = Result<(), String>;

fn text(error: CudaError) -> String {
    error.to_string()
}

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

fn request<C: DeviceCurve>(gpu: &Gpu, n: usize) -> Request {
    Request {
        points: n,
        scalars: n,
        bits: 0,
        streamed: false,
        tables: 1,
        workspace: usize::MAX,
        point_bytes: C::POINT_BYTES,
        sms: gpu.info().sms as usize,
    }
}

fn expected<C: DeviceCurve>(points: &[C::Affine], scalars: &[Scalar]) -> C::Projective {
    Table::<C>::with_backend(Backend::current(), points)
        .msm_indexed(&(0..scalars.len() as u32).collect::<Vec<_>>(), scalars)
}

/// A multi-scalar multiplication on the device, by this plan, `runs` times.
fn on_device<C: DeviceCurve>(
    gpu: &Gpu,
    plan: Plan,
    points: &[C::Affine],
    scalars: &[Scalar],
    runs: usize,
) -> Result<Vec<C::Projective>, CudaError> {
    let stream = Stream::new(gpu)?;
    let mut layout = Layout::new();
    let tables = plan.windows.tables();
    let mut msm = Msm::<C>::new(&stream, plan, &mut layout)?;
    let arena = Arena::new(gpu, &layout, "a check's workspace")?;
    let base = DeviceBuffer::new(gpu, tables * points.len() * C::POINT_BYTES, "a check's points")?;
    base.all().range(..points.len() * C::POINT_BYTES)?.upload(&stream, &bytes::<C>(points))?;
    let base = Base { points: base.all(), len: points.len() };
    msm.fill_tables(&stream, base)?;
    let words = DeviceBuffer::from_host(&stream, &words(scalars), "a check's scalars")?;
    let scalars = Scalars { words: words.all(), len: scalars.len(), montgomery: true };
    let poisoned = |_| {
        let mut whole = Layout::new();
        arena.slice(whole.add::<u8>(layout.bytes()))?.fill_bytes(&stream, 0xdb)?;
        msm.full(&stream, &arena, base, scalars)
    };
    (0..runs).map(poisoned).collect()
}

fn compare<C: DeviceCurve>(gpu: &Gpu, plan: Plan, points: &[C::Affine], scalars: &[Scalar], what: &str) -> Outcome {
    let shape = format!(
        "{what}: {} scalars, {} windows on {} tables, cap {}",
        scalars.len(),
        plan.windows.count(),
        plan.windows.tables(),
        plan.cap
    );
    let found = on_device::<C>(gpu, plan, points, scalars, 1).map_err(|e| format!("{shape}: {e}"))?;
    match found[0] == expected::<C>(points, scalars) {
        true => Ok(()),
        false => Err(format!("{shape}: a wrong sum")),
    }
}

fn chosen(request: Request) -> Result<Plan, String> {
    Plan::choose(request).ok_or_else(|| format!("no plan for {request:?}"))
}

fn sizes<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng, sizes: &[usize]) -> Outcome {
    sizes.iter().try_for_each(|&n| {
        let points = random_points::<C>(rng, n);
        let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
        compare::<C>(gpu, chosen(request::<C>(gpu, n))?, &points, &scalars, "random")
    })
}

/// Few different points, their negatives and identities, with scalars that are often the same or at a border.
fn special<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let few: Vec<C::Projective> = (0..5).map(|_| C::Projective::random(&mut *rng)).collect();
    let points: Vec<C::Projective> = (0..600)
        .map(|_| match rng.gen_range(0..7) {
            0 => C::Projective::identity(),
            i if i < 5 => few[i],
            _ => -few[rng.gen_range(0..5)],
        })
        .collect();
    let points = C::to_affine(&points);
    let borders =
        [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2), -Scalar::from(2).invert().unwrap_or(Scalar::ZERO)];
    let one_scalar = Scalar::random(&mut *rng);
    for n in [1, 2, 64, 600] {
        let points = &points[..n];
        let plan = || chosen(request::<C>(gpu, n));
        for scalar in borders.into_iter().chain([one_scalar]) {
            compare::<C>(gpu, plan()?, points, &vec![scalar; n], "equal scalars")?;
        }
        let mixed: Vec<Scalar> = (0..n)
            .map(|_| match rng.gen_range(0..4) {
                0 => Scalar::random(&mut *rng),
                1 => one_scalar,
                _ => borders[rng.gen_range(0..borders.len())],
            })
            .collect();
        compare::<C>(gpu, plan()?, points, &mixed, "mixed scalars")?;
        compare::<C>(gpu, plan()?, &vec![points[0]; n], &mixed, "one point")?;
    }
    Ok(())
}

/// Small windows, tables and low caps, so that buckets are long, cut, and their parts cut again.
fn windows_and_caps<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let n = 700;
    let mut points = random_points::<C>(rng, n);
    for i in (0..n).step_by(3) {
        points[i] = points[0];
    }
    let scalars: Vec<Scalar> =
        (0..n).map(|i| if i % 5 == 0 { Scalar::from(i as u64) } else { Scalar::random(&mut *rng) }).collect();
    for (count, tables) in [(17, 1), (26, 1), (64, 1), (20, 4), (13, 13), (29, 3)] {
        for cap in [None, Some(4), Some(16), Some(MAX_LENGTH)] {
            let windows = Windows::balanced(count, tables).ok_or("no such windows")?;
            let plan = Plan::with_windows(Request { tables, ..request::<C>(gpu, n) }, windows, cap);
            compare::<C>(gpu, plan, &points, &scalars, "shapes")?;
        }
    }
    // A short top window in a set that is shared with full ones.
    let windows = Windows::new(12, 12, vec![12 + 10]).ok_or("no such windows")?;
    let plan = Plan::with_windows(Request { tables: 12, ..request::<C>(gpu, n) }, windows, Some(8));
    compare::<C>(gpu, plan, &points, &scalars, "short top window")
}

/// So many equal scalars that their buckets are cut in several levels.
fn one_bucket(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let n = 200_000;
    let few = random_points::<G1>(rng, 512);
    let points: Vec<G1Affine> = (0..n).map(|i| few[i % 512]).collect();
    compare::<G1>(gpu, chosen(request::<G1>(gpu, n))?, &points, &vec![Scalar::random(&mut *rng); n], "one bucket")
}

/// The same sum, bit for bit, a hundred times.
fn again(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let n = 1 << 14;
    let few = random_points::<G1>(rng, 300);
    let points: Vec<G1Affine> = (0..n).map(|i| few[i % 300]).collect();
    let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
    let sums = on_device::<G1>(gpu, chosen(request::<G1>(gpu, n))?, &points, &scalars, 100).map_err(text)?;
    let expected = expected::<G1>(&points, &scalars);
    match sums.iter().position(|sum| *sum != expected) {
        None => Ok(()),
        Some(run) => Err(format!("run {run} of {} gave a wrong sum", sums.len())),
    }
}

/// Points in host memory, in parts, the last one shorter; plain scalars.
fn streamed(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let (part, n) = (1000, 4321);
    let points = random_points::<G1>(rng, n);
    let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
    let plain: Vec<u32> = scalars
        .iter()
        .flat_map(|s| {
            let bytes = s.to_bytes_le();
            std::array::from_fn::<u32, 8, _>(|i| u32::from_le_bytes([0, 1, 2, 3].map(|b| bytes[4 * i + b])))
        })
        .collect();
    let run = || {
        let streams = [Stream::new(gpu)?, Stream::new(gpu)?];
        let plan = Plan::choose(Request { streamed: true, ..request::<G1>(gpu, part) });
        let plan = plan.ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))?;
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&streams[0], plan, &mut layout)?;
        let buffers = [layout.add::<u8>(part * 96), layout.add::<u8>(part * 96)];
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        let mut pinned = PinnedBuffer::new(gpu, n * 96, "a check's points")?;
        pinned.copy_from_slice(&bytes::<G1>(&points));
        let words = DeviceBuffer::from_host(&streams[0], &plain, "a check's scalars")?;
        let scalars = Scalars { words: words.all(), len: n, montgomery: false };
        let buffers = [arena.slice(buffers[0])?, arena.slice(buffers[1])?];
        msm.streamed([&streams[0], &streams[1]], &arena, buffers, &pinned, scalars)
    };
    match run().map_err(text)? == expected::<G1>(&points, &scalars) {
        true => Ok(()),
        false => Err(format!("{n} points in parts of {part}: a wrong sum")),
    }
}

/// A compact witness, with and without a mask, few and many variables, only zeros, only ones.
fn selected<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let few = random_points::<C>(rng, 100);
    for (variables, zeros, ones) in [(1, 0, 1), (70, 3, 3), (3000, 5, 4), (3000, 10, 0), (2049, 0, 10), (100_000, 5, 5)]
    {
        let values: Vec<Scalar> = (0..variables)
            .map(|_| match rng.gen_range(0..10) {
                d if d < zeros => Scalar::ZERO,
                d if d < zeros + ones => Scalar::ONE,
                _ => Scalar::random(&mut *rng),
            })
            .collect();
        let inputs = vec![Scalar::ONE, Scalar::ZERO, Scalar::random(&mut *rng)];
        let mask: Vec<bool> = (0..variables).map(|_| rng.gen_range(0..3) > 0).collect();
        for mask in [None, Some(&mask)] {
            let kept: Vec<Scalar> = (0..variables).filter(|i| mask.is_none_or(|m| m[*i])).map(|i| values[i]).collect();
            let scalars: Vec<Scalar> = inputs.iter().copied().chain(kept).collect();
            let points: Vec<C::Affine> = (0..scalars.len()).map(|i| few[i * i % 100]).collect();
            let found = select_on_device::<C>(gpu, &points, &inputs, &values, mask).map_err(text)?;
            if found != expected::<C>(&points, &scalars) {
                return Err(format!("{variables} variables, mask: {}: a wrong sum", mask.is_some()));
            }
        }
    }
    Ok(())
}

fn select_on_device<C: DeviceCurve>(
    gpu: &Gpu,
    points: &[C::Affine],
    inputs: &[Scalar],
    values: &[Scalar],
    mask: Option<&Vec<bool>>,
) -> Result<C::Projective, CudaError> {
    let stream = Stream::new(gpu)?;
    let is_full = |value: &Scalar| *value != Scalar::ZERO && *value != Scalar::ONE;
    let full: Vec<Scalar> = values.iter().copied().filter(is_full).collect();
    let kept = (0..values.len()).filter(|i| is_full(&values[*i]) && mask.is_none_or(|m| m[*i])).count();
    let upload = |bit: &dyn Fn(usize) -> bool| {
        let mut bitmap = Bitmap::default();
        (0..values.len()).for_each(|i| bitmap.push(bit(i)));
        let words: Vec<u32> = bitmap.words().iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect();
        DeviceBuffer::from_host(&stream, &words, "a check's bitmap")
    };
    let (ones, is_full) = (upload(&|i| values[i] == Scalar::ONE)?, upload(&|i| is_full(&values[i]))?);
    let mask = mask.map(|mask| upload(&|i| mask[i])).transpose()?;
    let all = words(&inputs.iter().copied().chain(full).collect::<Vec<_>>());
    let all = DeviceBuffer::from_host(&stream, &all, "a check's values")?;

    let request = Request {
        scalars: inputs.len() + kept,
        bits: 64 * values.len().div_ceil(64),
        ..request::<C>(gpu, points.len())
    };
    let plan = Plan::choose(request).ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))?;
    let mut layout = Layout::new();
    let mut msm = Msm::<C>::new(&stream, plan, &mut layout)?;
    let arena = Arena::new(gpu, &layout, "a check's workspace")?;
    let base = DeviceBuffer::from_host(&stream, &bytes::<C>(points), "a check's points")?;
    let witness = Selected {
        mask: mask.as_ref().map(DeviceBuffer::all),
        ones: ones.all(),
        full: is_full.all(),
        values: Scalars { words: all.all(), len: inputs.len() + kept, montgomery: true },
        inputs: inputs.len(),
    };
    msm.selected(&stream, &arena, Base { points: base.all(), len: points.len() }, witness)
}

/// Stable, for sizes around a tile, keys of few and of many bits, equal keys.
fn sort(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    for n in [1, 2, 31, 511, SORT_TILE - 1, SORT_TILE, SORT_TILE + 1, 1_234_567] {
        for (bits, kinds) in [(24, 24), (24, 3), (8, 8), (16, 0)] {
            let keys: Vec<u32> =
                (0..n).map(|_| (rng.r#gen::<u32>() >> (32 - kinds).min(31)) << (bits - kinds).min(8)).collect();
            let mut expected: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
            expected.sort_by_key(|pair| pair.0 & ((1 << bits) - 1));
            let found = sort_on_device(gpu, &keys, (bits as u32).div_ceil(8)).map_err(text)?;
            if let Some(place) = (0..n).find(|&i| found[i] != expected[i]) {
                let (found, expected) = (found[place], expected[place]);
                return Err(format!("{n} pairs, {bits} bits: at {place} {found:?} instead of {expected:?}"));
            }
        }
    }
    Ok(())
}

fn sort_on_device(gpu: &Gpu, keys: &[u32], passes: u32) -> Result<Vec<(u32, u32)>, CudaError> {
    let stream = Stream::new(gpu)?;
    let kernels = super::kernels::Kernels::load::<G1>(gpu)?;
    let n = keys.len();
    let values: Vec<u32> = (0..n as u32).collect();
    let upload = |words: &[u32]| DeviceBuffer::from_host(&stream, words, "a check's pairs");
    let buffers = [[upload(keys)?, upload(&values)?], [upload(keys)?, upload(&values)?]];
    let counts = DeviceBuffer::<u32>::new(gpu, 4 * 256, "counts")?;
    let ticket = DeviceBuffer::<u32>::new(gpu, 1, "a ticket")?;
    let status = DeviceBuffer::<u64>::new(gpu, n.div_ceil(SORT_TILE) * 256, "status")?;
    counts.all().fill_bytes(&stream, 0)?;
    let args = Args::new().slice(buffers[0][0].all()).value(n as u32).value(passes).slice(counts.all());
    let both = |i: u32| [buffers[i as usize % 2][0].all(), buffers[i as usize % 2][1].all()];
    // SAFETY: every buffer has `n` words, or what the kernels ask for beside them.
    unsafe {
        gpu.function("sort", "sort_count")?.launch(&stream, Grid::new(200, 256), &args)?;
        kernels.sort_scan.launch(&stream, Grid::new(passes, 256), &Args::new().slice(counts.all()))?;
        for pass in 0..passes {
            kernels.sort_pass(
                &stream,
                both(pass),
                both(pass + 1),
                n,
                pass,
                counts.all(),
                status.all(),
                ticket.all(),
            )?;
        }
    }
    let [keys, values] = both(passes).map(|slice| slice.to_vec(&stream));
    Ok(keys?.into_iter().zip(values?).collect())
}

/// `n` points in arithmetic progression, all different: an addition each.
pub(super) fn multiples(rng: &mut ChaCha8Rng, n: usize) -> Vec<G1Affine> {
    let step = G1Projective::random(&mut *rng);
    let projective: Vec<G1Projective> =
        std::iter::successors(Some(G1Projective::random(&mut *rng)), |p| Some(p + step)).take(n).collect();
    let mut affine = vec![G1Affine::default(); n];
    G1Projective::batch_normalize(&projective, &mut affine);
    affine
}
