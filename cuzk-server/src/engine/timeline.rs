//! What the workers of the devices did lately: phase after phase, bounded by number and age, for people who look at it.
//!
//! Pure: told what begins and ends, and when. What was done meanwhile is what each attempt tells of itself.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{core::ledger::Run, proving::Attempt};

/// Intervals of one device that are kept: some minutes of 32 GiB partitions, about 64 bytes each.
const KEPT: usize = 4096;
/// For how long they are kept.
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);
/// What takes less is not kept: it could not be seen.
const LEAST: Duration = Duration::from_millis(1);
/// What a worker is at before its attempt says more.
const BEGIN: &str = "begin";

/// One phase of one partition in a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) device: usize,
    pub(super) worker: usize,
    pub(super) run: Run,
    pub(super) phase: &'static str,
    pub(super) from: Instant,
    /// `None` while it goes on.
    pub(super) to: Option<Instant>,
}

/// The intervals of all devices.
#[derive(Debug)]
pub(super) struct Timeline {
    devices: Vec<Lanes>,
    /// The number of the next interval that ends.
    next: u64,
}

#[derive(Debug, Default)]
struct Lanes {
    /// By number, oldest first.
    past: VecDeque<(u64, Interval)>,
    /// By worker.
    present: Vec<Option<Work>>,
}

/// A partition in a worker.
#[derive(Debug)]
struct Work {
    run: Run,
    attempt: Arc<Attempt>,
    since: Instant,
}

impl Timeline {
    /// Nothing done yet.
    pub(super) fn new(devices: usize) -> Self {
        Self { devices: (0..devices).map(|_| Lanes::default()).collect(), next: 0 }
    }

    /// A worker takes a partition.
    pub(super) fn begin(&mut self, device: usize, worker: usize, run: Run, attempt: Arc<Attempt>, now: Instant) {
        let present = &mut self.devices[device].present;
        if present.len() <= worker {
            present.resize_with(worker + 1, || None);
        }
        present[worker] = Some(Work { run, attempt, since: now });
    }

    /// A worker is done with its partition.
    pub(super) fn end(&mut self, device: usize, worker: usize, now: Instant) {
        let lanes = &mut self.devices[device];
        let Some(work) = lanes.present.get_mut(worker).and_then(Option::take) else { return };
        for mut interval in work.intervals(device, worker) {
            let to = *interval.to.get_or_insert(now);
            if to.saturating_duration_since(interval.from) >= LEAST {
                lanes.past.push_back((self.next, interval));
                self.next += 1;
            }
        }
        let is_old = |interval: &Interval| interval.to.is_some_and(|to| now.saturating_duration_since(to) > KEPT_FOR);
        while lanes.past.len() > KEPT || lanes.past.front().is_some_and(|(_, interval)| is_old(interval)) {
            lanes.past.pop_front();
        }
    }

    /// What to ask [`Self::past`] with the next time.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Intervals that ended, from this number on.
    pub(super) fn past(&self, since: u64) -> Vec<Interval> {
        let of = |lanes: &'_ Lanes| {
            let from = lanes.past.partition_point(|(number, _)| *number < since);
            lanes.past.range(from..).map(|(_, interval)| *interval).collect::<Vec<_>>()
        };
        self.devices.iter().flat_map(of).collect()
    }

    /// The intervals, up to now, of the partitions that are in a worker.
    pub(super) fn present(&self) -> Vec<Interval> {
        let mut intervals = Vec::new();
        for (device, lanes) in self.devices.iter().enumerate() {
            for (worker, work) in lanes.present.iter().enumerate() {
                intervals.extend(work.iter().flat_map(|work| work.intervals(device, worker)));
            }
        }
        intervals
    }
}

impl Work {
    /// The last one goes on.
    fn intervals(&self, device: usize, worker: usize) -> Vec<Interval> {
        let mut phases = vec![(BEGIN, self.since)];
        phases.extend(self.attempt.progress().phases());
        let ends = phases.iter().skip(1).map(|(_, since)| Some(*since)).chain([None]);
        let interval = |((phase, from), to): (&(&'static str, Instant), Option<Instant>)| Interval {
            device,
            worker,
            run: self.run,
            phase,
            from: *from,
            to,
        };
        phases.iter().zip(ends).map(interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::job::JobKey;

    fn run(job: u64) -> Run {
        Run { job: JobKey(job), partition: 0, attempt: 0 }
    }

    /// A partition that takes a second and says nothing of itself.
    fn work(timeline: &mut Timeline, worker: usize, job: u64, now: Instant) -> Instant {
        timeline.begin(1, worker, run(job), Arc::new(Attempt::new(false)), now);
        let end = now + Duration::from_secs(1);
        timeline.end(1, worker, end);
        end
    }

    #[test]
    fn phases_follow_one_another_and_are_told_once() {
        let mut timeline = Timeline::new(2);
        let begin = Instant::now();
        let attempt = Arc::new(Attempt::new(false));
        timeline.begin(0, 1, run(7), attempt.clone(), begin);
        assert_eq!(timeline.present().iter().map(|i| (i.phase, i.to)).collect::<Vec<_>>(), [(BEGIN, None)]);
        attempt.progress().enter("lock_hold");
        let present = timeline.present();
        assert_eq!((present[0].to, present[1].phase, present[1].to), (Some(present[1].from), "lock_hold", None));
        assert_eq!((present[1].device, present[1].worker, present[1].run), (0, 1, run(7)));

        let end = begin + Duration::from_secs(9);
        timeline.end(0, 1, end);
        assert_eq!(timeline.present(), []);
        let past = timeline.past(0);
        let last = past.last().expect("it took seconds");
        assert_eq!((last.phase, last.to, timeline.next()), ("lock_hold", Some(end), past.len() as u64));
        assert_eq!(timeline.past(timeline.next()), []);
        timeline.end(0, 1, end);
        timeline.end(1, 5, end);
        assert_eq!(timeline.past(timeline.next()), [], "nobody was at work there");
        let next = timeline.next();
        work(&mut timeline, 0, 8, end);
        assert_eq!(timeline.past(next).iter().map(|i| i.run).collect::<Vec<_>>(), [run(8)]);
    }

    #[test]
    fn what_cannot_be_seen_is_not_kept() {
        let mut timeline = Timeline::new(1);
        let now = Instant::now();
        timeline.begin(0, 0, run(1), Arc::new(Attempt::new(false)), now);
        timeline.end(0, 0, now + LEAST / 2);
        assert_eq!((timeline.past(0), timeline.next()), (Vec::new(), 0));
    }

    #[test]
    fn number_and_age_are_bounded() {
        let mut timeline = Timeline::new(2);
        let mut now = Instant::now();
        for job in 0..10 {
            now = work(&mut timeline, 0, job, now);
        }
        now = work(&mut timeline, 0, 10, now + KEPT_FOR);
        assert_eq!(timeline.past(0).len(), 1, "the others are too old");
        for job in 0..KEPT as u64 + 3 {
            timeline.begin(1, 0, run(job), Arc::new(Attempt::new(false)), now);
            timeline.end(1, 0, now + LEAST);
        }
        assert_eq!(timeline.past(0).len(), KEPT);
    }
}
