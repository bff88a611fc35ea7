//! What each worker of a device has of its own: a stream, pinned host memory, device memory for its witness.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use super::{marks::Marks, tail::Place};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    gpu::Gpu,
    memory::PinnedBuffer,
    plan::Staging,
    stream::Stream,
};

/// A worker's own.
#[derive(Debug)]
pub(super) struct Slot {
    /// All its work goes here.
    pub stream: Stream,
    /// The compact witness, and A·w and B·w if they come with it, as in the beginning of `arena`.
    pub host: PinnedBuffer<u8>,
    /// The same on the device.
    pub arena: Arena,
    /// How its values are divided among the calls of the sums; see [`super::key::DeviceKey::bounds`].
    pub bounds: [Vec<usize>; 2],
    /// Where the sum over b_g2 is computed.
    pub b_g2: Place,
    /// Times of the phases.
    pub marks: Marks,
}

/// Those that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Slots {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Slot>,
    /// The device may still read or write a slot that nobody has: there is no way back but a new context.
    lost: bool,
}

/// A slot in use, which goes back when dropped, once its stream is idle.
#[derive(Debug)]
pub(super) struct Lent {
    slot: Option<Slot>,
    home: Arc<Slots>,
    stuck: bool,
}

impl Slots {
    /// Makes `workers` of them, whose kernel phases may take as long as `watchdog`.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub(super) fn new(
        gpu: &Gpu,
        workers: usize,
        watchdog: Duration,
        staging: &Staging,
        layout: &Layout,
    ) -> Result<Arc<Self>, CudaError> {
        let slot = |_| {
            Ok(Slot {
                stream: Stream::new(gpu)?.with_watchdog(watchdog),
                host: PinnedBuffer::new(gpu, staging.host_bytes(), "a worker's witness")?,
                arena: Arena::new(gpu, layout, "a worker's witness")?,
                bounds: Default::default(),
                b_g2: Place::Cpu,
                marks: Marks::new(gpu)?,
            })
        };
        let free = (0..workers).map(slot).collect::<Result<_, CudaError>>()?;
        Ok(Arc::new(Self { state: Mutex::new(State { free, lost: false }), returned: Condvar::new() }))
    }

    /// Takes one. Waits only if there are more callers than workers. `None` if one was lost.
    pub(super) fn take(self: &Arc<Self>) -> Option<Lent> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.lost {
                return None;
            }
            if let Some(slot) = state.free.pop() {
                return Some(Lent { slot: Some(slot), home: self.clone(), stuck: false });
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Lent {
    /// Its work does not end: not to be waited for again.
    pub(super) fn set_stuck(&mut self) {
        self.stuck = true;
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
        let idle = !self.stuck && slot.stream.wait().is_ok();
        let mut state = self.home.state.lock().unwrap_or_else(PoisonError::into_inner);
        match idle {
            true => state.free.push(slot),
            false => {
                state.lost = true;
                if self.stuck {
                    // Freed, the memory would be somebody else's while the device still writes to it.
                    std::mem::forget(slot);
                }
            }
        }
        drop(state);
        self.home.returned.notify_all();
    }
}
