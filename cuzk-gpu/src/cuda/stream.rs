//! Streams, in which work of a device runs in order, and events, which mark points in them.

use std::{
    ptr, thread,
    time::{Duration, Instant},
};

use cudarc::driver::sys::{self, CUevent, CUresult, CUstream};

use super::{error::CudaError, gpu::Gpu};

/// Between two questions whether work is done; the system's own delay comes on top.
const ASK_AGAIN: Duration = Duration::from_micros(40);

/// A queue of work. Streams do not wait for each other, nor for the driver's default stream.
#[derive(Debug)]
pub struct Stream {
    gpu: Gpu,
    handle: CUstream,
    /// How long a wait may take.
    watchdog: Option<Duration>,
}

/// A point in a stream that others can wait for, with the time at which it was reached.
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    handle: CUevent,
}

// SAFETY: handles that the driver lets any thread use.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        gpu.bind()?;
        let mut handle = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current, and the pointer is to a live handle.
        gpu.check(unsafe { sys::cuStreamCreate(&mut handle, flags) }, "cuStreamCreate", || "a stream".into())?;
        Ok(Self { gpu: gpu.clone(), handle, watchdog: None })
    }

    /// The same with a limit to how long a wait for its work may take.
    pub fn with_watchdog(mut self, watchdog: Duration) -> Self {
        self.watchdog = Some(watchdog);
        self
    }

    /// Its device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Blocks this thread until all work queued so far is done. An error of any of that work shows here.
    ///
    /// # Errors
    /// [`CudaError::TooSlow`] after the watchdog's time, or what the driver reports.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.gpu.bind()?;
        if let Some(allowed) = self.watchdog {
            return self.wait_for_at_most(allowed);
        }
        // SAFETY: the stream is alive.
        let result = unsafe { sys::cuStreamSynchronize(self.handle) };
        self.gpu.check(result, "cuStreamSynchronize", || "waiting for queued work".into())
    }

    /// The driver cannot wait for a time, so this asks again and again: every tenth of a millisecond or so.
    fn wait_for_at_most(&self, allowed: Duration) -> Result<(), CudaError> {
        let begin = Instant::now();
        loop {
            // SAFETY: the stream is alive.
            match unsafe { sys::cuStreamQuery(self.handle) } {
                CUresult::CUDA_ERROR_NOT_READY => {}
                result => return self.gpu.check(result, "cuStreamQuery", || "waiting for queued work".into()),
            }
            if begin.elapsed() > allowed {
                return Err(CudaError::TooSlow { device: self.gpu.label().to_owned(), allowed });
            }
            thread::sleep(ASK_AGAIN);
        }
    }

    /// Lets later work of this stream start only when `event` has been reached.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        self.gpu.bind()?;
        // SAFETY: both are alive.
        let result = unsafe { sys::cuStreamWaitEvent(self.handle, event.handle, 0) };
        self.gpu.check(result, "cuStreamWaitEvent", || format!("an event of {}", event.gpu.label()))
    }

    pub(super) fn handle(&self) -> CUstream {
        self.handle
    }
}

impl Event {
    /// A new event, reached as long as it is not recorded.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        gpu.bind()?;
        let mut handle = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        // SAFETY: the context is current, and the pointer is to a live handle.
        gpu.check(unsafe { sys::cuEventCreate(&mut handle, flags) }, "cuEventCreate", || "an event".into())?;
        Ok(Self { gpu: gpu.clone(), handle })
    }

    /// Moves the event to behind the work queued in `stream` so far.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.gpu.bind()?;
        // SAFETY: both are alive.
        let result = unsafe { sys::cuEventRecord(self.handle, stream.handle) };
        self.gpu.check(result, "cuEventRecord", || format!("in a stream of {}", stream.gpu.label()))
    }

    /// Blocks this thread until the event is reached.
    ///
    /// # Errors
    /// What the driver reports, errors of the work before the event included.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.gpu.bind()?;
        // SAFETY: the event is alive.
        let result = unsafe { sys::cuEventSynchronize(self.handle) };
        self.gpu.check(result, "cuEventSynchronize", || "waiting for an event".into())
    }

    /// The device's time from `begin` to this event. Both must have been reached.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn since(&self, begin: &Event) -> Result<Duration, CudaError> {
        self.gpu.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: both are alive, and the pointer is to a live number.
        let result = unsafe { sys::cuEventElapsedTime(&mut milliseconds, begin.handle, self.handle) };
        self.gpu.check(result, "cuEventElapsedTime", || "between two events".into())?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is not used afterwards; the driver finishes queued work first.
        self.gpu.release("cuStreamDestroy", || unsafe { sys::cuStreamDestroy_v2(self.handle) });
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is not used afterwards.
        self.gpu.release("cuEventDestroy", || unsafe { sys::cuEventDestroy_v2(self.handle) });
    }
}
