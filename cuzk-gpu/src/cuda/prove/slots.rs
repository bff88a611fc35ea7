//! What each worker of a device has of its own: a stream, pinned host memory, device memory for its witness.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use super::{marks::Marks, staging::Staging};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    gpu::Gpu,
    memory::PinnedBuffer,
    stream::Stream,
};

/// A worker's own.
#[derive(Debug)]
pub(super) struct Slot {
    /// All its work goes here.
    pub stream: Stream,
    /// The compact witness, as in the beginning of `arena`.
    pub host: PinnedBuffer<u8>,
    /// The witness on the device.
    pub arena: Arena,
    /// How its values are divided among the calls of the sums; see [`super::key::DeviceKey::bounds`].
    pub bounds: [Vec<usize>; 2],
    /// Times of the phases.
    pub marks: Marks,
}

/// Those that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Slots {
    free: Mutex<Vec<Slot>>,
    returned: Condvar,
}

/// A slot in use, which goes back when dropped, once its stream is idle.
#[derive(Debug)]
pub(super) struct Lent {
    slot: Option<Slot>,
    home: Arc<Slots>,
}

impl Slots {
    /// Makes `workers` of them.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub(super) fn new(gpu: &Gpu, workers: usize, staging: &Staging, layout: &Layout) -> Result<Arc<Self>, CudaError> {
        let slot = |_| {
            Ok(Slot {
                stream: Stream::new(gpu)?,
                host: PinnedBuffer::new(gpu, staging.host_bytes(), "a worker's witness")?,
                arena: Arena::new(gpu, layout, "a worker's witness")?,
                bounds: Default::default(),
                marks: Marks::new(gpu)?,
            })
        };
        let slots = (0..workers).map(slot).collect::<Result<_, CudaError>>()?;
        Ok(Arc::new(Self { free: Mutex::new(slots), returned: Condvar::new() }))
    }

    /// Takes one. Waits only if there are more callers than workers.
    pub(super) fn take(self: &Arc<Self>) -> Lent {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(slot) = free.pop() {
                return Lent { slot: Some(slot), home: self.clone() };
            }
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Deref for Lent {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.slot.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Slot {
        self.slot.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        // After an error or a panic there may be work on the way that reads or writes these buffers.
        if let Err(error) = slot.stream.wait() {
            tracing::error!("{error}");
        }
        self.home.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        self.home.returned.notify_one();
    }
}
