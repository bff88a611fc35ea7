//! The signal that something changed: a number that rises, for those who watch. Any number of changes between two looks
//! are one.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts changes. Clones count the same ones.
#[derive(Clone, Debug)]
pub(super) struct Revision(Arc<watch::Sender<u64>>);

impl Revision {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Something changed.
    pub(super) fn bump(&self) {
        self.0.send_modify(|revision| *revision = revision.wrapping_add(1));
    }

    /// How many follow them.
    pub(super) fn followers(&self) -> usize {
        self.0.receiver_count()
    }

    /// Follows the changes from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
