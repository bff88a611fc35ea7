//! Lines that strangers can cause are logged once a second at most.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The least time between two lines.
const BETWEEN: Duration = Duration::from_secs(1);

/// Lets one event through in a time, and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// If a line is due: the events since the last one, this one included.
    pub(crate) fn now(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        if state.0.is_some_and(|last| now.saturating_duration_since(last) < BETWEEN) {
            return None;
        }
        state.0 = Some(now);
        Some(std::mem::take(&mut state.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_the_others_are_counted() {
        let (seldom, begin) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.now(begin), Some(1));
        assert_eq!((seldom.now(begin), seldom.now(begin)), (None, None));
        assert_eq!(seldom.now(begin + BETWEEN), Some(3));
        assert_eq!(seldom.now(begin + BETWEEN), None);
    }
}
