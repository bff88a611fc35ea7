//! Parts of what does not fit the device, copied into one of two buffers while the other one is worked on.

use super::{
    error::CudaError,
    gpu::Gpu,
    stream::{Event, Stream},
};

/// The copies' stream, and who waits for whom. Part `i` uses buffer `i` mod 2.
#[derive(Debug)]
pub(in crate::cuda) struct Conveyor {
    copies: Stream,
    begun: Event,
    arrived: [Event; 2],
    used: [Event; 2],
}

impl Conveyor {
    /// Ready for any number of stages.
    ///
    /// # Errors
    /// What the driver reports.
    pub(in crate::cuda) fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        let pair = || Ok::<_, CudaError>([Event::new(gpu)?, Event::new(gpu)?]);
        Ok(Self { copies: Stream::new(gpu)?, begun: Event::new(gpu)?, arrived: pair()?, used: pair()? })
    }

    /// A stage begins, whose buffers may overlay what work queued in `stream` so far still uses.
    ///
    /// # Errors
    /// What the driver reports.
    pub(in crate::cuda) fn begin(&self, stream: &Stream) -> Result<(), CudaError> {
        self.begun.record(stream)?;
        self.copies.wait_for(&self.begun)?;
        self.used.iter().try_for_each(|used| used.record(stream))
    }

    /// Queues the copy of a part, which `copy` does in the stream that it is given. Two parts at most may be ahead of
    /// [`Self::used`].
    ///
    /// # Errors
    /// What `copy` or the driver reports.
    pub(in crate::cuda) fn bring(
        &self,
        part: usize,
        copy: impl FnOnce(&Stream) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.copies.wait_for(&self.used[part % 2])?;
        copy(&self.copies)?;
        self.arrived[part % 2].record(&self.copies)
    }

    /// Lets later work of `stream` wait for a part.
    ///
    /// # Errors
    /// What the driver reports.
    pub(in crate::cuda) fn wait_for(&self, stream: &Stream, part: usize) -> Result<(), CudaError> {
        stream.wait_for(&self.arrived[part % 2])
    }

    /// All work that reads a part's buffer has been queued in `stream`.
    ///
    /// # Errors
    /// What the driver reports.
    pub(in crate::cuda) fn used(&self, stream: &Stream, part: usize) -> Result<(), CudaError> {
        self.used[part % 2].record(stream)
    }
}

impl Drop for Conveyor {
    fn drop(&mut self) {
        // After an error copies may be under way, from and to memory that is freed next.
        if let Err(error) = self.copies.wait() {
            tracing::error!("{error}");
        }
    }
}
