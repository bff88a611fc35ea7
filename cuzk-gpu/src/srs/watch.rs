//! How a load is watched, and stopped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::SrsFault;

/// Told how many bytes of a file have been read, of how many.
pub type Report<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A load under way: whoever reads tells it how much, and learns whether to go on.
pub struct Watch<'a> {
    report: Report<'a>,
    stop: &'a AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Watch<'a> {
    /// Tells `report` about the load, until `stop` is set.
    pub fn new(report: Report<'a>, stop: &'a AtomicBool) -> Self {
        Self { report, stop, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// For loads that nobody watches.
    pub fn nobody() -> Watch<'static> {
        static GO_ON: AtomicBool = AtomicBool::new(false);
        Watch::new(&|_, _| (), &GO_ON)
    }

    /// A file of so many bytes will be read.
    pub(crate) fn begin(&self, bytes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(bytes, Ordering::Relaxed);
        (self.report)(0, bytes);
    }

    /// So many bytes more are about to be read.
    ///
    /// # Errors
    /// [`SrsFault::Cancelled`] once the load is to stop.
    pub(crate) fn read(&self, bytes: u64) -> Result<(), SrsFault> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(SrsFault::Cancelled);
        }
        let before = self.done.fetch_add(bytes, Ordering::Relaxed);
        (self.report)(before + bytes, self.total.load(Ordering::Relaxed));
        Ok(())
    }
}
