//! A·w and B·w, from matrices on the device or from matrices that come in parts.

use cuzk_synth::r1cs::R1cs;

use super::conveyor::Conveyor;
use crate::cuda::{
    arena::{Arena, Layout, Region},
    error::CudaError,
    ntt::PlanesRegion,
    plan::Matrices,
    spmv::{DeviceMatrix, Spmv, StreamedMatrix, WitnessRegion, matrix::Coefficients},
    stream::Stream,
};

/// The matrices A and B, and the kernels.
pub(super) struct Rows {
    pub spmv: Spmv,
    coefficients: Coefficients,
    matrices: Where,
}

enum Where {
    Resident([DeviceMatrix; 2]),
    Streamed { matrices: [StreamedMatrix; 2], buffers: [Region<u8>; 2] },
}

impl Rows {
    /// Adds the buffers for parts of matrices to the layout of the stage that makes the rows.
    pub(super) fn plan_buffers(matrices: Matrices, rows: &mut Layout) -> Option<[Region<u8>; 2]> {
        match matrices {
            Matrices::Streamed { part_bytes } => Some([(); 2].map(|()| rows.add(part_bytes))),
            Matrices::Resident | Matrices::Absent => None,
        }
    }

    /// Copies the matrices to where the plan wants them; `None` if it wants none.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if there are no buffers for parts or an index is not of the circuit, [`CudaError::OutOfMemory`], or
    /// what the driver reports.
    pub(super) fn new(
        stream: &Stream,
        r1cs: &R1cs,
        matrices: Matrices,
        buffers: Option<[Region<u8>; 2]>,
    ) -> Result<Option<Self>, CudaError> {
        let gpu = stream.gpu();
        let matrices = match (matrices, buffers) {
            (Matrices::Absent, _) => return Ok(None),
            (Matrices::Resident, _) => {
                Where::Resident([DeviceMatrix::new(stream, r1cs, &r1cs.a)?, DeviceMatrix::new(stream, r1cs, &r1cs.b)?])
            }
            (Matrices::Streamed { part_bytes }, Some(buffers)) => {
                let matrix = |matrix| StreamedMatrix::new(gpu, r1cs, matrix, part_bytes);
                Where::Streamed { matrices: [matrix(&r1cs.a)?, matrix(&r1cs.b)?], buffers }
            }
            (Matrices::Streamed { .. }, None) => {
                return Err(gpu.misuse("streamed matrices without buffers to come to".to_owned()));
            }
        };
        Ok(Some(Self { spmv: Spmv::new(stream)?, coefficients: Coefficients::new(stream, r1cs)?, matrices }))
    }

    /// Queues A·w and B·w of an expanded witness.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn run(
        &self,
        stream: &Stream,
        conveyor: &Conveyor,
        witness: (&Arena, &WitnessRegion),
        (arena, planes, log_n): (&Arena, [PlanesRegion; 2], u32),
    ) -> Result<(), CudaError> {
        match &self.matrices {
            Where::Resident(matrices) => matrices.iter().zip(&planes).try_for_each(|(matrix, out)| {
                self.spmv.multiply(stream, (matrix, &self.coefficients), witness, (arena, out, log_n))
            }),
            Where::Streamed { matrices: [a, b], buffers } => {
                let slices = [arena.slice(buffers[0])?, arena.slice(buffers[1])?];
                // The parts of both, one after the other.
                let parts = a.parts() + b.parts();
                let of = |i: usize| match i.checked_sub(a.parts()) {
                    None => (a, &planes[0], i),
                    Some(i) => (b, &planes[1], i),
                };
                let bring = |i: usize| match i < parts {
                    true => conveyor.bring(i, |copies| {
                        let (matrix, _, part) = of(i);
                        // SAFETY: the conveyor waits for its copies before the matrices go.
                        unsafe { matrix.upload(copies, part, slices[i % 2]) }
                    }),
                    false => Ok(()),
                };
                conveyor.begin(stream)?;
                bring(0)?;
                bring(1)?;
                for i in 0..parts {
                    let (matrix, out, part) = of(i);
                    conveyor.wait_for(stream, i)?;
                    let here = (part, slices[i % 2]);
                    matrix.multiply((stream, &self.spmv), here, &self.coefficients, witness, (arena, out, log_n))?;
                    conveyor.used(stream, i)?;
                    bring(i + 2)?;
                }
                Ok(())
            }
        }
    }
}
