//! A lock whose waiters take turns in the order of their coming, urgent ones first.
//!
//! A mutex of the standard library gives itself to whoever comes by; then a CRITICAL partition could wait for every other
//! that waits, and a patient one for ever.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// The lock. It guards no data: what it is for is one's own affair, and a panic under it poisons nothing.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: bool,
    next_ticket: u64,
    urgent: VecDeque<u64>,
    patient: VecDeque<u64>,
}

/// A turn. It ends when this is dropped.
#[derive(Debug)]
pub struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits for a turn.
    pub fn take(&self, urgent: bool) -> Turn<'_> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.line(urgent).push_back(ticket);
        while state.taken || state.next() != Some(ticket) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.line(urgent).pop_front();
        state.taken = true;
        Turn(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, urgent: bool) -> &mut VecDeque<u64> {
        if urgent { &mut self.urgent } else { &mut self.patient }
    }

    fn next(&self) -> Option<u64> {
        self.urgent.front().or(self.patient.front()).copied()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().taken = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    /// Waits until so many stand in line.
    fn until_waiting(turns: &Turns, count: usize) {
        loop {
            let state = turns.lock();
            if state.urgent.len() + state.patient.len() == count {
                return;
            }
            drop(state);
            thread::yield_now();
        }
    }

    #[test]
    fn urgent_ones_first_then_in_order() {
        let turns = Arc::new(Turns::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = turns.take(false);
        let waiting: Vec<_> = [("a", false), ("b", false), ("c", true), ("d", true)]
            .into_iter()
            .enumerate()
            .map(|(n, (name, urgent))| {
                let (turns_of, order) = (turns.clone(), order.clone());
                let handle = thread::spawn(move || {
                    let _turn = turns_of.take(urgent);
                    order.lock().unwrap().push(name);
                });
                until_waiting(&turns, n + 1);
                handle
            })
            .collect();
        drop(first);
        waiting.into_iter().for_each(|handle| handle.join().unwrap());
        assert_eq!(*order.lock().unwrap(), ["c", "d", "a", "b"]);
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turns = Arc::new(Turns::default());
        let panics = turns.clone();
        let ended = thread::spawn(move || {
            let _turn = panics.take(false);
            panic!("under the lock");
        });
        assert!(ended.join().is_err());
        drop(turns.take(false));
    }
}
