//! What went wrong lately: a bounded ring, for people who look after the fact.

use std::{collections::VecDeque, time::Instant};

use crate::core::{Core, Effect, job::JobKey, job::JobStatus};

/// So many are remembered.
const KEPT: usize = 64;

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) at: Instant,
    /// Which job it concerns, if one.
    pub(super) job: Option<JobKey>,
    /// The index of the device it concerns, if one.
    pub(super) device: Option<usize>,
    /// What happened, in a line.
    pub(super) text: String,
}

/// The latest of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct Incidents(VecDeque<Noted>);

impl Incidents {
    /// Notes what an effect tells, if that is a failure.
    pub(super) fn note(&mut self, effect: &Effect, core: &Core, now: Instant) {
        let (job, device, text) = match effect {
            Effect::Ended { outcome, .. } if outcome.status == JobStatus::Failed => {
                (Some(outcome.key), None, format!("job failed: {}", outcome.error))
            }
            Effect::Retried { job, partition, place, reason } => {
                let what = partition.map_or("all partitions".to_owned(), |n| format!("partition {n}"));
                (Some(*job), None, format!("{what} failed at {place}, trying again: {reason}"))
            }
            Effect::Stalled { run, place, age } => {
                let (place, age) = (core.place(*place), age.as_secs());
                (Some(run.job), None, format!("partition {}: {place} has not answered for {age} s", run.partition))
            }
            Effect::Fenced { device, reason } => (None, Some(*device), format!("the device gets no work: {reason}")),
            Effect::Revived { device, out_for } => {
                (None, Some(*device), format!("the device gets work again, after {} s", out_for.as_secs()))
            }
            _ => return,
        };
        self.push(Noted { at: now, job, device, text });
    }

    /// Notes that parameters could not be loaded, or something else that is no effect of the core's.
    pub(super) fn push(&mut self, noted: Noted) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(noted);
    }

    /// The latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Noted> {
        self.0.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_and_forgets_the_oldest() {
        let mut incidents = Incidents::default();
        for n in 0..KEPT + 3 {
            incidents.push(Noted { at: Instant::now(), job: None, device: Some(n), text: String::new() });
        }
        assert_eq!(incidents.iter().count(), KEPT);
        assert_eq!(incidents.iter().next().and_then(|i| i.device), Some(KEPT + 2));
        assert_eq!(incidents.iter().last().and_then(|i| i.device), Some(3));
    }
}
