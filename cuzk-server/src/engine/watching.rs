//! Looking at an engine, once or over and over.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    Engine, EngineError, Lifecycle, panics,
    shared::{Shared, State},
    timeline::Interval,
    view::{DeviceView, EngineView, JobView, Lens, MemoryView, PartitionTimesView, Phases, TimelineView, WorkerView},
    waiter::OutcomeReceiver,
};
use crate::{
    core::{
        job::{JobKey, Outcome, Priority},
        ledger::Place,
        view::{JobFilter, JobState},
    },
    memory::Use,
    proving::Proving,
};

/// The time between two pictures for one watcher, at least.
pub const PICTURE_EVERY: Duration = Duration::from_millis(100);
/// The time between two pictures for one watcher, at most, so that ages and free memory go on.
pub const PICTURE_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

impl<P: Proving> Engine<P> {
    /// The jobs that a filter takes, without their partitions: unfinished ones most urgent first, then ended ones that
    /// are still kept, the latest end first. Cost: one pass over them, under the engine's lock.
    pub fn jobs(&self, filter: &JobFilter) -> Vec<JobView> {
        let shared = &self.handle.shared;
        let jobs = shared.read(|state, now| state.core.list(filter, now));
        let lens = shared.lens();
        jobs.into_iter().map(|job| lens.job(job, &Phases::new())).collect()
    }

    /// One job with its partitions, unfinished or ended and still kept.
    pub fn job(&self, job_id: &str) -> Result<JobView, EngineError> {
        let shared = &self.handle.shared;
        let key = shared.ids.parse(job_id).ok_or_else(|| EngineError::unknown_job(job_id))?;
        shared.job_view(key).ok_or_else(|| EngineError::unknown_job(job_id))
    }

    /// The whole picture, but for the jobs.
    pub fn view(&self) -> EngineView {
        let shared = &self.handle.shared;
        let revision = *shared.revision.subscribe().borrow();
        let status = self.status();
        let (devices, loading, incidents, waiting) = shared.read(|state, _| {
            let lens = shared.lens();
            let loading: Vec<_> = state.loads.iter().map(|(circuit, load)| (*circuit, load.percent())).collect();
            let incidents = state.incidents.iter().map(|noted| lens.incident(noted)).collect();
            let waiting = Priority::ALL.map(|priority| (priority, state.core.waiting(priority)));
            (device_views(state, &lens), loading, incidents, waiting)
        });
        EngineView {
            status,
            devices,
            loading,
            memory: MemoryView {
                shares: shared.budget.shares(),
                used: Use::ALL.map(|what| (what, shared.budget.used_for(what))),
            },
            store: shared.keeper.as_ref().map(|keeper| keeper.status()),
            incidents,
            waiting,
            revision,
        }
    }

    /// What the workers of the devices did: the phases that ended since another look, of which `since` is the `next`, or
    /// with 0 all that are kept, some minutes' worth; and what is under way.
    pub fn timeline(&self, since: u64) -> TimelineView {
        let shared = &self.handle.shared;
        let (next, past, present) = shared.read(|state, _| {
            let timeline = &state.timeline;
            (timeline.next(), timeline.past(since), timeline.present())
        });
        let lens = shared.lens();
        let show = |intervals: Vec<Interval>| intervals.iter().map(|interval| lens.interval(interval)).collect();
        TimelineView { next, past: show(past), present: show(present) }
    }

    /// When the phases of the last partitions ran that were proven, of those with this number and later ones.
    pub fn partition_times(&self, from: u64) -> Vec<PartitionTimesView> {
        let shared = &self.handle.shared;
        let lens = shared.lens();
        let told = panics::caught("partition_times", || shared.proving.partition_times(from));
        told.unwrap_or_default().into_iter().filter_map(|times| lens.times(times)).collect()
    }

    /// Follows a number that rises with every change that could be seen: a job, a partition, a phase, a device, a load.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.handle.shared.revision.subscribe()
    }

    /// How many follow the changes at this moment.
    pub fn watchers(&self) -> usize {
        self.handle.shared.revision.followers()
    }

    /// Follows one job: a picture at once, then one after changes, and the last one when it has ended.
    pub fn watch_job(&self, job_id: &str) -> Result<JobWatch<P>, EngineError> {
        let shared = self.handle.shared.clone();
        let key = shared.ids.parse(job_id).ok_or_else(|| EngineError::unknown_job(job_id))?;
        let pace = Pace::new(shared.revision.subscribe());
        let outcome = shared.read(|state, _| state.live.get(&key).map(|live| live.outcome.subscribe()));
        let first = shared.job_view(key).ok_or_else(|| EngineError::unknown_job(job_id))?;
        Ok(JobWatch { shared, key, pace, outcome, last: first, told_end: false })
    }

    /// Follows the whole engine, until it has drained.
    pub fn watch(&self) -> EngineWatch<P> {
        EngineWatch { pace: Pace::new(self.changes()), engine: self.clone(), ended: false }
    }
}

/// One watcher of a job. Costs nothing between two calls, and a few microseconds under the engine's lock in each.
pub struct JobWatch<P: Proving> {
    shared: Arc<Shared<P>>,
    key: JobKey,
    pace: Pace,
    /// In case the end is forgotten before it is seen.
    outcome: Option<OutcomeReceiver>,
    last: JobView,
    told_end: bool,
}

impl<P: Proving> JobWatch<P> {
    /// The next picture, at most one in [`PICTURE_EVERY`]; `None` after the one that shows the end.
    pub async fn next(&mut self) -> Option<JobView> {
        if self.told_end {
            return None;
        }
        loop {
            let first = self.pace.wait().await;
            let view = match self.shared.job_view(self.key) {
                Some(view) => view,
                None => self.forgotten(),
            };
            self.told_end = view.state.is_ended();
            // Not every change is one of this job's.
            if first || self.told_end || self.pace.is_heartbeat() || !same_but_for_time(&view, &self.last) {
                self.last = view.clone();
                return Some(view);
            }
        }
    }

    /// The last picture of a job that is not kept any more.
    fn forgotten(&self) -> JobView {
        let outcome = self.outcome.as_ref().and_then(|outcome| outcome.borrow().clone());
        ended_as(self.last.clone(), outcome.as_deref())
    }
}

/// One watcher of the engine.
pub struct EngineWatch<P: Proving> {
    engine: Engine<P>,
    pace: Pace,
    ended: bool,
}

impl<P: Proving> EngineWatch<P> {
    /// The next picture, at most one in [`PICTURE_EVERY`]; `None` after the one that shows that all is drained.
    pub async fn next(&mut self) -> Option<EngineView> {
        if self.ended {
            return None;
        }
        self.pace.wait().await;
        let view = self.engine.view();
        let unfinished: u32 = view.status.queues.iter().map(|(_, waiting, running)| waiting + running).sum();
        self.ended = view.status.lifecycle == Lifecycle::Draining && unfinished == 0;
        Some(view)
    }
}

/// When a watcher looks again.
struct Pace {
    changes: watch::Receiver<u64>,
    looked: Option<tokio::time::Instant>,
    heartbeat: bool,
}

impl Pace {
    fn new(changes: watch::Receiver<u64>) -> Self {
        Self { changes, looked: None, heartbeat: false }
    }

    /// Returns when it is time. `true`: for the first time.
    async fn wait(&mut self) -> bool {
        let first = self.looked.is_none();
        if let Some(looked) = self.looked {
            tokio::time::sleep_until(looked + PICTURE_EVERY).await;
            let changed = tokio::time::timeout_at(looked + PICTURE_AT_LEAST_EVERY, self.changes.changed());
            self.heartbeat = changed.await.is_err();
        }
        self.changes.borrow_and_update();
        self.looked = Some(tokio::time::Instant::now());
        first
    }

    /// Whether the latest look was due because nothing happened for long.
    fn is_heartbeat(&self) -> bool {
        self.heartbeat
    }
}

impl<P: Proving> Shared<P> {
    /// Turns what the core says at a moment into what people read.
    pub(super) fn lens(&self) -> Lens<'_> {
        Lens { ids: &self.ids, device_ids: &self.device_ids, then: self.started_at, wall: self.started_wall }
    }

    fn job_view(&self, key: JobKey) -> Option<JobView> {
        let (job, phases) = self.read(|state, now| {
            let job = state.core.snapshot(key, now)?;
            let of_job = state.running.iter().filter(|(run, _)| run.job == key);
            let phases: Phases =
                of_job.filter_map(|(run, attempt)| Some((*run, attempt.progress().phase()?))).collect();
            Some((job, phases))
        })?;
        Some(self.lens().job(job, &phases))
    }
}

fn device_views<P: Proving>(state: &State<P>, lens: &Lens<'_>) -> Vec<DeviceView> {
    let mut views: Vec<DeviceView> = state
        .core
        .devices()
        .enumerate()
        .map(|(n, spec)| DeviceView {
            id: spec.id.clone(),
            workers: spec.workers as u32,
            busy: Vec::new(),
            fence: state.core.fence_of(n).map(|fence| (lens.time(fence.since), fence.reason.clone())),
        })
        .collect();
    for (run, slot) in state.core.ledger().iter() {
        if let Place::Device(device) = slot.place {
            // Until the worker says what it is at, it takes the partition over.
            let phase = state.running.get(&run).and_then(|attempt| attempt.progress().phase());
            let (phase, since) = phase.unwrap_or(("begin", slot.since));
            views[device].busy.push(lens.worker(run, phase, since));
        }
    }
    for view in &mut views {
        view.busy.sort_by_key(|worker: &WorkerView| worker.since);
    }
    views
}

/// A picture of a job as of its end.
fn ended_as(mut view: JobView, outcome: Option<&Outcome>) -> JobView {
    let Some(outcome) = outcome else {
        // Not seen unfinished either: it was forgotten between two looks at an ended job.
        return view;
    };
    view.state = JobState::Ended(outcome.status);
    view.timings = outcome.timings;
    view.error.clone_from(&outcome.error);
    view.devices.clone_from(&outcome.devices);
    view.queue_position = None;
    view.ended = view.accepted.and_then(|at| at.checked_add(outcome.timings.total));
    view
}

fn same_but_for_time(a: &JobView, b: &JobView) -> bool {
    let seen = |v: &JobView| (v.state, v.priority, v.queue_position, v.counts, v.started.is_some());
    let part = |v: &JobView| v.partitions.iter().map(|p| (p.stage, p.phase, p.attempt)).collect::<Vec<_>>();
    seen(a) == seen(b) && part(a) == part(b)
}
