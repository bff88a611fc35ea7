//! How fast A·w and B·w are.

use cuzk_synth::{r1cs::R1cs, witness::CompactWitness};
use rand_chacha::ChaCha8Rng;

use super::{
    DeviceMatrix, Spmv, WitnessRegion,
    matrix::Coefficients,
    synthetic::{generator, system, witness},
};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    gpu::Gpu,
    harness::{Bench, Measurement, time},
    ntt::PlanesRegion,
    stream::Stream,
};

/// The benches.
pub const BENCHES: &[Bench] = &[
    Bench { name: "spmv/2 KiB", run: |gpu, _| rows(gpu, 2_687_961) },
    Bench { name: "spmv/32 GiB", run: |gpu, _| rows(gpu, 130_278_869) },
];

/// The system is the same each time: drawing it again would change nothing.
fn rows(gpu: &Gpu, rows: usize) -> Result<Vec<Measurement>, String> {
    let mut rng: ChaCha8Rng = generator();
    let r1cs = system(rows, &mut rng);
    let w = witness(&r1cs, &mut rng);
    measure(gpu, &r1cs, &w).map_err(|e| e.to_string())
}

fn measure(gpu: &Gpu, r1cs: &R1cs, w: &CompactWitness) -> Result<Vec<Measurement>, CudaError> {
    let log_n = r1cs.log_domain();
    let stream = Stream::new(gpu)?;
    let spmv = Spmv::new(&stream)?;
    let mut layout = Layout::new();
    let capacity = w.inputs().len() + w.scalars().len();
    let region = WitnessRegion::plan(&mut layout, r1cs.num_inputs, r1cs.num_aux, capacity);
    let out = PlanesRegion::plan(&mut layout, log_n, 1 << (log_n - 3));
    let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
    region.upload(&stream, &arena, w)?;
    let coefficients = Coefficients::new(&stream, r1cs)?;
    let row = |kernel: &str, seconds, work, unit| Measurement {
        kernel: kernel.to_owned(),
        size: format!("{} rows", r1cs.num_constraints()),
        seconds,
        work,
        unit,
        ceiling: None,
        goal: None,
    };
    let expand = time(&stream, 3, || spmv.expand.run(&stream, &arena, &region))?;
    let mut rows = vec![row("expand witness", expand, r1cs.num_variables() as f64, "variables")];
    for (matrix, name) in [(&r1cs.a, "A·w"), (&r1cs.b, "B·w")] {
        let entries = matrix.num_entries() as f64;
        let matrix = DeviceMatrix::new(&stream, r1cs, matrix)?;
        let seconds = time(&stream, 3, || {
            spmv.multiply(&stream, (&matrix, &coefficients), (&arena, &region), (&arena, &out, log_n))
        })?;
        out.check(&stream, &arena, name)?;
        rows.push(row(name, seconds, entries, "entries"));
    }
    Ok(rows)
}
