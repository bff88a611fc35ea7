//! Which partition goes next.
//!
//! One order rules both stages: most urgent job first, then first come, first served, partition by partition. What has
//! begun is not interrupted; what was only synthesized for less urgent jobs gives way (synthesis is cheap, device time
//! is not).
//!
//! Two things bend the order among jobs of one priority, for a bounded time each. A job whose parameters fit in memory
//! only in place of others waits while jobs behind it can use those. And a device prefers the circuit that it proved
//! last. After `group_delay` the order counts again.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use cuzk_synth::circuit::CircuitId;

use super::{
    Core, Effect,
    job::{Job, JobKey, Priority, Stage},
    ledger::{Place, Run},
    params::ParamsState,
};

/// Prove this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofOrder {
    /// What.
    pub run: Run,
    /// With whose parameters.
    pub circuit: CircuitId,
    /// Whether it goes first wherever it has to wait.
    pub urgent: bool,
}

/// What a look along the order finds first.
enum Scan {
    /// A partition that can be synthesized.
    Synthesize((JobKey, usize)),
    /// A job whose parameters are not in memory, and whether it has been passed over for long enough.
    Load { job: JobKey, overdue: bool },
    /// Neither.
    Nothing,
}

impl Core {
    /// The partition to synthesize next, if one may be. Marks it as being synthesized and charges its memory.
    pub fn poll_synthesis(&mut self, now: Instant) -> Option<Run> {
        let (key, partition) = self.next_to_synthesize(now)?;
        if !self.make_room_for(key) {
            // Nothing less urgent goes ahead of it either, or a large job would wait for ever behind small ones.
            self.release_idle_params_for(key);
            return None;
        }
        let job = self.jobs.get_mut(&key)?;
        let chosen = &mut job.partitions[partition];
        let run = Run { job: key, partition, attempt: chosen.attempt };
        if !self.ledger.charge(run, job.circuit, job.partition_bytes, now) {
            return None;
        }
        chosen.stage = Stage::Synthesizing;
        (job.passed_since, job.overdue) = (None, false);
        self.params.touch(job.circuit, now);
        if job.started.is_none() {
            job.started = Some(now);
            let queue_wait = now.saturating_duration_since(job.accepted);
            job.timings.queue_wait = queue_wait;
            self.metrics.queue_wait(job.priority, queue_wait);
            self.effects.push(Effect::Started { job: key, queue_wait });
        }
        Some(run)
    }

    /// The partition that a device with a free prover proves next. Marks it as being proven.
    pub fn poll_proof(&mut self, device: usize, now: Instant) -> Option<ProofOrder> {
        let state = &self.devices[device];
        let busy = self.ledger.on_device(device);
        let full = busy >= state.spec.workers;
        if state.fence.is_some() || (full && !state.spec.express) || busy > state.spec.workers {
            return None;
        }
        let (key, partition) = self.next_to_prove(device, full, now)?;
        let job = self.jobs.get_mut(&key)?;
        let chosen = &mut job.partitions[partition];
        chosen.stage = Stage::Proving;
        let run = Run { job: key, partition, attempt: chosen.attempt };
        let order = ProofOrder { run, circuit: job.circuit, urgent: job.priority == Priority::Critical };
        self.ledger.move_to(run, Place::Device(device), now);
        Some(order)
    }

    /// When a job will have been passed over for long enough.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let due = |job: &Job| job.passed_since.filter(|_| !job.overdue)?.checked_add(self.limits.group_delay);
        self.jobs.values().filter_map(due).min()
    }

    /// Notes which jobs have been. `true`: some more than before, so that the order is another one.
    pub(super) fn note_overdue(&mut self, now: Instant) -> bool {
        let mut changed = false;
        for job in self.jobs.values_mut() {
            if !job.overdue && is_overdue(job.passed_since, self.limits.group_delay, now) {
                job.overdue = true;
                changed = true;
            }
        }
        changed
    }

    /// The first partition in order that waits for synthesis and whose parameters are there. Starts the loading of
    /// those that are not: a job behind them with other parameters need not wait.
    fn next_to_synthesize(&mut self, now: Instant) -> Option<(JobKey, usize)> {
        // The first job whose parameters have no room.
        let mut blocked: Option<JobKey> = None;
        loop {
            match self.scan(blocked, now) {
                Scan::Load { job, overdue } => {
                    if !self.load_for(job, overdue, now) {
                        if overdue {
                            return None; // Until what is in flight has made way.
                        }
                        blocked = Some(job);
                    }
                }
                Scan::Synthesize(next) => {
                    if let Some(job) = blocked.and_then(|key| self.jobs.get_mut(&key)) {
                        job.passed_since.get_or_insert(now);
                    }
                    return Some(next);
                }
                Scan::Nothing => return None,
            }
        }
    }

    /// One look along the order.
    fn scan(&self, blocked: Option<JobKey>, now: Instant) -> Scan {
        let least = blocked.map(|key| self.jobs[&key].priority);
        // Circuits of which enough is synthesized ahead. Others may have devices of their own, if any has.
        let mut full: Vec<CircuitId> = Vec::new();
        let alike = self.devices.iter().all(|device| device.spec.circuits.is_none());
        for &(Reverse(priority), key) in &self.order {
            let job = &self.jobs[&key]; // `order` holds the keys of `jobs`
            if least.is_some_and(|least| priority < least) {
                break;
            }
            let Some(partition) = job.first_at(Stage::Waiting).filter(|_| !job.held) else { continue };
            if !self.is_available(job.circuit) {
                continue;
            }
            match self.params.get(job.circuit) {
                ParamsState::Loaded { .. } if full.contains(&job.circuit) => {}
                ParamsState::Loaded { .. } if self.may_lengthen(job) => return Scan::Synthesize((key, partition)),
                ParamsState::Loaded { .. } if alike => break,
                ParamsState::Loaded { .. } => full.push(job.circuit),
                ParamsState::Loading { .. } => {}
                ParamsState::Absent if blocked.is_none() => {
                    // A CRITICAL job is passed over by nobody.
                    let waited = job.overdue || is_overdue(job.passed_since, self.limits.group_delay, now);
                    return Scan::Load { job: key, overdue: waited || priority == Priority::Critical };
                }
                // One exchange at a time. Nobody passes a job that has waited long enough for its own, and it does not wait for
                // an earlier one that has not: both would wait for jobs that they keep from running.
                ParamsState::Absent if job.overdue && self.makes_room() => break,
                ParamsState::Absent if job.overdue => return Scan::Load { job: key, overdue: true },
                ParamsState::Absent => {}
            }
        }
        Scan::Nothing
    }

    fn next_to_prove(&mut self, device: usize, urgent_only: bool, now: Instant) -> Option<(JobKey, usize)> {
        let last = self.devices[device].last_circuit;
        let mut first: Option<(Priority, JobKey, usize)> = None;
        for &(Reverse(priority), key) in &self.order {
            if (urgent_only && priority < Priority::Critical) || first.is_some_and(|(of, ..)| priority < of) {
                break;
            }
            let job = &self.jobs[&key]; // `order` holds the keys of `jobs`
            if !self.devices[device].serves(job.circuit) {
                continue;
            }
            let may =
                |p: &super::job::Partition| p.stage == Stage::Ready && self.may_try(device, job.circuit, &p.tried);
            let Some(partition) = job.partitions.iter().position(may) else { continue };
            match first {
                None => {
                    first = Some((priority, key, partition));
                    // Ready since when: it is the device, not the queue, that it waits for.
                    let run = Run { job: key, partition, attempt: job.partitions[partition].attempt };
                    let ready = self.ledger.iter().find(|(r, _)| *r == run).map(|(_, slot)| slot.since);
                    if last.is_none_or(|last| last == job.circuit) || is_overdue(ready, self.limits.group_delay, now) {
                        break;
                    }
                }
                Some(_) if last == Some(job.circuit) => return Some((key, partition)),
                Some(_) => {}
            }
        }
        first.map(|(_, key, partition)| (key, partition))
    }

    /// Whether a partition of the job fits, if need be after discarding what was synthesized for less urgent jobs:
    /// the least urgent and latest first, no more than needed, and nothing if that would not do.
    fn make_room_for(&mut self, key: JobKey) -> bool {
        let Job { priority, partition_bytes: bytes, circuit, .. } = self.jobs[&key];
        let mut less_urgent: Vec<_> = self
            .ledger
            .iter()
            .filter(|(_, slot)| slot.place == Place::Handover)
            .filter_map(|(run, slot)| Some((self.jobs.get(&run.job)?.priority, run, slot.bytes(), slot.circuit)))
            .filter(|(of, ..)| *of < priority)
            .collect();
        // Popped from the end.
        less_urgent.sort_unstable_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
        let free = self.ledger.budget().free_for(crate::memory::Use::Witness);
        let (depth, ahead) = (self.depth_for(circuit), self.ahead_of(circuit));
        let (mut discarded, mut freed, mut shorter) = (Vec::new(), 0, 0);
        while bytes > free + freed || ahead - shorter >= depth {
            let Some((_, run, bytes, of)) = less_urgent.pop() else {
                return false;
            };
            freed += bytes;
            shorter += usize::from(self.share_a_device(circuit, of));
            discarded.push(run);
        }
        for run in discarded {
            self.discard(run);
        }
        true
    }

    /// Releases the longest unused parameters of another circuit if a job's partition has no room though no partition is in
    /// flight: nothing would ever make way then. A job's own parameters and one partition fit, or it had been refused.
    fn release_idle_params_for(&mut self, key: JobKey) {
        if self.ledger.iter().next().is_some() || self.makes_room() {
            return;
        }
        let own = self.jobs[&key].circuit;
        let other = self.params.least_recently_used().into_iter().map(|(circuit, _)| circuit).find(|&c| c != own);
        if let Some(other) = other {
            self.drop_params(other);
        }
    }

    /// Drops a synthesized partition; it is synthesized again in its turn.
    fn discard(&mut self, run: Run) {
        self.ledger.release(run);
        if let Some(partition) = self.jobs.get_mut(&run.job).and_then(|job| job.latest(run)) {
            partition.start_over();
        }
        self.effects.push(Effect::Discard(run));
    }

    /// Whether one more partition of a job may be ahead, if need be in the place of a less urgent one.
    fn may_lengthen(&self, job: &Job) -> bool {
        let gives_way = |(run, slot): (Run, &super::ledger::Slot)| {
            let less_urgent = self.jobs.get(&run.job).is_some_and(|other| other.priority < job.priority);
            less_urgent && slot.place == Place::Handover && self.share_a_device(job.circuit, slot.circuit)
        };
        self.ahead_of(job.circuit) < self.depth_for(job.circuit) || self.ledger.iter().any(gives_way)
    }

    /// How many partitions may be synthesized ahead of the provers that take a circuit.
    fn depth_for(&self, circuit: CircuitId) -> usize {
        let available = || self.devices.iter().filter(|device| device.is_available(circuit));
        let only_fallback = available().all(|device| device.spec.fallback);
        let serving = available().filter(|device| only_fallback || !device.spec.fallback);
        let lookahead: usize = serving.map(|device| self.limits.lookahead.unwrap_or(device.spec.workers)).sum();
        lookahead + self.limits.synthesis_workers
    }

    /// How many are, of all circuits that share a device with it.
    fn ahead_of(&self, circuit: CircuitId) -> usize {
        let ahead = self.ledger.iter().filter(|(_, slot)| matches!(slot.place, Place::Synthesis | Place::Handover));
        ahead.filter(|(_, slot)| self.share_a_device(circuit, slot.circuit)).count()
    }

    fn share_a_device(&self, a: CircuitId, b: CircuitId) -> bool {
        a == b || self.devices.iter().any(|device| device.is_available(a) && device.is_available(b))
    }
}

fn is_overdue(since: Option<Instant>, delay: Duration, now: Instant) -> bool {
    since.is_some_and(|since| now.saturating_duration_since(since) >= delay)
}
