//! Which circuits' proving parameters are in memory. The parameters themselves are the driver's; this is the decision.

use std::{collections::BTreeMap, time::Instant};

use cuzk_synth::circuit::CircuitId;

use crate::{memory::Reservation, proving::ParamsSize};

/// The state of one circuit's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamsState {
    /// On disk at most.
    Absent,
    /// Being loaded; one load at a time.
    Loading {
        /// When the load began.
        since: Instant,
    },
    /// In memory.
    Loaded {
        /// Their size.
        bytes: u64,
        /// Whether to release them as soon as no running job holds them.
        evict_when_free: bool,
    },
}

/// What an eviction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Whether they were in memory.
    pub was_loaded: bool,
    /// What was released at once; 0 if running jobs still hold them (then they go with the last one).
    pub freed_bytes: u64,
}

/// All circuits that are not [`ParamsState::Absent`].
#[derive(Debug, Default)]
pub(super) struct ParamsTable(BTreeMap<CircuitId, Entry>);

/// One circuit's parameters and the memory they hold.
#[derive(Debug)]
struct Entry {
    state: ParamsState,
    reservation: Reservation,
    /// When a partition of the circuit last began or ended.
    used: Instant,
}

impl ParamsTable {
    /// The state of a circuit.
    pub(super) fn get(&self, circuit: CircuitId) -> ParamsState {
        self.0.get(&circuit).map_or(ParamsState::Absent, |entry| entry.state)
    }

    /// Notes that a load begins, in memory that is reserved for it.
    pub(super) fn begin_load(&mut self, circuit: CircuitId, reservation: Reservation, now: Instant) {
        self.0.insert(circuit, Entry { state: ParamsState::Loading { since: now }, reservation, used: now });
    }

    /// Notes that a load has ended. From now on the real size is charged.
    pub(super) fn set_loaded(&mut self, circuit: CircuitId, size: ParamsSize) {
        if let Some(entry) = self.0.get_mut(&circuit) {
            entry.state = ParamsState::Loaded { bytes: size.bytes, evict_when_free: false };
            entry.reservation.correct(size.host_bytes);
        }
    }

    /// Says whether a loaded circuit is to go as soon as nobody holds it.
    pub(super) fn set_evicted_when_free(&mut self, circuit: CircuitId, evict: bool) {
        if let Some(Entry { state: ParamsState::Loaded { evict_when_free, .. }, .. }) = self.0.get_mut(&circuit) {
            *evict_when_free = evict;
        }
    }

    /// Forgets a circuit. Its memory is in what is returned.
    pub(super) fn remove(&mut self, circuit: CircuitId) -> Option<Reservation> {
        self.0.remove(&circuit).map(|entry| entry.reservation)
    }

    /// Notes that a circuit is in use.
    pub(super) fn touch(&mut self, circuit: CircuitId, now: Instant) {
        if let Some(entry) = self.0.get_mut(&circuit) {
            entry.used = now;
        }
    }

    /// All that are loading or loaded.
    pub(super) fn iter(&self) -> impl Iterator<Item = (CircuitId, ParamsState)> + '_ {
        self.0.iter().map(|(circuit, entry)| (*circuit, entry.state))
    }

    /// All that are loaded, longest unused first, with their sizes.
    pub(super) fn least_recently_used(&self) -> Vec<(CircuitId, u64)> {
        let mut loaded: Vec<_> = self
            .0
            .iter()
            .filter(|(_, entry)| matches!(entry.state, ParamsState::Loaded { .. }))
            .map(|(circuit, entry)| (entry.used, *circuit, entry.reservation.bytes()))
            .collect();
        loaded.sort_unstable();
        loaded.into_iter().map(|(_, circuit, bytes)| (circuit, bytes)).collect()
    }
}
