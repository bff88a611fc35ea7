//! The product of a matrix with the witness.

use super::{
    matrix::{Coefficients, DeviceMatrix, RawMatrix},
    witness::{Expand, RawWitness, WitnessRegion},
};
use crate::cuda::{
    arena::Arena,
    error::CudaError,
    launch::{Args, Function, Grid},
    ntt::{PlanesRegion, plan::padded_len, planes::RawPlanes},
    stream::Stream,
};

/// The kernels, on one device.
#[derive(Debug)]
pub struct Spmv {
    /// Those that expand the witness.
    pub expand: Expand,
    multiply: Function,
}

impl Spmv {
    /// Loads the kernels.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(stream: &Stream) -> Result<Self, CudaError> {
        Ok(Self { expand: Expand::new(stream)?, multiply: stream.gpu().function("spmv", "spmv")? })
    }

    /// Queues matrix · w, in natural order of rows and with zeros behind the last, into planes of 2^log_n values.
    /// [`PlanesRegion::check`] tells afterwards whether all exceptions had room.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the matrix has more rows than that or other columns than the witness, or what the
    /// driver reports.
    pub fn multiply(
        &self,
        stream: &Stream,
        (matrix, coefficients): (&DeviceMatrix, &Coefficients),
        (witness_arena, witness): (&Arena, &WitnessRegion),
        (arena, out, log_n): (&Arena, &PlanesRegion, u32),
    ) -> Result<(), CudaError> {
        if matrix.num_rows() > 1 << log_n || matrix.num_columns() != witness.num_variables() {
            let what = format!(
                "{} rows of {} columns, a domain of 2^{log_n} and a witness of {} variables",
                matrix.num_rows(),
                matrix.num_columns(),
                witness.num_variables()
            );
            return Err(stream.gpu().misuse(what));
        }
        out.clear(stream, arena)?;
        let (witness, out) = (witness.raw(witness_arena)?, out.raw(arena)?);
        // SAFETY: the matrix was checked when it was copied, its columns are the witness' variables, and the planes
        // have a word for each 32 rows of the padded domain.
        unsafe { self.launch(stream, matrix.raw(coefficients), witness, out, padded_len(log_n)) }
    }

    /// Queues the product of some rows with the witness, into planes from their first row on; zeros up to `len` rows.
    ///
    /// # Safety
    /// The entries are of variables and coefficients that are there, and the planes have a word for each 32 of the rows.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        rows: RawMatrix,
        witness: RawWitness,
        out: RawPlanes,
        len: usize,
    ) -> Result<(), CudaError> {
        let args = Args::new().value(rows).value(witness).value(out);
        // SAFETY: the caller's promise.
        unsafe { self.multiply.launch(stream, Grid::cover(len, 256), &args) }
    }
}
