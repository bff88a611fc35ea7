//! Checks of the constraint matrices' products against the CPU.

use blstrs::Scalar;
use cuzk_synth::{planes::Planes, r1cs::R1cs};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{
    DeviceMatrix, Spmv, WitnessRegion,
    matrix::Coefficients,
    synthetic::{system, witness},
};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    gpu::Gpu,
    harness::Check,
    ntt::{PlanesRegion, at_size::has_room, planes::Downloaded},
    stream::Stream,
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "spmv/small systems", run: small_systems },
    Check { name: "spmv/rows of a 2 KiB PoRep", run: porep_rows },
    Check { name: "spmv/misuse", run: misuse },
];

/// A system of the largest size that is wanted of a device, every row of it.
pub const AT_SIZE: &[Check] = &[Check {
    name: "at size/spmv 2^27 rows",
    run: |gpu, rng| match has_room(gpu, 12 << 30)? {
        true => products(gpu, &system(1 << 27, rng), rng),
        false => Ok(()),
    },
}];

/// Rows of a 2 KiB PoRep.
const POREP_ROWS: usize = 2_687_961;

/// A·w and B·w from the device.
fn products(gpu: &Gpu, r1cs: &R1cs, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let log_n = r1cs.log_domain();
    let w = witness(r1cs, rng);
    let run = || {
        let stream = Stream::new(gpu)?;
        let spmv = Spmv::new(&stream)?;
        let mut layout = Layout::new();
        let capacity = w.inputs().len() + w.scalars().len();
        let region = WitnessRegion::plan(&mut layout, r1cs.num_inputs, r1cs.num_aux, capacity);
        let out = PlanesRegion::plan(&mut layout, log_n, 1 << log_n);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        region.upload(&stream, &arena, &w)?;
        spmv.expand.run(&stream, &arena, &region)?;
        let coefficients = Coefficients::new(&stream, r1cs)?;
        let mut planes = Vec::new();
        for matrix in [&r1cs.a, &r1cs.b] {
            let matrix = DeviceMatrix::new(&stream, r1cs, matrix)?;
            spmv.multiply(&stream, (&matrix, &coefficients), (&arena, &region), (&arena, &out, log_n))?;
            planes.push(out.download(&stream, &arena)?);
        }
        Ok::<_, CudaError>(planes)
    };
    let planes = run().map_err(|e| e.to_string())?;
    for ((planes, matrix), name) in planes.iter().zip([&r1cs.a, &r1cs.b]).zip(["A", "B"]) {
        let expected = r1cs.multiply(matrix, &w);
        compare(planes, &expected, log_n).map_err(|error| format!("{} rows, {name}: {error}", expected.len()))?;
    }
    Ok(())
}

/// Values one by one, and that there are no more exceptions than need be.
fn compare(planes: &Downloaded, expected: &[Scalar], log_n: u32) -> Result<(), String> {
    let zero = Scalar::default();
    let wrong = (0..1 << log_n)
        .into_par_iter()
        .find_first(|&i| planes.value(i).as_ref() != Some(expected.get(i).unwrap_or(&zero)));
    if let Some(i) = wrong {
        return Err(format!("row {i} is {:?} instead of {}", planes.value(i), expected.get(i).unwrap_or(&zero)));
    }
    let exceptions = Planes::from_plain(expected.iter().copied()).scalars().len();
    match planes.exceptions() == exceptions {
        true => Ok(()),
        false => Err(format!("{} exceptions instead of {exceptions}", planes.exceptions())),
    }
}

fn small_systems(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let drawn = rng.gen_range(2..100_000);
    [1, 2, 31, 32, 33, 511, 513, 5_000, drawn].iter().try_for_each(|&rows| products(gpu, &system(rows, rng), rng))
}

fn porep_rows(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    products(gpu, &system(POREP_ROWS, rng), rng)
}

/// A witness or a matrix of another circuit is refused.
fn misuse(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let (small, large) = (system(100, rng), system(200, rng));
    let w = witness(&small, rng);
    let run = || {
        let stream = Stream::new(gpu)?;
        let spmv = Spmv::new(&stream)?;
        let mut layout = Layout::new();
        let region = WitnessRegion::plan(&mut layout, large.num_inputs, large.num_aux, 1000);
        let out = PlanesRegion::plan(&mut layout, 8, 1 << 8);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        let coefficients = Coefficients::new(&stream, &small)?;
        let matrix = DeviceMatrix::new(&stream, &small, &small.a)?;
        let other = R1cs { num_aux: 1, ..small.clone() };
        Ok::<_, CudaError>([
            region.upload(&stream, &arena, &w),
            spmv.multiply(&stream, (&matrix, &coefficients), (&arena, &region), (&arena, &out, 8)),
            DeviceMatrix::new(&stream, &other, &small.a).map(|_| ()),
        ])
    };
    for (i, result) in run().map_err(|e| e.to_string())?.into_iter().enumerate() {
        match result {
            Err(CudaError::Misuse { .. }) => {}
            other => return Err(format!("case {i}: expected a refusal, found {other:?}")),
        }
    }
    Ok(())
}
