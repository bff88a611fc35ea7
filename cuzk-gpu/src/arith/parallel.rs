//! Work over rayon's current pool without locks: a shared counter hands out tasks, each worker has its own scratch.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Runs `work(scratch, task)` for every task in 0..tasks. Each worker makes its scratch once, when it gets its first task.
///
/// Tasks are handed out one by one in ascending order, so the largest should come first.
pub(crate) fn drain<S>(tasks: usize, scratch: impl Fn() -> S + Sync, work: impl Fn(&mut S, usize) + Sync) {
    let next = AtomicUsize::new(0);
    // The counter only hands out numbers; results are published by the end of the parallel loop.
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&task| task < tasks);
    let worker = || {
        let Some(mut task) = take() else { return };
        let mut scratch = scratch();
        loop {
            work(&mut scratch, task);
            match take() {
                Some(following) => task = following,
                None => return,
            }
        }
    };
    let workers = rayon::current_num_threads().min(tasks);
    if workers <= 1 {
        return worker();
    }
    (0..workers).into_par_iter().with_max_len(1).for_each(|_| worker());
}

/// A slice that several tasks write to, each its own elements.
pub(crate) struct Scattered<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: a `Scattered` only hands out pointers; whoever writes through them vouches for the elements being its own.
unsafe impl<T: Send> Send for Scattered<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Scattered<T> {}

impl<T> Scattered<T> {
    /// Lends a slice; the caller keeps it borrowed for as long as tasks run.
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// Pointer to element `i`.
    pub(crate) fn at(&self, i: usize) -> *mut T {
        debug_assert!(i < self.len);
        self.start.wrapping_add(i)
    }
}
