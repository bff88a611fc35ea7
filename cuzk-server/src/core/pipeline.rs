//! Which partition goes next, and what its result means for the job.
//!
//! One order rules both stages: most urgent job first, then first come, first served, partition by partition. Work
//! that has begun is not interrupted, so a CRITICAL job waits for one running partition a thread at most; what was only
//! synthesized for less urgent jobs gives way to it (synthesis is cheap, device time is not).

use std::time::{Duration, Instant};

use cuzk_synth::circuit::CircuitId;

use super::{
    Core, Effect,
    job::{Job, JobKey, JobStatus, Stage},
    ledger::Place,
    params::{Evicted, ParamsState},
};
use crate::{
    metrics::PartitionResult,
    proving::{PartitionProof, PhaseTimings},
};

/// Provers may fail so often on one partition before its job fails.
const MAX_FAILURES: u32 = 2;

/// Synthesize this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthesisOrder {
    /// Of which job.
    pub job: JobKey,
    /// Which partition.
    pub partition: usize,
}

/// Prove this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofOrder {
    /// Of which job.
    pub job: JobKey,
    /// Which partition.
    pub partition: usize,
    /// With whose parameters.
    pub circuit: CircuitId,
}

/// Why there is no assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynthesisFailure(pub String);

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofFailure {
    /// The prover says why; another try may succeed.
    Error(String),
    /// There is a proof, and it is wrong; another try may give a right one.
    BadProof,
    /// The prover panicked: not tried again.
    Panic(String),
}

impl Core {
    /// The partition to synthesize next, if one may be. Marks it as being synthesized and charges its memory.
    pub fn poll_synthesis(&mut self, now: Instant) -> Option<SynthesisOrder> {
        let (key, partition) = self.next_to_synthesize(now)?;
        if !self.make_room_for(key) {
            // Nothing less urgent goes ahead of it either, or a large job would wait for ever behind small ones.
            return None;
        }
        let job = self.jobs.get_mut(&key)?;
        job.partitions[partition].stage = Stage::Synthesizing;
        self.ledger.charge((key, partition), job.partition_bytes, now);
        if job.started.is_none() {
            job.started = Some(now);
            let queue_wait = now.saturating_duration_since(job.accepted);
            job.timings.queue_wait = queue_wait;
            self.metrics.queue_wait(job.priority, queue_wait);
            self.effects.push(Effect::Started { job: key, queue_wait });
        }
        Some(SynthesisOrder { job: key, partition })
    }

    /// A synthesis has ended. `true`: keep the assignment for a prover; `false`: nobody wants it any more.
    pub fn handle_synthesized(
        &mut self,
        order: SynthesisOrder,
        result: Result<(), SynthesisFailure>,
        took: Duration,
        now: Instant,
    ) -> bool {
        let SynthesisOrder { job: key, partition } = order;
        self.metrics.phase("synthesis", took);
        let Some(job) = self.jobs.get_mut(&key) else {
            self.ledger.release((key, partition));
            return false;
        };
        job.timings.synthesis += took;
        match result {
            Ok(()) => {
                job.partitions[partition].stage = Stage::Ready;
                self.ledger.move_to((key, partition), Place::Handover, now);
                true
            }
            Err(SynthesisFailure(reason)) => {
                self.ledger.release((key, partition));
                let of = job.partitions.len();
                self.fail(key, format!("synthesis of partition {partition} of {of}: {reason}"), now);
                false
            }
        }
    }

    /// The partition that a device with a free prover proves next. Marks it as being proven.
    pub fn poll_proof(&mut self, device: usize, now: Instant) -> Option<ProofOrder> {
        let alone = self.devices.len() == 1;
        let next = self.order.iter().find_map(|&(_, key)| {
            let job = &self.jobs[&key]; // `order` holds the keys of `jobs`
            let partition = job
                .partitions
                .iter()
                .position(|p| p.stage == Stage::Ready && (alone || p.avoid_device != Some(device)))?;
            Some(ProofOrder { job: key, partition, circuit: job.circuit })
        })?;
        let job = self.jobs.get_mut(&next.job)?;
        job.partitions[next.partition].stage = Stage::Proving;
        self.ledger.move_to((next.job, next.partition), Place::Device(device), now);
        Some(next)
    }

    /// A prover has ended, and a proof from it was verified. Returns the whole proof if this was the last partition:
    /// to be verified, and reported to [`Self::handle_whole_verified`].
    pub fn handle_proved(
        &mut self,
        order: ProofOrder,
        device: usize,
        result: Result<PartitionProof, ProofFailure>,
        timings: &PhaseTimings,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let ProofOrder { job: key, partition, .. } = order;
        self.ledger.release((key, partition));
        for (phase, took) in timings.iter() {
            self.metrics.phase(phase, took);
        }
        let Some(job) = self.jobs.get_mut(&key) else {
            self.metrics.partition(device, PartitionResult::Dropped);
            return None;
        };
        job.timings.compute += timings.get(PhaseTimings::LOCK_HOLD);
        match result {
            Ok(proof) => {
                let done = &mut job.partitions[partition];
                done.stage = Stage::Proved;
                done.proof = Some(proof);
                job.devices.insert(device);
                self.metrics.partition(device, PartitionResult::Proved);
                job.whole_proof()
            }
            Err(failure) => {
                self.handle_proof_failure(order, device, failure, now);
                None
            }
        }
    }

    /// The proof of a whole job was checked.
    pub fn handle_whole_verified(&mut self, key: JobKey, proof: Vec<u8>, result: Result<(), String>, now: Instant) {
        if !self.jobs.contains_key(&key) {
            return;
        }
        match result {
            Ok(()) => self.end(key, JobStatus::Completed, proof.into(), String::new(), now),
            Err(reason) => {
                let reason = format!("every partition's proof is right, but not the proof as a whole: {reason}");
                self.fail(key, reason, now);
            }
        }
    }

    /// The state of a circuit's parameters.
    pub fn params_state(&self, circuit: CircuitId) -> ParamsState {
        self.params.get(circuit)
    }

    /// Asks for a circuit's parameters ahead of any job; takes back an eviction that has not happened yet.
    /// Returns the state before.
    pub fn request_params(&mut self, circuit: CircuitId, now: Instant) -> ParamsState {
        let before = self.params.get(circuit);
        match before {
            ParamsState::Absent => self.begin_load(circuit, now),
            ParamsState::Loading { .. } => {}
            ParamsState::Loaded { bytes, .. } => {
                self.params.set(circuit, ParamsState::Loaded { bytes, evict_when_free: false });
            }
        }
        before
    }

    /// A load has ended: the size in bytes, or why not. A failure fails every job that waited for it.
    /// Returns how long it took.
    pub fn handle_params_loaded(&mut self, circuit: CircuitId, result: Result<u64, String>, now: Instant) -> Duration {
        let ParamsState::Loading { since } = self.params.get(circuit) else {
            return Duration::ZERO;
        };
        let took = now.saturating_duration_since(since);
        self.metrics.params_load(circuit, result.is_ok());
        self.metrics.phase("params_load", took);
        let mut waited: Vec<JobKey> = Vec::new();
        for (key, job) in &mut self.jobs {
            if job.circuit == circuit {
                job.timings.params_load += now.saturating_duration_since(since.max(job.accepted));
                waited.push(*key);
            }
        }
        match result {
            Ok(bytes) => {
                self.params.set(circuit, ParamsState::Loaded { bytes, evict_when_free: false });
            }
            Err(reason) => {
                self.params.set(circuit, ParamsState::Absent);
                waited.sort_unstable();
                for key in waited {
                    self.fail(key, format!("loading the parameters of {circuit}: {reason}"), now);
                }
            }
        }
        took
    }

    /// Releases a circuit's parameters: at once, or when the last running job that holds them ends.
    pub fn evict(&mut self, circuit: CircuitId) -> Evicted {
        let ParamsState::Loaded { bytes, .. } = self.params.get(circuit) else {
            return Evicted { was_loaded: false, freed_bytes: 0 };
        };
        self.params.set(circuit, ParamsState::Loaded { bytes, evict_when_free: true });
        let freed = self.drop_params_if_free(circuit);
        Evicted { was_loaded: true, freed_bytes: if freed { bytes } else { 0 } }
    }

    /// Carries out an eviction that waited for its last holder.
    pub(super) fn drop_params_if_free(&mut self, circuit: CircuitId) -> bool {
        let wanted = matches!(self.params.get(circuit), ParamsState::Loaded { evict_when_free: true, .. });
        let free = wanted && self.holders(circuit) == 0;
        if free {
            self.params.set(circuit, ParamsState::Absent);
            self.effects.push(Effect::DropParams(circuit));
        }
        free
    }

    /// The first partition in order that waits for synthesis and whose parameters are there. Starts the loading of
    /// those that are not: a job behind them with other parameters need not wait.
    fn next_to_synthesize(&mut self, now: Instant) -> Option<(JobKey, usize)> {
        let mut absent = Vec::new();
        let mut next = None;
        for &(_, key) in &self.order {
            let job = &self.jobs[&key]; // `order` holds the keys of `jobs`
            let Some(partition) = job.first_at(Stage::Waiting).filter(|_| !job.held) else { continue };
            match self.params.get(job.circuit) {
                ParamsState::Loaded { .. } => {
                    next = Some((key, partition));
                    break;
                }
                ParamsState::Loading { .. } => {}
                ParamsState::Absent if absent.contains(&job.circuit) => {}
                ParamsState::Absent => absent.push(job.circuit),
            }
        }
        for circuit in absent {
            self.begin_load(circuit, now);
        }
        next
    }

    fn begin_load(&mut self, circuit: CircuitId, now: Instant) {
        self.params.set(circuit, ParamsState::Loading { since: now });
        self.effects.push(Effect::LoadParams(circuit));
    }

    /// Whether a partition of the job fits, if need be after discarding what was synthesized for less urgent jobs:
    /// the least urgent and latest first, no more than needed, and nothing if that would not do.
    fn make_room_for(&mut self, key: JobKey) -> bool {
        let Job { priority, partition_bytes: bytes, .. } = self.jobs[&key];
        let mut less_urgent: Vec<_> = self
            .ledger
            .iter()
            .filter(|(_, slot)| slot.place == Place::Handover)
            .filter_map(|((k, p), slot)| Some((self.jobs.get(&k)?.priority, k, p, slot.bytes)))
            .filter(|(of, ..)| *of < priority)
            .collect();
        // Popped from the end.
        less_urgent.sort_unstable_by(|a, b| (b.0, a.1, a.2).cmp(&(a.0, b.1, b.2)));
        let (mut discarded, mut freed) = (Vec::new(), 0);
        while !self.ledger.fits(bytes, discarded.len(), freed) {
            let Some((_, job, partition, bytes)) = less_urgent.pop() else {
                return false;
            };
            freed += bytes;
            discarded.push((job, partition));
        }
        for (job, partition) in discarded {
            self.ledger.release((job, partition));
            if let Some(job) = self.jobs.get_mut(&job) {
                job.partitions[partition].stage = Stage::Waiting;
            }
            self.effects.push(Effect::Discard { job, partition });
        }
        true
    }

    fn handle_proof_failure(&mut self, order: ProofOrder, device: usize, failure: ProofFailure, now: Instant) {
        let ProofOrder { job: key, partition, .. } = order;
        let (result, reason, again) = match failure {
            ProofFailure::Error(reason) => (PartitionResult::Failed, reason, true),
            ProofFailure::Panic(reason) => (PartitionResult::Failed, reason, false),
            ProofFailure::BadProof => (PartitionResult::BadProof, "the proof does not verify".to_owned(), true),
        };
        self.metrics.partition(device, result);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let of = job.partitions.len();
        let failed = &mut job.partitions[partition];
        failed.failures += 1;
        if again && failed.failures < MAX_FAILURES {
            // The prover consumed the assignment, so the partition starts over.
            failed.stage = Stage::Waiting;
            failed.avoid_device = Some(device);
            self.effects.push(Effect::Retried { job: key, partition, device, reason });
        } else {
            let tries = failed.failures;
            let name = self.devices[device].clone();
            let tries = if tries > 1 { format!(" ({tries} tries)") } else { String::new() };
            self.fail(key, format!("partition {partition} of {of} on device {name}: {reason}{tries}"), now);
        }
    }
}
