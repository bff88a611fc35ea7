//! When proving parameters are loaded and released: on demand, within the budget, the longest unused making way.

use std::time::{Duration, Instant};

use cuzk_synth::circuit::CircuitId;

use super::{
    Core, Effect,
    job::{Job, JobKey, Priority, Stage},
    params::{Evicted, ParamsState},
};
use crate::{memory::Use, metrics::Worker, proving::ParamsSize};

impl Core {
    /// The state of a circuit's parameters.
    pub fn params_state(&self, circuit: CircuitId) -> ParamsState {
        self.params.get(circuit)
    }

    /// Asks for a circuit's parameters of so many bytes ahead of any job; takes back an eviction that has not happened
    /// yet. Returns the state before; if that was [`ParamsState::Absent`] and still is, there is no memory for them.
    pub fn request_params(&mut self, circuit: CircuitId, bytes: u64, now: Instant) -> ParamsState {
        let before = self.params.get(circuit);
        match before {
            ParamsState::Absent => {
                self.load_in_place_of(circuit, bytes, now, |core, other| core.is_wanted(other, None));
            }
            ParamsState::Loading { .. } => {}
            ParamsState::Loaded { .. } => self.params.set_evicted_when_free(circuit, false),
        }
        before
    }

    /// A load has ended: the size, or why not. A failure fails every job that waited for it.
    /// Returns how long it took.
    pub fn handle_params_loaded(
        &mut self,
        circuit: CircuitId,
        result: Result<ParamsSize, String>,
        now: Instant,
    ) -> Duration {
        let ParamsState::Loading { since } = self.params.get(circuit) else {
            return Duration::ZERO;
        };
        let took = now.saturating_duration_since(since);
        self.metrics.params_load(circuit, result.is_ok());
        self.metrics.phase(circuit, Worker::Host, "params_load", took);
        let mut waited: Vec<JobKey> = Vec::new();
        for (key, job) in &mut self.jobs {
            if job.circuit == circuit {
                job.timings.params_load += now.saturating_duration_since(since.max(job.accepted));
                waited.push(*key);
            }
        }
        match result {
            Ok(size) => self.params.set_loaded(circuit, size),
            Err(reason) => {
                self.params.remove(circuit);
                waited.sort_unstable();
                for key in waited {
                    self.fail(key, format!("loading the parameters of {circuit}: {reason}"), now);
                }
            }
        }
        took
    }

    /// Releases a circuit's parameters: at once, or when the last running job that holds them ends. A load that no job
    /// waits for is given up.
    pub fn evict(&mut self, circuit: CircuitId) -> Evicted {
        let not_loaded = Evicted { was_loaded: false, freed_bytes: 0, in_use: 0, cancels_load: false };
        match self.params.get(circuit) {
            ParamsState::Absent => not_loaded,
            ParamsState::Loading { .. } => {
                let in_use = self.jobs.values().filter(|job| job.circuit == circuit).count() as u32;
                Evicted { in_use, cancels_load: in_use == 0, ..not_loaded }
            }
            ParamsState::Loaded { bytes, .. } => {
                let in_use = self.holders(circuit);
                self.params.set_evicted_when_free(circuit, true);
                let freed_bytes = if self.drop_params_if_free(circuit) { bytes } else { 0 };
                Evicted { was_loaded: true, freed_bytes, in_use, cancels_load: false }
            }
        }
    }

    /// Parameters that [`Effect::DropParams`] named are out of memory.
    pub fn handle_params_dropped(&mut self, circuit: CircuitId) {
        if let Some(at) = self.leaving.iter().position(|(leaving, _)| *leaving == circuit) {
            self.leaving.swap_remove(at);
        }
    }

    /// Whether parameters are on their way out of memory.
    pub fn makes_room(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Carries out an eviction that waited for its last holder.
    pub(super) fn drop_params_if_free(&mut self, circuit: CircuitId) -> bool {
        let wanted = matches!(self.params.get(circuit), ParamsState::Loaded { evict_when_free: true, .. });
        let free = wanted && self.holders(circuit) == 0 && self.ledger.in_flight(circuit) == 0;
        if free {
            self.drop_params(circuit);
        }
        free
    }

    /// Begins to load the parameters that a job waits for, if there is room or others make way: those with no partition
    /// in flight, and, until the job is `overdue`, with no job waiting that is as urgent as this one.
    pub(super) fn load_for(&mut self, key: JobKey, overdue: bool, now: Instant) -> bool {
        let Job { circuit, params_bytes, priority, .. } = self.jobs[&key];
        let least = if overdue { priority.above() } else { Some(priority) };
        self.load_in_place_of(circuit, params_bytes, now, |core, other| match least {
            Some(least) => core.is_wanted(other, Some(least)),
            None => false,
        })
    }

    /// Whether a job of this priority or a higher one (`None`: of any) waits for nothing but its turn with a circuit's
    /// parameters.
    fn is_wanted(&self, circuit: CircuitId, least: Option<Priority>) -> bool {
        let waits = |job: &Job| job.circuit == circuit && !job.held && job.first_at(Stage::Waiting).is_some();
        self.is_available(circuit)
            && self.jobs.values().any(|job| waits(job) && least.is_none_or(|least| job.priority >= least))
    }

    /// Reserves memory and begins to load. Others are dropped for it, longest unused first, if that makes room.
    fn load_in_place_of(
        &mut self,
        circuit: CircuitId,
        bytes: u64,
        now: Instant,
        is_wanted: impl Fn(&Self, CircuitId) -> bool,
    ) -> bool {
        if self.leaving.iter().any(|(leaving, _)| *leaving == circuit) {
            return false; // Twice in memory would be more than anybody reckons with.
        }
        let budget = self.ledger.budget().clone();
        let mut missing = bytes.saturating_sub(budget.free_for(Use::Params));
        if missing > 0 {
            // What is on its way out will be free soon.
            missing = missing.saturating_sub(self.leaving.iter().map(|(_, held)| held.bytes()).sum());
            let mut victims = Vec::new();
            for (other, freed) in self.params.least_recently_used() {
                if missing > 0 && self.ledger.in_flight(other) == 0 && !is_wanted(self, other) {
                    missing = missing.saturating_sub(freed);
                    victims.push(other);
                }
            }
            if missing == 0 {
                victims.into_iter().for_each(|other| self.drop_params(other));
            }
            return false; // When they are out of memory, this is asked again.
        }
        let Some(reservation) = budget.try_reserve(Use::Params, bytes) else { return false };
        self.params.begin_load(circuit, reservation, now);
        self.effects.push(Effect::LoadParams(circuit));
        true
    }

    pub(super) fn drop_params(&mut self, circuit: CircuitId) {
        if let Some(reservation) = self.params.remove(circuit) {
            self.leaving.push((circuit, reservation));
            self.effects.push(Effect::DropParams(circuit));
        }
    }
}
