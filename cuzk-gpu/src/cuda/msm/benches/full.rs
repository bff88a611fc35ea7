//! Full scalars.

use std::time::Instant;

use rand_chacha::ChaCha8Rng;

use super::{
    inputs::{self, Points},
    measure, request, row,
};
use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, Gpu, Layout, Stream,
        harness::Measurement,
        msm::{Base, Msm, Plan, Request, Scalars, Size, Windows},
    },
};

/// Full scalars on resident points. The goal is for the first shape, with tables.
pub(super) fn full(
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
        let drawn = inputs::Scalars::new(&stream, rng, n)?;
        let expected = points.expected(n, |i| drawn.get(i));
        let mut rows = Vec::new();
        for &(count, tables) in shapes {
            let Some(windows) = Windows::balanced(count, tables) else { continue };
            let request = Request { tables, ..request(gpu, vec![Size { points: n, scalars: n, bits: 0 }]) };
            let plan = Plan::with_windows(request, windows, None);
            let mut layout = Layout::new();
            let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
            let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
            let base = Base { points: points.device.all(), first: 0, len: n };
            let begin = Instant::now();
            msm.fill_tables(&stream, base)?;
            stream.wait()?;
            let filled = begin.elapsed().as_secs_f64();
            let scalars = Scalars { words: drawn.device.all().cast()?, len: n, montgomery: false };
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
