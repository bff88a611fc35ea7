//! What the store tells of itself: for metrics and for the warnings in `GetStatus`.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::error::StoreError;
use crate::{core::job::JobKey, metrics::Histogram};

/// A point-in-time picture of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStatus {
    /// Payloads in the spool.
    pub payloads: usize,
    /// Their bytes.
    pub payload_bytes: u64,
    /// Bytes of payloads written since the start.
    pub spooled_bytes: u64,
    /// Unfinished jobs found at the start.
    pub resumed: u64,
    /// Jobs found at the start that could not go on.
    pub lost: u64,
    /// Writes that failed since the start.
    pub errors: u64,
    /// Changes that are not on the disk yet because writes fail.
    pub pending: usize,
    /// How long commits took, sync included.
    pub commits: Histogram,
    /// What went wrong at the latest attempt; `None` if it succeeded.
    pub trouble: Option<String>,
}

/// What the threads of a store note down.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    status: StoreStatus,
    /// The payloads in the spool and their lengths.
    payloads: HashMap<JobKey, u64>,
}

impl Shown {
    pub(super) fn found(&self, resumed: impl Iterator<Item = (JobKey, u64)>, lost: usize) {
        let mut state = self.lock();
        state.payloads.extend(resumed);
        state.status.resumed = state.payloads.len() as u64;
        state.status.lost = lost as u64;
    }

    pub(super) fn spooled(&self, key: JobKey, bytes: u64) {
        let mut state = self.lock();
        state.payloads.insert(key, bytes);
        state.status.spooled_bytes += bytes;
    }

    pub(super) fn unspooled(&self, key: JobKey) {
        self.lock().payloads.remove(&key);
    }

    pub(super) fn committed(&self, took: Duration) {
        let mut state = self.lock();
        state.status.commits.observe(took);
        state.status.trouble = None;
    }

    /// Logged once for each kind of trouble, not once a job.
    pub(super) fn failed(&self, error: &StoreError) {
        let mut state = self.lock();
        state.status.errors += 1;
        let text = error.to_string();
        if state.status.trouble.as_ref() != Some(&text) {
            tracing::error!("{text}");
            state.status.trouble = Some(text);
        }
    }

    pub(super) fn set_pending(&self, changes: usize) {
        self.lock().status.pending = changes;
    }

    pub(super) fn status(&self) -> StoreStatus {
        let state = self.lock();
        StoreStatus {
            payloads: state.payloads.len(),
            payload_bytes: state.payloads.values().sum(),
            ..state.status.clone()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
