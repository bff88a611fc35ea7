//! Transforms of vectors in device memory, in place.

use super::{
    plan::{self, Pass, THREADS, padded_len},
    table::{Table, TableShape},
};
use crate::cuda::{
    error::CudaError,
    fr::Element,
    gpu::Gpu,
    launch::{Args, Function, Grid},
    memory::DeviceSlice,
    stream::Stream,
};

/// Where polynomials of degree below 2^n are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// At the 2^n-th roots of one.
    Domain,
    /// At those times a primitive 2^(n+1)-th root: where X^(2^n) is -1.
    Coset,
}

/// The kernels of transforms and their table, on one device.
#[derive(Debug)]
pub struct Ntt {
    pub(super) table: Table,
    forward: Function,
    inverse: Function,
    pub(super) fused: Fused,
}

/// Passes that do something else as well, for the quotient.
#[derive(Debug)]
pub(super) struct Fused {
    pub(super) from_planes: Function,
    pub(super) turn: Function,
    pub(super) park: Function,
    pub(super) multiply: Function,
    pub(super) subtract: Function,
}

impl Ntt {
    /// Loads the kernels and computes the whole table for transforms of up to 2^log_n points.
    ///
    /// # Errors
    /// As [`Self::with_table`].
    pub fn new(stream: &Stream, log_n: u32) -> Result<Self, CudaError> {
        Self::with_table(stream, TableShape::whole(log_n))
    }

    /// Loads the kernels and computes a table.
    ///
    /// # Errors
    /// As [`Table::new`], and [`Gpu::function`].
    pub fn with_table(stream: &Stream, shape: TableShape) -> Result<Self, CudaError> {
        let function = |name| stream.gpu().function(shape.module(), name);
        Ok(Self {
            table: Table::new(stream, shape)?,
            forward: function("ntt_forward")?,
            inverse: function("ntt_inverse")?,
            fused: Fused {
                from_planes: function("ntt_inverse_planes")?,
                turn: function("ntt_turn")?,
                park: function("ntt_park")?,
                multiply: function("ntt_multiply")?,
                subtract: function("ntt_inverse_subtract")?,
            },
        })
    }

    /// Queues the transform of 2^log_n coefficients, below 2r and in natural order, to values: canonical, in
    /// bit-reversed order. `data` has [`padded_len`] elements in plain form (or in any other: transforms are linear).
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if `data` is too short or the table too small, or what the driver reports.
    pub fn forward(
        &self,
        stream: &Stream,
        data: DeviceSlice<'_, Element>,
        log_n: u32,
        points: Points,
    ) -> Result<(), CudaError> {
        self.fits(stream.gpu(), data, log_n)?;
        let passes = plan::forward(log_n, points == Points::Coset, self.table.shape());
        with_canonical_end(passes).try_for_each(|pass| self.forward_pass(stream, data, pass))
    }

    /// Queues the transform of 2^log_n values, below 2r and in bit-reversed order, to coefficients times 2^log_n:
    /// canonical, in natural order. `data` as for [`Self::forward`].
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn inverse(
        &self,
        stream: &Stream,
        data: DeviceSlice<'_, Element>,
        log_n: u32,
        points: Points,
    ) -> Result<(), CudaError> {
        self.fits(stream.gpu(), data, log_n)?;
        let passes = plan::inverse(log_n, points == Points::Coset, self.table.shape());
        with_canonical_end(passes).try_for_each(|pass| self.inverse_pass(stream, data, pass))
    }

    /// Queues one pass of a forward transform.
    pub(super) fn forward_pass(
        &self,
        stream: &Stream,
        data: DeviceSlice<'_, Element>,
        pass: Pass,
    ) -> Result<(), CudaError> {
        self.queue(stream, &self.forward, Args::new().slice(data), pass)
    }

    /// Queues one pass of an inverse transform.
    pub(super) fn inverse_pass(
        &self,
        stream: &Stream,
        data: DeviceSlice<'_, Element>,
        pass: Pass,
    ) -> Result<(), CudaError> {
        self.queue(stream, &self.inverse, Args::new().slice(data), pass)
    }

    /// Queues a pass of a kernel whose last two parameters are the table and the pass. The caller has checked that the
    /// vectors among `vectors` are long enough ([`Self::fits`]).
    pub(super) fn queue(&self, stream: &Stream, kernel: &Function, vectors: Args, pass: Pass) -> Result<(), CudaError> {
        let args = vectors.slice(self.table.parts().all()).value(pass);
        // SAFETY: passes come from the plan, whose tiles stay inside vectors of the padded length and whose factors
        // inside a table of that size; `fits` compared both with what there is.
        unsafe { kernel.launch(stream, Grid::new(plan::blocks(pass.log_n), THREADS), &args) }
    }

    /// Whether a vector and the table are long enough for 2^log_n points.
    pub(super) fn fits(&self, gpu: &Gpu, data: DeviceSlice<'_, Element>, log_n: u32) -> Result<(), CudaError> {
        if log_n > self.table.shape().log_n() {
            let what = format!("a transform of 2^{log_n} points with a table for 2^{}", self.table.shape().log_n());
            return Err(gpu.misuse(what));
        }
        if data.len() < padded_len(log_n) {
            let what = format!("a transform of 2^{log_n} points in {} elements, not {}", data.len(), padded_len(log_n));
            return Err(gpu.misuse(what));
        }
        Ok(())
    }
}

fn with_canonical_end(mut passes: Vec<Pass>) -> impl Iterator<Item = Pass> {
    if let Some(last) = passes.last_mut() {
        last.canonical = 1;
    }
    passes.into_iter()
}
