//! The host memory of partitions between the start of their synthesis and the end of their proof.
//!
//! A slot outlives its job: when a job is cancelled, what its partitions hold in a synthesis thread or a prover stays
//! charged until that thread reports back. So does the slot of an attempt that was given up because it stalled.

use std::{collections::BTreeMap, time::Instant};

use cuzk_synth::circuit::CircuitId;

use super::job::JobKey;
use crate::memory::{Budget, Reservation, Use};

/// One attempt at one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// Of which job.
    pub job: JobKey,
    /// Which partition.
    pub partition: usize,
    /// Which attempt at it, from 0. What comes of an earlier one than the latest is dropped.
    pub attempt: u32,
}

/// Where a slot's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a synthesis thread.
    Synthesis,
    /// In the hand-over between synthesis and provers.
    Handover,
    /// In a prover of the device with this index.
    Device(usize),
    /// Its proof, made by that device, is being verified; the memory of the partition itself is given back.
    Verification(usize),
}

/// One partition's memory.
#[derive(Debug)]
pub struct Slot {
    /// Where it is.
    pub place: Place,
    /// Of which circuit the partition is.
    pub circuit: CircuitId,
    /// Since when it is in that place.
    pub since: Instant,
    /// Whether it has been reported as being there for too long.
    pub stalled: bool,
    reservation: Reservation,
}

impl Slot {
    /// How much memory it is.
    pub fn bytes(&self) -> u64 {
        self.reservation.bytes()
    }
}

/// Who holds how much of the budget.
#[derive(Debug)]
pub struct Ledger {
    budget: Budget,
    slots: BTreeMap<Run, Slot>,
}

impl Ledger {
    /// An empty ledger on a budget.
    pub fn new(budget: Budget) -> Self {
        Self { budget, slots: BTreeMap::new() }
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Bytes of all slots.
    pub fn used(&self) -> u64 {
        self.slots.values().map(Slot::bytes).sum()
    }

    /// Charges a partition whose synthesis begins. `false`: there is no memory for it.
    pub fn charge(&mut self, run: Run, circuit: CircuitId, bytes: u64, now: Instant) -> bool {
        let Some(reservation) = self.budget.try_reserve(Use::Witness, bytes) else { return false };
        let slot = Slot { place: Place::Synthesis, circuit, since: now, stalled: false, reservation };
        let before = self.slots.insert(run, slot);
        debug_assert!(before.is_none(), "{run:?} is in flight twice");
        true
    }

    /// Notes that a partition moved on.
    pub fn move_to(&mut self, run: Run, place: Place, now: Instant) {
        if let Some(slot) = self.slots.get_mut(&run) {
            (slot.place, slot.since, slot.stalled) = (place, now, false);
        }
    }

    /// Notes that a device is done with a partition, and gives back the memory of all but its proof.
    pub fn to_verification(&mut self, run: Run, device: usize, now: Instant) {
        self.move_to(run, Place::Verification(device), now);
        if let Some(slot) = self.slots.get_mut(&run) {
            slot.reservation.correct(0);
        }
    }

    /// Gives a partition's memory back.
    pub fn release(&mut self, run: Run) {
        self.slots.remove(&run);
    }

    /// Partitions of a circuit, wherever they are.
    pub fn in_flight(&self, circuit: CircuitId) -> usize {
        self.slots.values().filter(|slot| slot.circuit == circuit).count()
    }

    /// Partitions in provers of a device.
    pub fn on_device(&self, device: usize) -> usize {
        self.slots.values().filter(|slot| slot.place == Place::Device(device)).count()
    }

    /// All slots, by job, partition and attempt.
    pub fn iter(&self) -> impl Iterator<Item = (Run, &Slot)> {
        self.slots.iter().map(|(run, slot)| (*run, slot))
    }

    /// A slot.
    pub fn get(&self, run: Run) -> Option<&Slot> {
        self.slots.get(&run)
    }

    /// A slot, to mark it as stalled.
    pub fn get_mut(&mut self, run: Run) -> Option<&mut Slot> {
        self.slots.get_mut(&run)
    }
}
