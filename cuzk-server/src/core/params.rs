//! Which circuits' proving parameters are in memory. The parameters themselves are the driver's; this is the decision.

use std::{collections::BTreeMap, time::Instant};

use cuzk_synth::circuit::CircuitId;

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
pub(super) struct ParamsTable(BTreeMap<CircuitId, ParamsState>);

impl ParamsTable {
    /// The state of a circuit.
    pub(super) fn get(&self, circuit: CircuitId) -> ParamsState {
        self.0.get(&circuit).copied().unwrap_or(ParamsState::Absent)
    }

    /// Sets the state of a circuit and returns the one before.
    pub(super) fn set(&mut self, circuit: CircuitId, state: ParamsState) -> ParamsState {
        let before = match state {
            ParamsState::Absent => self.0.remove(&circuit),
            _ => self.0.insert(circuit, state),
        };
        before.unwrap_or(ParamsState::Absent)
    }

    /// All that are loading or loaded.
    pub(super) fn iter(&self) -> impl Iterator<Item = (CircuitId, ParamsState)> + '_ {
        self.0.iter().map(|(circuit, state)| (*circuit, *state))
    }
}
