//! Full scalars, resident and streamed points.

use blstrs::{G1Affine, Scalar};
use ff::Field;
use group::Group as _;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    Outcome, bytes, chosen, expected,
    parts::{Parts, ranges},
    random_points, words,
};
use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, DeviceBuffer, Gpu, Layout, PinnedBuffer, Stream,
        conveyor::Conveyor,
        msm::{Base, DeviceCurve, Msm, Plan, Request, Scalars, Size, Windows, plan::MAX_LENGTH},
    },
};

/// For so many points and full scalars.
fn request<C: DeviceCurve>(gpu: &Gpu, n: usize) -> Request {
    super::request::<C>(gpu, Size { points: n, scalars: n, bits: 0 })
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
    let base = Base { points: base.all(), first: 0, len: points.len() };
    msm.fill_tables(&stream, base)?;
    let words = DeviceBuffer::from_host(&stream, &words(scalars), "a check's scalars")?;
    let scalars = Scalars { words: words.all(), len: scalars.len(), montgomery: true };
    let poisoned = |_| {
        let mut whole = Layout::new();
        arena.slice(whole.add::<u8>(layout.bytes()))?.fill_bytes(&stream, 0xdb)?;
        msm.full(&stream, &arena, base, scalars)?;
        Ok(msm.sums()?[0])
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

pub(super) fn sizes<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng, sizes: &[usize]) -> Outcome {
    sizes.iter().try_for_each(|&n| {
        let points = random_points::<C>(rng, n);
        let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
        compare::<C>(gpu, chosen(request::<C>(gpu, n))?, &points, &scalars, "random")
    })
}

/// Few different points, their negatives and identities, with scalars that are often the same or at a border.
pub(super) fn special<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
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
pub(super) fn windows_and_caps<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
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
pub(super) fn one_bucket(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let n = 200_000;
    let few = random_points::<G1>(rng, 512);
    let points: Vec<G1Affine> = (0..n).map(|i| few[i % 512]).collect();
    compare::<G1>(gpu, chosen(request::<G1>(gpu, n))?, &points, &vec![Scalar::random(&mut *rng); n], "one bucket")
}

/// The same sum, bit for bit, a hundred times.
pub(super) fn again(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let n = 1 << 14;
    let few = random_points::<G1>(rng, 300);
    let points: Vec<G1Affine> = (0..n).map(|i| few[i % 300]).collect();
    let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
    let sums =
        on_device::<G1>(gpu, chosen(request::<G1>(gpu, n))?, &points, &scalars, 100).map_err(|e| e.to_string())?;
    let expected = expected::<G1>(&points, &scalars);
    match sums.iter().position(|sum| *sum != expected) {
        None => Ok(()),
        Some(run) => Err(format!("run {run} of {} gave a wrong sum", sums.len())),
    }
}

/// Points in parts, of different sizes, some in host memory; plain scalars.
pub(super) fn streamed(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let lens = [300, 1000, 1, 1000, 999, 1000, 21];
    let n = lens.iter().sum();
    let points = random_points::<G1>(rng, n);
    let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut *rng)).collect();
    let plain: Vec<u32> = scalars
        .iter()
        .flat_map(|s| {
            let bytes = s.to_bytes_le();
            std::array::from_fn::<u32, 8, _>(|i| u32::from_le_bytes([0, 1, 2, 3].map(|b| bytes[4 * i + b])))
        })
        .collect();
    let run = |on_device: [bool; 7]| {
        let stream = Stream::new(gpu)?;
        let most = 1000;
        let plan = Plan::choose(Request { streamed: true, ..request::<G1>(gpu, most) });
        let plan = plan.ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))?;
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
        let buffers = [layout.add::<u8>(most * 96), layout.add::<u8>(most * 96)];
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        let mut pinned = PinnedBuffer::new(gpu, n * 96, "a check's points")?;
        pinned.copy_from_slice(&bytes::<G1>(&points));
        let resident = DeviceBuffer::from_host(&stream, &pinned, "a check's points")?;
        let words = DeviceBuffer::from_host(&stream, &plain, "a check's scalars")?;
        let scalars = Scalars { words: words.all(), len: n, montgomery: false };
        let buffers = [arena.slice(buffers[0])?, arena.slice(buffers[1])?];
        let parts = Parts {
            conveyor: Conveyor::new(gpu)?,
            resident: resident.all(),
            pinned: &pinned,
            buffers,
            parts: ranges(&lens).into_iter().zip(on_device.map(|on_device| !on_device)).collect(),
        };
        for _ in 0..2 {
            parts.sum(&mut msm, &stream, &arena, scalars)?;
        }
        Ok::<_, CudaError>(msm.sums()?[0])
    };
    let expected = expected::<G1>(&points, &scalars);
    for on_device in [[false; 7], [true; 7], [true, true, false, false, false, true, false]] {
        if run(on_device).map_err(|e| e.to_string())? != expected {
            return Err(format!("parts of {lens:?} points, on the device: {on_device:?}: a wrong sum"));
        }
    }
    Ok(())
}
