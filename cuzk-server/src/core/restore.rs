//! Jobs that a store has still to keep, and those that it gives back after a restart.

use std::{sync::Arc, time::Instant};

use super::{
    Core, NewJob,
    identity::Identity,
    job::{Job, JobKey, Outcome, Stage},
};
use crate::{memory::Use, proving::PartitionProof};

impl Core {
    /// Lets a held job be worked at, and supersede others. `false`: it has ended meanwhile.
    pub fn release(&mut self, key: JobKey, now: Instant) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        job.held = false;
        let identity = job.identity;
        self.supersede_earlier(&identity, key, now);
        true
    }

    /// Whether a job is unfinished and held.
    pub fn is_held(&self, key: JobKey) -> bool {
        self.jobs.get(&key).is_some_and(|job| job.held)
    }

    /// From now on, keys are at least this one.
    pub fn restore_next_key(&mut self, next_key: u64) {
        self.next_key = self.next_key.max(next_key);
    }

    /// Takes an unfinished job of an earlier life back, held. Limits do not apply: it was accepted then. Whoever waited
    /// for it has gone, so it goes on unattended. Jobs are to be restored in the order of their keys.
    pub fn restore(&mut self, key: JobKey, new: NewJob, accepted: Instant, now: Instant) {
        // As far as there is room; what was accepted is not lost because the budget was larger then.
        let queued = self.ledger.budget().try_reserve(Use::Queue, new.payload_bytes);
        let identity = new.identity;
        let mut job = Job::accepted(new, queued, now);
        job.accepted = accepted;
        job.held = true;
        job.detached = true;
        self.restore_next_key(key.0 + 1);
        self.enqueue(key, job);
        self.supersede_earlier(&identity, key, now);
    }

    /// Takes the verified proof of one partition of a restored job back.
    pub fn restore_proof(&mut self, key: JobKey, partition: usize, proof: PartitionProof) {
        if let Some(partition) = self.jobs.get_mut(&key).and_then(|job| job.partitions.get_mut(partition)) {
            partition.stage = Stage::Proved;
            partition.proof = Some(proof);
        }
    }

    /// Takes the outcome of an earlier life back. Outcomes are to be restored by the time of their end, before the jobs.
    pub fn restore_finished(&mut self, identity: Identity, outcome: Arc<Outcome>, ended: Instant, now: Instant) {
        self.restore_next_key(outcome.key.0 + 1);
        self.by_identity.insert(identity, outcome.key);
        self.finished.insert(identity, outcome, None, ended);
        self.forget_old(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::{
        Effect, Interest, TicketKind,
        tests::{Bench, job, limits},
    };

    #[test]
    fn a_held_job_waits_and_lets_others_pass() {
        let mut b = Bench::new(limits(), 1);
        let held = b.core.submit_held(job(1, 1), Interest::Detached, b.now).unwrap().key;
        let other = b.accept(job(2, 1));
        assert_eq!(b.synth(), Some((other, 0)));
        assert_eq!(b.synth(), None);
        assert!(b.core.is_held(held) && !b.core.is_held(other));
        assert!(b.core.release(held, b.now));
        assert_eq!(b.synth(), Some((held, 0)));
        b.core.cancel(held, "", b.now);
        assert!(!b.core.release(held, b.now));
    }

    #[test]
    fn what_is_not_kept_supersedes_nothing() {
        let mut b = Bench::new(limits(), 1);
        let first = b.accept(job(1, 1));
        let refused = b.core.submit_held(job(1, 2), Interest::Detached, b.now).unwrap().key;
        b.core.cancel(refused, "the disk is full", b.now);
        assert!(b.core.is_unfinished(first));
        let mut held = |payload| b.core.submit_held(job(1, payload), Interest::Detached, b.now).unwrap().key;
        let (third, fourth) = (held(3), held(4));
        b.core.release(fourth, b.now);
        assert!(!b.core.is_unfinished(first) && !b.core.is_unfinished(third));
        assert!(!b.core.release(third, b.now), "kept later than the one that came after it");
        assert!(b.core.is_unfinished(fourth));
    }

    #[test]
    fn a_restored_partition_is_not_proven_again() {
        let mut b = Bench::new(limits(), 1);
        b.core.restore(JobKey(7), NewJob { partitions: 3, ..job(1, 1) }, b.now, b.now);
        b.core.restore_proof(JobKey(7), 1, [5; 192]);
        assert!(b.core.release(JobKey(7), b.now));
        b.finish_all(6);
        let proof = [[6; 192], [5; 192], [6; 192]].concat();
        assert_eq!(b.outcome(JobKey(7)).proof[..], proof);
    }

    #[test]
    fn a_restored_job_is_the_same_job_and_runs_unattended() {
        let mut b = Bench::new(limits(), 1);
        b.core.restore(JobKey(41), job(1, 1), b.now, b.now);
        assert_eq!(b.synth(), None, "its request has not been read back");
        let ticket = b.submit(job(1, 1), Interest::Waiting).unwrap();
        assert_eq!((ticket.key, ticket.kind), (JobKey(41), TicketKind::Attached));
        b.core.handle_waiter_gone(JobKey(41), b.now);
        b.pass(Duration::from_secs(100));
        assert!(b.core.release(JobKey(41), b.now));
        b.finish_all(3);
        assert_eq!(b.outcome(JobKey(41)).proof[..], [3; 192]);
        assert_eq!(b.accept(job(2, 1)), JobKey(42), "keys go on");
    }

    #[test]
    fn a_restored_proof_is_replayed_and_then_forgotten() {
        let mut first = Bench::new(limits(), 1);
        let key = first.accept(job(1, 1));
        first.finish_all(9);
        let outcome = first.outcome(key);

        let mut b = Bench::new(limits(), 1);
        let identity = job(1, 1).identity;
        b.core.restore_finished(identity, outcome.clone(), b.now, b.now);
        let ticket = b.submit(job(1, 1), Interest::Detached).unwrap();
        assert_eq!(ticket.kind, TicketKind::Replayed(outcome));
        assert!(b.accept(job(2, 1)).0 > key.0);
        b.core.take_effects();
        b.pass(Duration::from_secs(1000));
        assert!(b.core.take_effects().contains(&Effect::Forgotten(vec![key])));
    }
}
