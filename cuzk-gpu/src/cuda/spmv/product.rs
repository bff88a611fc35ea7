//! The product of a matrix with the witness.

use super::{
    matrix::{Coefficients, DeviceMatrix},
    witness::{Expand, WitnessRegion},
};
use crate::cuda::{
    arena::Arena,
    error::CudaError,
    launch::{Args, Function, Grid},
    ntt::{PlanesRegion, plan::padded_len},
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
        let args =
            Args::new().value(matrix.raw(coefficients)).value(witness.raw(witness_arena)?).value(out.raw(arena)?);
        let grid = Grid::cover(padded_len(log_n), 256);
        // SAFETY: the matrix was checked when it was copied, its columns are the witness' variables, and the planes
        // have a word for each 32 threads.
        unsafe { self.multiply.launch(stream, grid, &args) }
    }
}
