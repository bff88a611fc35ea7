//! Transforms of vectors in device memory, in place.

use super::{
    plan::{self, Pass, THREADS, padded_len},
    table::Table,
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
}

impl Ntt {
    /// Loads the kernels and computes the table for transforms of up to 2^log_n points.
    ///
    /// # Errors
    /// As [`Table::new`], and [`Gpu::function`].
    pub fn new(stream: &Stream, log_n: u32) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        Ok(Self {
            table: Table::new(stream, log_n)?,
            forward: gpu.function("ntt", "ntt_forward")?,
            inverse: gpu.function("ntt", "ntt_inverse")?,
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
        let passes = plan::forward(log_n, points == Points::Coset, self.table.minus_one());
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
        let passes = plan::inverse(log_n, points == Points::Coset, self.table.minus_one());
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
        if log_n > self.table.log_n() {
            let what = format!("a transform of 2^{log_n} points with a table for 2^{}", self.table.log_n());
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
