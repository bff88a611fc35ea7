//! What the result of a synthesis or a proof means for its partition and job.

use std::time::{Duration, Instant};

use super::{
    Core, Effect,
    job::{JobKey, JobStatus, Stage},
    ledger::{Place, Run},
    schedule::ProofOrder,
};
use crate::{
    metrics::PartitionResult,
    proving::{PartitionProof, PhaseTimings},
};

/// Why there is no assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SynthesisFailure {
    /// The request cannot be satisfied: another try would end the same way.
    Input(String),
    /// It panicked; another try may succeed.
    Panic(String),
    /// It was told to stop.
    Stopped,
}

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofFailure {
    /// No device can prove it.
    Input(String),
    /// The device says why; another try may succeed.
    Device(String),
    /// As [`Self::Device`], and the device must not be given more work as it is.
    Sick(String),
    /// There is a proof, and it is wrong; another try may give a right one.
    BadProof,
    /// The prover panicked; another try may succeed.
    Panic(String),
    /// It was told to stop.
    Stopped,
}

impl Core {
    /// A synthesis has ended. `true`: keep the assignment for a prover; `false`: nobody wants it any more.
    pub fn handle_synthesized(
        &mut self,
        run: Run,
        result: Result<(), SynthesisFailure>,
        took: Duration,
        now: Instant,
    ) -> bool {
        self.metrics.phase("synthesis", took);
        let latest = self.jobs.get_mut(&run.job).filter(|job| job.partitions[run.partition].attempt == run.attempt);
        let Some(job) = latest else {
            self.back_from(run, now);
            return false;
        };
        job.timings.synthesis += took;
        match result {
            Ok(()) => {
                job.partitions[run.partition].stage = Stage::Ready;
                self.ledger.move_to(run, Place::Handover, now);
                return true;
            }
            Err(SynthesisFailure::Input(reason)) => self.fail_attempt(run, Place::Synthesis, reason, false, now),
            Err(SynthesisFailure::Panic(reason)) => self.fail_attempt(run, Place::Synthesis, reason, true, now),
            Err(SynthesisFailure::Stopped) => {
                self.fail_attempt(run, Place::Synthesis, "stopped".to_owned(), true, now);
            }
        }
        self.back_from(run, now);
        false
    }

    /// A prover has made a proof, which is to be verified: its device can take the next partition.
    pub fn handle_made(&mut self, order: ProofOrder, device: usize, now: Instant) {
        self.ledger.to_verification(order.run, device, now);
    }

    /// A prover has ended, and a proof from it, if there is one, was verified. Returns the whole proof if this was the last partition:
    /// to be verified, and reported to [`Self::handle_whole_verified`].
    pub fn handle_proved(
        &mut self,
        order: ProofOrder,
        device: usize,
        result: Result<PartitionProof, ProofFailure>,
        timings: &PhaseTimings,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let ProofOrder { run, circuit, .. } = order;
        self.back_from(run, now);
        for (phase, took) in timings.iter() {
            self.metrics.phase(phase, took);
        }
        // What it says about the device counts, whether anybody still wants the proof or not.
        match &result {
            Ok(_) => self.note_good_proof(device, circuit),
            Err(ProofFailure::BadProof) => self.note_bad_proof(device, now),
            Err(ProofFailure::Sick(reason)) => self.fence(device, reason, now),
            Err(_) => {}
        }
        let latest = self.jobs.get_mut(&run.job).filter(|job| job.partitions[run.partition].attempt == run.attempt);
        let Some(job) = latest else {
            self.metrics.partition(device, PartitionResult::Dropped);
            return None;
        };
        job.timings.compute += timings.get(PhaseTimings::LOCK_HOLD);
        timings.iter().for_each(|(phase, took)| job.phases.add(phase, took));
        let (result, reason, again) = match result {
            Ok(proof) => {
                let done = &mut job.partitions[run.partition];
                done.stage = Stage::Proved;
                done.proof = Some(proof);
                done.proved_on = Some(device);
                job.devices.insert(device);
                self.metrics.partition(device, PartitionResult::Proved);
                let whole = job.whole_proof();
                if whole.is_none() {
                    self.effects.push(Effect::Proved { run, proof });
                }
                return whole;
            }
            Err(ProofFailure::Input(reason)) => (PartitionResult::Failed, reason, false),
            Err(ProofFailure::Device(reason) | ProofFailure::Sick(reason) | ProofFailure::Panic(reason)) => {
                (PartitionResult::Failed, reason, true)
            }
            Err(ProofFailure::Stopped) => (PartitionResult::Dropped, "stopped".to_owned(), true),
            Err(ProofFailure::BadProof) => (PartitionResult::BadProof, "the proof does not verify".to_owned(), true),
        };
        self.metrics.partition(device, result);
        self.fail_attempt(run, Place::Device(device), reason, again, now);
        None
    }

    /// The proof of a whole job was checked. If it is wrong although every partition's is right, all are proven again.
    pub fn handle_whole_verified(&mut self, key: JobKey, proof: Vec<u8>, result: Result<(), String>, now: Instant) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Err(reason) = result else {
            self.end(key, JobStatus::Completed, proof.into(), String::new(), now);
            return;
        };
        let reason = format!("every partition's proof is right, but not the proof as a whole: {reason}");
        self.metrics.bad_whole();
        job.whole_failures += 1;
        if job.whole_failures >= self.limits.attempts {
            let attempts = job.whole_failures;
            self.fail(key, format!("{reason} ({attempts} attempts)"), now);
            return;
        }
        job.partitions.iter_mut().for_each(|partition| partition.start_over());
        self.effects.push(Effect::Retried { job: key, partition: None, place: "the whole".to_owned(), reason });
    }

    /// One attempt at a partition has failed. It alone is done again, unless that is of no use or it was the last; then
    /// its job fails, with every attempt's reason.
    pub(super) fn fail_attempt(&mut self, run: Run, place: Place, reason: String, again: bool, now: Instant) {
        let where_ = self.place(place);
        let attempts = self.limits.attempts as usize;
        let Some(job) = self.jobs.get_mut(&run.job) else { return };
        let of = job.partitions.len();
        let Some(failed) = job.latest(run) else { return };
        failed.failures.push(format!("{where_}: {reason}"));
        if let Place::Device(device) = place {
            failed.tried.insert(device);
        }
        if again && failed.failures.len() < attempts {
            // Whoever worked at it consumed the assignment, so the partition starts over.
            failed.start_over();
            self.effects.push(Effect::Retried { job: run.job, partition: Some(run.partition), place: where_, reason });
            return;
        }
        let reasons = match failed.failures.as_slice() {
            [only] => only.clone(),
            several => {
                let numbered = several.iter().enumerate().map(|(n, reason)| format!("attempt {}: {reason}", n + 1));
                numbered.collect::<Vec<_>>().join("; ")
            }
        };
        self.fail(run.job, format!("partition {} of {of}: {reasons}", run.partition), now);
    }

    /// Whoever worked at a partition has reported back.
    fn back_from(&mut self, run: Run, now: Instant) {
        let circuit = self.ledger.iter().find(|(r, _)| *r == run).map(|(_, slot)| slot.circuit);
        self.ledger.release(run);
        if let Some(circuit) = circuit {
            self.params.touch(circuit, now);
            self.drop_params_if_free(circuit);
        }
    }
}
