//! Calls by method and code. Counted where they are answered, beside the core and without its lock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The counts. Clones share them. Labels must come from fixed sets: a stranger's words would fill the memory.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl Requests {
    /// Counts one call.
    pub fn count(&self, method: &'static str, code: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((method, code)).or_default() += 1;
    }

    /// All of them.
    pub(super) fn counted(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
