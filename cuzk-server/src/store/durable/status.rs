//! What the store tells of itself, for metrics and for the warnings in `GetStatus`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::store::{StoreError, StoreStatus};

/// What the threads of a store note down.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<StoreStatus>);

impl Shown {
    pub(super) fn found(&self, resumed: usize, lost: usize) {
        let mut status = self.lock();
        (status.resumed, status.lost) = (resumed as u64, lost as u64);
    }

    pub(super) fn spooled(&self, bytes: u64) {
        self.lock().spooled_bytes += bytes;
    }

    pub(super) fn committed(&self, took: Duration) {
        let mut status = self.lock();
        status.commits.observe(took);
        status.trouble = None;
    }

    /// Logged when the trouble begins or changes, not once a job.
    pub(super) fn failed(&self, error: &StoreError) {
        let mut status = self.lock();
        status.errors += 1;
        let text = error.to_string();
        if status.trouble.as_ref() != Some(&text) {
            tracing::error!("the job store takes no jobs: {text}");
            status.trouble = Some(text);
        }
    }

    pub(super) fn set_pending(&self, changes: usize) {
        self.lock().pending = changes;
    }

    /// All that is noted here; the jobs are counted elsewhere.
    pub(super) fn status(&self) -> StoreStatus {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, StoreStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
