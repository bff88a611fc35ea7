//! The one lock around the core, what belongs to the core's jobs beside it, and the carrying out of its effects.

mod effects;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant, SystemTime},
};

use cuzk_synth::circuit::{CircuitId, CircuitKind};
use tokio::sync::{oneshot, watch};

use super::{
    Lifecycle, facts::Facts, ids::JobIds, incidents::Incidents, keep::Keeper, revision::Revision, unix_millis,
    verification::Made, waiter::Waiter,
};
use crate::{
    config::EngineConfig,
    core::{
        Core, Interest, Limits, Ticket,
        devices::DeviceSpec,
        finished::Retention,
        job::{JobKey, Outcome},
        ledger::Run,
    },
    memory::Budget,
    proving::{Attempt, DeviceInfo, Load, Proving},
};

/// What all threads of an engine share.
pub(super) struct Shared<P: Proving> {
    pub(super) proving: Arc<P>,
    pub(super) ids: JobIds,
    /// Where jobs are kept through a crash, if they are.
    pub(super) keeper: Option<Keeper>,
    pub(super) started_at: Instant,
    /// The wall clock at that time.
    pub(super) started_wall: SystemTime,
    pub(super) lifecycle: watch::Sender<Lifecycle>,
    /// The number of unfinished jobs.
    pub(super) unfinished: watch::Sender<usize>,
    /// What those who watch follow.
    pub(super) revision: Revision,
    /// Device ids by index, fixed at the start.
    pub(super) device_ids: Vec<String>,
    state: Mutex<State<P>>,
    /// Told after every change of the state.
    changed: Condvar,
    pub(super) budget: Budget,
    /// To the thread that frees large things.
    chores: mpsc::Sender<Chore>,
    /// Under a lock of its own: it is replaced while the state is busy.
    facts: Mutex<Facts>,
}

/// The core, and what its decisions are about.
pub(super) struct State<P: Proving> {
    pub(super) core: Core,
    /// One entry for each unfinished job of the core.
    pub(super) live: HashMap<JobKey, Live<P>>,
    /// The parameters that the core calls loaded.
    pub(super) params: HashMap<CircuitId, Arc<P::Params>>,
    /// The partitions that the core calls ready.
    pub(super) handover: HashMap<Run, P::Assignment>,
    /// Proofs to be verified, the first made first.
    pub(super) made: VecDeque<Made<P>>,
    /// The attempts that somebody works at.
    pub(super) running: HashMap<Run, Arc<Attempt>>,
    /// Loads under way.
    pub(super) loads: HashMap<CircuitId, Arc<Load>>,
    /// Who asked for parameters ahead of any job.
    pub(super) preloads: HashMap<CircuitId, Vec<oneshot::Sender<Result<Duration, String>>>>,
    /// What went wrong lately.
    pub(super) incidents: Incidents,
    /// Jobs that end from now on end for this life only: the store keeps them as unfinished.
    pub(super) suspending: bool,
    /// Threads end when they see it.
    stopping: bool,
}

/// An unfinished job's task and where its outcome goes.
pub(super) struct Live<P: Proving> {
    pub(super) kind: CircuitKind,
    /// `None` as long as the request of a job of an earlier life is not read back; the core holds it then.
    pub(super) task: Option<Arc<P::Task>>,
    /// Whether the store has it: what becomes of it is told to the store then.
    pub(super) kept: bool,
    pub(super) outcome: watch::Sender<Option<Arc<Outcome>>>,
    /// Retries that were logged at warn.
    retries_logged: u32,
}

/// Something for the thread that frees large things.
pub(super) type Chore = Box<dyn FnOnce() + Send>;

/// Retries of one job that are logged at warn; the others at debug.
const LOUD_RETRIES: u32 = 2;

impl<P: Proving> Shared<P> {
    /// The second is what the freeing thread is to do.
    pub(super) fn new(
        config: &EngineConfig,
        proving: Arc<P>,
        ids: Option<JobIds>,
        keeper: Option<Keeper>,
    ) -> (Self, mpsc::Receiver<Chore>) {
        let budget = Budget::new(config.memory);
        proving.use_budget(&budget);
        let facts = Facts::gather(&*proving).unwrap_or_default();
        let specs: Vec<DeviceSpec> = facts.devices.iter().map(|info| spec(info, config)).collect();
        let device_ids: Vec<String> = specs.iter().map(|spec| spec.id.clone()).collect();
        let limits = Limits {
            queued_jobs: config.max_queued_jobs,
            synthesis_workers: config.synthesis_threads.max(1),
            lookahead: config.lookahead,
            attempts: config.attempts.max(1),
            group_delay: config.group_delay,
            retention: Retention {
                jobs: config.retain_finished,
                bytes: config.retain_finished_bytes,
                age: config.retain_finished_for,
            },
            abandon_grace: config.abandon_grace,
            promote_after: config.promote_after,
            stage_limit: config.stage_limit,
        };
        let state = State {
            core: Core::new(limits, budget.clone(), specs),
            live: HashMap::new(),
            params: HashMap::new(),
            handover: HashMap::new(),
            made: VecDeque::new(),
            running: HashMap::new(),
            loads: HashMap::new(),
            preloads: HashMap::new(),
            incidents: Incidents::default(),
            suspending: false,
            stopping: false,
        };
        let (chores, to_do) = mpsc::channel();
        let shared = Self {
            proving,
            budget,
            chores,
            ids: ids.unwrap_or_else(|| JobIds::new(unix_millis(), rand::random())),
            keeper,
            started_at: Instant::now(),
            started_wall: SystemTime::now(),
            lifecycle: watch::Sender::new(Lifecycle::Serving),
            unfinished: watch::Sender::new(0),
            revision: Revision::new(),
            device_ids,
            state: Mutex::new(state),
            changed: Condvar::new(),
            facts: Mutex::new(facts),
        };
        (shared, to_do)
    }

    /// Changes the state, carries out the effects, and tells everyone.
    pub(super) fn with<R>(self: &Arc<Self>, change: impl FnOnce(&mut State<P>, Instant) -> R) -> R {
        let (result, after) = {
            let mut state = self.lock();
            let result = change(&mut state, Instant::now());
            (result, self.apply_effects(&mut state))
        };
        self.changed.notify_all();
        self.revision.bump();
        self.finish(after);
        result
    }

    /// Looks at the state. Nobody is told, for nothing changes.
    pub(super) fn read<R>(&self, look: impl FnOnce(&State<P>, Instant) -> R) -> R {
        look(&self.lock(), Instant::now())
    }

    /// Asks for work until there is some; `None` when the engine stops.
    pub(super) fn next_work<R>(
        self: &Arc<Self>,
        mut poll: impl FnMut(&mut State<P>, Instant) -> Option<R>,
    ) -> Option<R> {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return None;
            }
            let work = poll(&mut state, Instant::now());
            let after = self.apply_effects(&mut state);
            if work.is_none() && after.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            self.revision.bump();
            self.finish(after);
            if work.is_some() {
                return work;
            }
            state = self.lock();
        }
    }

    /// Waits until the store has a job, or cannot take it. `false`: it ended meanwhile.
    pub(super) fn wait_kept(&self, key: JobKey) -> bool {
        let mut state = self.lock();
        // One of an earlier life is kept, though held until its request is read back.
        while state.core.is_held(key) && state.live.get(&key).is_some_and(|live| !live.kept) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.core.is_unfinished(key)
    }

    /// Lets the core do what time brings, until the engine stops.
    pub(super) fn keep_house(self: &Arc<Self>) {
        let mut state = self.lock();
        while !state.stopping {
            let now = Instant::now();
            if state.core.handle_time(now) {
                self.changed.notify_all();
            }
            let after = self.apply_effects(&mut state);
            if !after.is_empty() {
                drop(state);
                self.changed.notify_all();
                self.revision.bump();
                self.finish(after);
                state = self.lock();
                continue;
            }
            state = match state.core.next_deadline() {
                Some(at) => {
                    let wait = at.saturating_duration_since(now);
                    let woken = self.changed.wait_timeout(state, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Cancels every job and lets the threads end.
    pub(super) fn stop(self: &Arc<Self>) {
        self.stop_jobs("the daemon has stopped");
        self.with(|state, _| state.stopping = true);
    }

    /// Takes no jobs any more, and ends all there are: for this life only, if a store keeps them.
    pub(super) fn stop_jobs(self: &Arc<Self>, why: &str) {
        let remedy = match self.keeper {
            Some(_) => "it goes on after the next start, ask again then",
            None => "submit it again",
        };
        self.with(|state, now| {
            state.core.begin_drain();
            state.suspending = true;
            state.core.cancel_all(&format!("{why}: {remedy}"), now);
        });
    }

    /// The latest look at devices and files.
    pub(super) fn facts(&self) -> Facts {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_facts(&self, facts: Facts) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts;
        self.revision.bump();
    }

    /// The device's id, if there is only one.
    pub(super) fn only_device(&self) -> String {
        match self.device_ids.as_slice() {
            [only] => only.clone(),
            _ => String::new(),
        }
    }

    /// A panic under the lock would be a fault in the core; it must not stop every other job as well, and the core's
    /// tables are consistent between any two of its calls.
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Proving> State<P> {
    /// The waiter of a submission that the core has just given a ticket.
    pub(super) fn waiter(
        &self,
        shared: &Arc<Shared<P>>,
        ticket: &Ticket,
        kind: CircuitKind,
        interest: Interest,
    ) -> Waiter<P> {
        let live = self.live.get(&ticket.key);
        let counted = live.is_some() && interest == Interest::Waiting;
        let outcome = match live {
            Some(live) => live.outcome.subscribe(),
            None => watch::Sender::new(self.core.outcome(ticket.key)).subscribe(),
        };
        Waiter::new(shared, ticket.key, kind, outcome, counted)
    }
}

impl<P: Proving> Live<P> {
    pub(super) fn new(kind: CircuitKind, task: Option<P::Task>) -> Self {
        let task = task.map(Arc::new);
        Self { kind, task, kept: false, outcome: watch::Sender::new(None), retries_logged: 0 }
    }

    fn may_log_retry(&mut self) -> bool {
        self.retries_logged += 1;
        self.retries_logged <= LOUD_RETRIES
    }
}

/// A device as the configuration wants it to be used.
fn spec(info: &DeviceInfo, config: &EngineConfig) -> DeviceSpec {
    let named = |name: &String| *name == info.id || *name == info.ordinal.to_string();
    let circuits = config.affinity.iter().find(|(name, _)| named(name)).map(|(_, c)| c.iter().copied().collect());
    DeviceSpec {
        id: info.id.clone(),
        workers: info.workers.unwrap_or(config.gpu_workers_per_device).max(1),
        express: info.express,
        fallback: info.fallback,
        circuits,
    }
}
