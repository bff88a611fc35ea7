//! Points that are not on the device.

use rand_chacha::ChaCha8Rng;

use super::{
    chosen,
    inputs::{self, Points},
    measure, request,
};
use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, Gpu, Layout, PinnedBuffer, Stream,
        conveyor::Conveyor,
        harness::Measurement,
        msm::{
            Msm, Request, Scalars, Size,
            checks::parts::{Parts, ranges},
        },
    },
};

/// Points in parts: on the device, in pinned host memory, and half of them there.
pub(super) fn streamed(gpu: &Gpu, rng: &mut ChaCha8Rng, log: u32) -> Result<Vec<Measurement>, String> {
    let n = 1usize << log;
    // Short parts first: nothing hides the first copy.
    let lens: Vec<usize> = [16, 16, 8].into_iter().chain([4; 3]).map(|share| n / share).collect();
    assert_eq!(lens.iter().sum::<usize>(), n);
    let mut run = || {
        let stream = Stream::new(gpu)?;
        let points = Points::new(&stream, rng, n, 1)?;
        let mut pinned = PinnedBuffer::<u8>::new(gpu, n * 96, "a bench's points")?;
        points.device.all().download(&stream, &mut pinned)?;
        let drawn = inputs::Scalars::new(&stream, rng, n)?;
        let expected = points.expected(n, |i| drawn.get(i));
        let scalars = Scalars { words: drawn.device.all().cast()?, len: n, montgomery: false };
        let most = n / 4;
        let size = Size { points: most, scalars: most, bits: 0 };
        let plan = chosen(Request { streamed: true, ..request(gpu, vec![size]) })?;
        let shape = format!("2^{log}, {}/1", plan.windows.count());
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
        let buffers = [layout.add::<u8>(most * 96), layout.add::<u8>(most * 96)];
        let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
        let buffers = [arena.slice(buffers[0])?, arena.slice(buffers[1])?];
        let mut rows = Vec::new();
        for (name, resident) in [("msm resident parts g1", n), ("msm streamed g1", 0), ("msm half streamed g1", n / 2)]
        {
            // Resident ones first.
            let order: Vec<usize> = if resident > 0 { lens.iter().rev().copied().collect() } else { lens.clone() };
            let parts = Parts {
                conveyor: Conveyor::new(gpu)?,
                resident: points.device.all(),
                pinned: &pinned,
                buffers,
                parts: ranges(&order).into_iter().map(|range| (range.clone(), range.end > resident)).collect(),
            };
            let measured =
                measure(&mut msm, name, (&shape, n), None, expected, |msm| parts.sum(msm, &stream, &arena, scalars));
            rows.push(measured.map(|mut rows| {
                // What was copied meanwhile, beside what the link can do.
                let (work, ceiling) = ((n - resident) as f64 * 96.0, Some(55e9));
                let copied = Measurement { kernel: "  copied".to_owned(), work, unit: "B", ceiling, ..rows[0].clone() };
                rows.extend((resident < n).then_some(copied));
                rows
            }));
        }
        Ok::<_, CudaError>(rows)
    };
    let rows = run().map_err(|e| e.to_string())?;
    Ok(rows.into_iter().collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect())
}
