//! How long a job lives: who waits for it, what stops it, and its end.

use std::{cmp::Reverse, sync::Arc, time::Instant};

use bytes::Bytes;

use super::{
    Core, Effect,
    job::{JobKey, JobStatus, Outcome, Priority, Stage},
    ledger::Run,
};

/// The most characters of an error text that a client gets.
const ERROR_CHARS: usize = 1000;

impl Core {
    /// A client begins to wait for a job. `false`: there is no such unfinished job.
    pub fn handle_waiter_came(&mut self, key: JobKey) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else {
            return false;
        };
        job.waiters += 1;
        job.abandon_at = None;
        true
    }

    /// A client waits no longer: it got its answer, or it has gone.
    pub fn handle_waiter_gone(&mut self, key: JobKey, now: Instant) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.waiters = job.waiters.saturating_sub(1);
        if job.waiters == 0 && !job.runs_unattended() {
            job.abandon_at = now.checked_add(self.limits.abandon_grace);
        }
    }

    /// Stops a job. `Some(true)`: it was unfinished; `Some(false)`: it had ended before; `None`: it is not known.
    pub fn cancel(&mut self, key: JobKey, reason: &str, now: Instant) -> Option<bool> {
        if self.jobs.contains_key(&key) {
            self.end(key, JobStatus::Cancelled, Bytes::new(), reason.to_owned(), now);
            Some(true)
        } else {
            self.finished.get(key).map(|_| false)
        }
    }

    /// Stops every unfinished job.
    pub fn cancel_all(&mut self, reason: &str, now: Instant) {
        let mut keys: Vec<JobKey> = self.jobs.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.cancel(key, reason, now);
        }
    }

    /// Ends a job as failed before anything was done for it.
    pub fn give_up(&mut self, key: JobKey, reason: String, now: Instant) {
        self.fail(key, reason, now);
    }

    /// From now on no new jobs.
    pub fn begin_drain(&mut self) {
        self.draining = true;
    }

    /// Does what is due by now: abandoned jobs end, waiting ones rise, stalled attempts are given up, sick devices
    /// are to be revived, old results go.
    /// `true`: there may be work now that there was not before.
    pub fn handle_time(&mut self, now: Instant) -> bool {
        // First, for what is given up waits again, and waiting lifts a job.
        self.give_up_stalled(now);
        let mut due: Vec<(JobKey, Due)> = Vec::new();
        for (key, job) in &self.jobs {
            if job.abandon_at.is_some_and(|at| at <= now) {
                due.push((*key, Due::Abandon));
            } else if self.promotion_at(*key).is_some_and(|at| at <= now) {
                due.push((*key, Due::Promote));
            }
        }
        due.sort_unstable();
        for (key, what) in due {
            match what {
                Due::Abandon if self.jobs[&key].superseded_by.is_some() => self.end_superseded(key, now),
                Due::Abandon => {
                    let reason = "abandoned: the client that waited for it has gone, and nobody came back";
                    self.cancel(key, reason, now);
                }
                Due::Promote => self.promote(key, now),
            }
        }
        let order_changed = self.note_overdue(now);
        self.give_up_unserved(now);
        self.revive_due(now);
        self.forget_old(now);
        order_changed
    }

    /// When [`Self::handle_time`] has something to do next, if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        let abandoned = self.jobs.values().filter_map(|job| job.abandon_at);
        let promoted = self.jobs.keys().filter_map(|key| self.promotion_at(*key));
        let others = [
            self.next_stall(),
            self.next_unserved(),
            self.next_revival(),
            self.next_overdue(),
            self.finished.next_deadline(),
        ];
        abandoned.chain(promoted).chain(others.into_iter().flatten()).min()
    }

    /// Ends a job as failed.
    pub(super) fn fail(&mut self, key: JobKey, reason: String, now: Instant) {
        self.end(key, JobStatus::Failed, Bytes::new(), reason, now);
    }

    /// Ends a job whose request id another job has taken over.
    pub(super) fn end_superseded(&mut self, key: JobKey, now: Instant) {
        let reason = "superseded: the same request id was submitted with another payload";
        self.cancel(key, reason, now);
    }

    /// Ends an unfinished job: the one place where jobs leave the table.
    pub(super) fn end(&mut self, key: JobKey, status: JobStatus, proof: Bytes, error: String, now: Instant) {
        let last = self.last_snapshot(key, status, now);
        let Some(mut job) = self.jobs.remove(&key) else { return };
        self.order.remove(&(Reverse(job.priority), key));
        // Threads that work for it report in vain, and only then is their memory free. The rest is free now.
        for (partition, state) in job.partitions.iter().enumerate() {
            if state.stage == Stage::Ready {
                let run = Run { job: key, partition, attempt: state.attempt };
                self.ledger.release(run);
                self.effects.push(Effect::Discard(run));
            }
        }
        job.timings.total = now.saturating_duration_since(job.accepted);
        if job.started.is_none() {
            job.timings.queue_wait = job.timings.total;
        }
        let outcome = Arc::new(Outcome {
            key,
            kind: job.kind(),
            status,
            proof,
            error: cut(error),
            timings: job.timings,
            devices: job.devices.iter().map(|d| self.devices[*d].spec.id.clone()).collect(),
        });
        self.metrics.finished(job.circuit, job.priority, status, &job.timings);
        self.finished.insert(job.identity, outcome.clone(), last, now);
        self.effects.push(Effect::Ended { outcome, label: job.label });
        self.drop_params_if_free(job.circuit);
        self.forget_old(now);
    }

    /// Waiting lifts a job as long as any of its partitions waits.
    fn promotion_at(&self, key: JobKey) -> Option<Instant> {
        let job = self.jobs.get(&key)?;
        job.priority.promoted()?;
        job.first_at(Stage::Waiting).or_else(|| job.first_at(Stage::Ready))?;
        job.waiting_since.checked_add(self.limits.promote_after)
    }

    fn promote(&mut self, key: JobKey, now: Instant) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.waiting_since = now;
        if let Some(priority) = Priority::promoted(job.priority) {
            self.set_priority(key, priority);
        }
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        let forgotten = self.finished.prune(now);
        for (key, identity) in &forgotten {
            // The identity may belong to a later attempt by now.
            if self.by_identity.get(identity) == Some(key) {
                self.by_identity.remove(identity);
            }
        }
        if !forgotten.is_empty() {
            self.effects.push(Effect::Forgotten(forgotten.into_iter().map(|(key, _)| key).collect()));
        }
    }
}

/// What time brings to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Abandon,
    Promote,
}

fn cut(error: String) -> String {
    match error.char_indices().nth(ERROR_CHARS) {
        Some((at, _)) => format!("{}…", &error[..at]),
        None => error,
    }
}
