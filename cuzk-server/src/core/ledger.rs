//! The host memory of partitions between the start of their synthesis and the end of their proof.
//!
//! A slot outlives its job: when a job is cancelled, what its partitions hold in a synthesis thread or a prover stays
//! charged until that thread reports back.

use std::{collections::BTreeMap, time::Instant};

use super::job::JobKey;

/// Where a slot's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a synthesis thread.
    Synthesis,
    /// In the hand-over between synthesis and provers.
    Handover,
    /// In a prover of the device with this index.
    Device(usize),
}

/// One partition's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where it is.
    pub place: Place,
    /// How much.
    pub bytes: u64,
    /// Since when it is in that place.
    pub since: Instant,
    /// Whether it has been reported as being there for too long.
    pub stalled: bool,
}

/// Who holds how much of the budget.
#[derive(Debug)]
pub struct Ledger {
    budget: u64,
    /// Partitions that may be synthesized ahead of the provers.
    depth: usize,
    /// The sum of all slots' bytes.
    used: u64,
    slots: BTreeMap<(JobKey, usize), Slot>,
}

impl Ledger {
    /// An empty ledger: `budget` in bytes, `depth` in partitions.
    pub fn new(budget: u64, depth: usize) -> Self {
        Self { budget, depth, used: 0, slots: BTreeMap::new() }
    }

    /// The budget, in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The part in use, in bytes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether another partition fits, once `freed` slots of `freed_bytes` in the hand-over are given up.
    pub fn fits(&self, bytes: u64, freed: usize, freed_bytes: u64) -> bool {
        let ahead = self.slots.values().filter(|s| !matches!(s.place, Place::Device(_))).count();
        ahead - freed < self.depth && bytes <= self.budget.saturating_sub(self.used - freed_bytes)
    }

    /// Charges a partition whose synthesis begins.
    pub fn charge(&mut self, slot: (JobKey, usize), bytes: u64, now: Instant) {
        self.used += bytes;
        let entry = Slot { place: Place::Synthesis, bytes, since: now, stalled: false };
        let before = self.slots.insert(slot, entry);
        debug_assert!(before.is_none(), "partition {slot:?} is in flight twice");
    }

    /// Notes that a partition moved on.
    pub fn move_to(&mut self, slot: (JobKey, usize), place: Place, now: Instant) {
        if let Some(entry) = self.slots.get_mut(&slot) {
            *entry = Slot { place, since: now, stalled: false, bytes: entry.bytes };
        }
    }

    /// Gives a partition's memory back.
    pub fn release(&mut self, slot: (JobKey, usize)) {
        if let Some(entry) = self.slots.remove(&slot) {
            self.used -= entry.bytes;
        }
    }

    /// A partition's slot.
    pub fn get(&self, slot: (JobKey, usize)) -> Option<&Slot> {
        self.slots.get(&slot)
    }

    /// All slots, by job and partition.
    pub fn iter(&self) -> impl Iterator<Item = ((JobKey, usize), &Slot)> {
        self.slots.iter().map(|(k, s)| (*k, s))
    }

    /// All slots, to mark the stalled ones.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = ((JobKey, usize), &mut Slot)> {
        self.slots.iter_mut().map(|(k, s)| (*k, s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_and_depth_both_bound() {
        let now = Instant::now();
        let mut ledger = Ledger::new(100, 2);
        assert!(ledger.fits(100, 0, 0) && !ledger.fits(101, 0, 0));
        ledger.charge((JobKey(1), 0), 40, now);
        ledger.charge((JobKey(1), 1), 10, now);
        assert!(!ledger.fits(10, 0, 0), "two are ahead already");
        assert!(ledger.fits(60, 1, 10));
        // What is in a prover is not ahead of it, but still holds memory.
        ledger.move_to((JobKey(1), 0), Place::Device(0), now);
        assert!(ledger.fits(50, 0, 0) && !ledger.fits(51, 0, 0));
        ledger.release((JobKey(1), 0));
        ledger.release((JobKey(1), 0));
        assert_eq!(ledger.used(), 10);
    }
}
