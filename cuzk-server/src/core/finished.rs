//! Ended jobs, kept for clients that come back: bounded by number, bytes and age.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    identity::Identity,
    job::{JobKey, Outcome},
    view::JobSnapshot,
};

/// What one entry costs beside its proof and error text, in bytes: keys, digests, timings, table slots.
const ENTRY_BYTES: u64 = 512;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Jobs.
    pub jobs: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Since their end.
    pub age: Duration,
}

/// The ended jobs that are still known.
#[derive(Debug)]
pub struct Finished {
    keep: Retention,
    bytes: u64,
    jobs: HashMap<JobKey, Entry>,
    /// By the time of their end, oldest first. Holds the keys of `jobs`, each once.
    order: VecDeque<JobKey>,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    outcome: Arc<Outcome>,
    /// What it looked like at its end, without what is in `outcome`; `None` if it ended in an earlier life.
    last: Option<Box<JobSnapshot>>,
    ended: Instant,
}

impl Finished {
    /// Nothing kept yet.
    pub fn new(keep: Retention) -> Self {
        Self { keep, bytes: 0, jobs: HashMap::new(), order: VecDeque::new() }
    }

    /// Keeps a job that has just ended, and what it looked like then.
    pub fn insert(&mut self, identity: Identity, outcome: Arc<Outcome>, last: Option<JobSnapshot>, now: Instant) {
        let key = outcome.key;
        let entry = Entry { identity, outcome, last: last.map(Box::new), ended: now };
        self.bytes += entry.cost();
        self.order.push_back(key);
        self.jobs.insert(key, entry);
    }

    /// Forgets what is too much or too old, and says whom.
    pub fn prune(&mut self, now: Instant) -> Vec<(JobKey, Identity)> {
        let mut forgotten = Vec::new();
        while let Some(key) = self.order.front().copied() {
            let entry = &self.jobs[&key]; // `order` holds the keys of `jobs`
            let too_old = now.saturating_duration_since(entry.ended) >= self.keep.age;
            if self.order.len() <= self.keep.jobs && self.bytes <= self.keep.bytes && !too_old {
                break;
            }
            self.bytes -= entry.cost();
            forgotten.push((key, entry.identity));
            self.jobs.remove(&key);
            self.order.pop_front();
        }
        forgotten
    }

    /// When the oldest one will be too old.
    pub fn next_deadline(&self) -> Option<Instant> {
        let oldest = self.jobs.get(self.order.front()?)?;
        oldest.ended.checked_add(self.keep.age)
    }

    /// How a job ended, if it did and is still known.
    pub fn get(&self, key: JobKey) -> Option<&Arc<Outcome>> {
        self.jobs.get(&key).map(|entry| &entry.outcome)
    }

    /// What a job looked like at its end, if it is still known.
    pub fn snapshot(&self, key: JobKey) -> Option<JobSnapshot> {
        self.jobs.get(&key).map(Entry::snapshot)
    }

    /// Those whose outcome is taken, the latest end first, without their partitions.
    pub fn latest(&self, takes: impl Fn(&Outcome) -> bool) -> impl Iterator<Item = JobSnapshot> {
        let taken = self.order.iter().rev().map(|key| &self.jobs[key]); // `order` holds the keys of `jobs`
        taken.filter(move |entry| takes(&entry.outcome)).map(Entry::summary)
    }

    /// Jobs kept.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Bytes kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Entry {
    fn cost(&self) -> u64 {
        let devices: usize = self.outcome.devices.iter().map(String::len).sum();
        let last = self.last.as_ref().map_or(0, |last| last.bytes());
        ENTRY_BYTES + last + (self.outcome.proof.len() + self.outcome.error.len() + devices) as u64
    }

    fn snapshot(&self) -> JobSnapshot {
        let partitions = self.last.as_ref().map(|last| last.partitions.clone()).unwrap_or_default();
        JobSnapshot { partitions, ..self.summary() }
    }

    /// All but the partitions.
    fn summary(&self) -> JobSnapshot {
        let known = JobSnapshot::of_outcome(&self.outcome, self.ended);
        let Some(last) = &self.last else { return known };
        JobSnapshot {
            label: last.label.clone(),
            circuit: last.circuit,
            subject: last.subject,
            priority: last.priority,
            accepted: last.accepted,
            started: last.started,
            counts: last.counts,
            phases: last.phases.clone(),
            ..known
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use cuzk_synth::circuit::CircuitKind;

    use super::*;
    use crate::core::job::{JobStatus, JobTimings};

    fn finished(jobs: usize, bytes: u64) -> Finished {
        Finished::new(Retention { jobs, bytes, age: Duration::from_secs(100) })
    }

    fn insert(finished: &mut Finished, n: u64, proof: usize, now: Instant) {
        let outcome = Outcome {
            key: JobKey(n),
            kind: CircuitKind::Porep,
            status: JobStatus::Completed,
            proof: Bytes::from(vec![0; proof]),
            error: String::new(),
            timings: JobTimings::default(),
            devices: Vec::new(),
        };
        finished.insert(Identity { request: None, payload: [0; 32] }, Arc::new(outcome), None, now);
    }

    fn forgotten(finished: &mut Finished, now: Instant) -> Vec<u64> {
        finished.prune(now).into_iter().map(|(key, _)| key.0).collect()
    }

    #[test]
    fn bounded_by_number() {
        let (now, mut f) = (Instant::now(), finished(2, u64::MAX));
        (1..=4).for_each(|n| insert(&mut f, n, 192, now));
        assert_eq!(forgotten(&mut f, now), [1, 2]);
        assert!(f.get(JobKey(2)).is_none() && f.get(JobKey(3)).is_some());
        assert_eq!(f.bytes(), 2 * (ENTRY_BYTES + 192));
    }

    #[test]
    fn bounded_by_bytes() {
        let (now, mut f) = (Instant::now(), finished(100, 2 * ENTRY_BYTES + 1000));
        insert(&mut f, 1, 900, now);
        insert(&mut f, 2, 90, now);
        assert!(forgotten(&mut f, now).is_empty());
        insert(&mut f, 3, 90, now);
        assert_eq!(forgotten(&mut f, now), [1]);
    }

    #[test]
    fn bounded_by_age() {
        let (now, mut f) = (Instant::now(), finished(100, u64::MAX));
        insert(&mut f, 1, 0, now);
        insert(&mut f, 2, 0, now + Duration::from_secs(50));
        assert_eq!(f.next_deadline(), Some(now + Duration::from_secs(100)));
        assert!(forgotten(&mut f, now + Duration::from_secs(99)).is_empty());
        assert_eq!(forgotten(&mut f, now + Duration::from_secs(100)), [1]);
        assert_eq!(forgotten(&mut f, now + Duration::from_secs(500)), [2]);
        assert_eq!((f.count(), f.bytes(), f.next_deadline()), (0, 0, None));
    }
}
