//! The engine: a [`Core`](crate::core::Core) with threads, a clock and somebody who proves.
//!
//! * `shared`: the one lock, and the carrying out of the core's effects
//! * `workers`: the synthesis, prover and housekeeping threads
//! * `admission`: from a request to a job, on a blocking thread
//! * `waiter`: a client that waits
//! * `keep`: jobs that outlive the process, in a [`JobStore`]
//! * `ids`: job ids as clients see them
//! * [`view`], `watching`: what people see of it, once or over and over
//! * `incidents`: what went wrong lately
//! * `facts`: what the devices and files looked like a moment ago
//!
//! Proofs, parsing and loading never run under the lock, so every call here that is not documented to wait answers in
//! microseconds, whatever the devices do.

mod admission;
mod error;
mod facts;
mod ids;
mod incidents;
mod keep;
mod log;
mod panics;
mod revision;
mod shared;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verification;
pub mod view;
mod waiter;
mod watching;
mod workers;

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use cuzk_synth::circuit::CircuitId;
pub use error::EngineError;
pub use status::{DeviceStatus, EngineStatus};
use tokio::sync::{Semaphore, oneshot, watch};
pub use watching::{EngineWatch, JobWatch, PICTURE_AT_LEAST_EVERY, PICTURE_EVERY};

use crate::{
    config::EngineConfig,
    core::{
        Interest, TicketKind,
        job::{Outcome, Priority},
        params::{Evicted, ParamsState},
    },
    memory::{Budget, Use},
    metrics,
    proving::{ProofRequest, Proving},
    store::{JobStore, StoreError},
};
use keep::Keeper;
use shared::{Chore, Shared};
use status::ParamsFacts;
use waiter::Waiter;

/// A proving engine. Clones share one engine; when the last one is dropped, its jobs are cancelled and its threads end
/// after the partition they are at.
pub struct Engine<P: Proving> {
    handle: Arc<Handle<P>>,
}

impl<P: Proving> Clone for Engine<P> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

struct Handle<P: Proving> {
    shared: Arc<Shared<P>>,
    /// Requests being parsed, bounded by `admit_threads`.
    admissions: Arc<Semaphore>,
    /// Its end tells the facts thread to end.
    _facts: mpsc::Sender<()>,
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The client's name for it: any text, may be empty.
    pub request_id: String,
    /// `None` for the kind's default.
    pub priority: Option<Priority>,
    /// What is to be proven.
    pub request: ProofRequest,
}

/// The job that a client got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Ours, unique, also across restarts.
    pub job_id: String,
    /// Queued jobs ahead of it.
    pub queue_position: u32,
    /// The device that will prove it, if there is only one; otherwise empty.
    pub assigned_device: String,
}

/// What waiting brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The job has ended.
    Ended(Arc<Outcome>),
    /// The time is over, the job goes on.
    TimedOut,
}

/// Parameters that are in memory now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preloaded {
    /// Whether they had been there before.
    pub already_loaded: bool,
    /// How long the load took.
    pub load_time: Duration,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Jobs that were cancelled because time was over, and have to be submitted again.
    pub cancelled: usize,
    /// Jobs that were stopped because time was over, and go on after the next start.
    pub suspended: usize,
}

/// What the engine is doing with its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Not ready yet, and what it is at. Jobs are taken, and wait.
    Starting(String),
    /// Ready.
    Serving,
    /// Takes no new jobs.
    Draining,
}

impl<P: Proving> Engine<P> {
    /// Starts the threads. The engine is ready at once; see [`Self::announce`] for one that is not.
    ///
    /// # Panics
    /// If the machine refuses to start threads.
    pub fn start(config: EngineConfig, proving: Arc<P>) -> Self {
        let (shared, chores) = Shared::new(&config, proving, None, None);
        Self::run(&config, shared, chores)
    }

    /// As [`Self::start`], with jobs that outlive the process. What the store holds is taken back: finished jobs are
    /// answered at once, unfinished ones are queued again as soon as their requests have been read, in the background.
    ///
    /// # Panics
    /// If the machine refuses to start threads.
    pub fn start_with_store(
        config: EngineConfig,
        proving: Arc<P>,
        store: Arc<dyn JobStore>,
    ) -> Result<Self, StoreError> {
        let (recovered, keeper) = Keeper::open(store)?;
        let ids = keep::ids(&recovered);
        let (shared, chores) = Shared::new(&config, proving, Some(ids), Some(keeper));
        let engine = Self::run(&config, shared, chores);
        let shared = engine.handle.shared.clone();
        let jobs = keep::restore(&shared, recovered);
        workers::spawn("cuzk-resume".to_owned(), move || keep::reread(&shared, jobs));
        Ok(engine)
    }

    fn run(config: &EngineConfig, shared: Shared<P>, chores: mpsc::Receiver<Chore>) -> Self {
        let shared = Arc::new(shared);
        let admissions = Arc::new(Semaphore::new(config.admit_threads.max(1)));
        let facts = workers::start(&shared, config, chores);
        Self { handle: Arc::new(Handle { shared, admissions, _facts: facts }) }
    }

    /// Queues a proof, or finds the job that is there already. Parses and checks the request on a blocking thread, and
    /// waits for one of `admit_threads` of them.
    ///
    /// Must be called within a tokio runtime. If the future is dropped, the request may be queued nevertheless; the
    /// same submission then finds it.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, EngineError> {
        Ok(self.enter(submission, Interest::Detached).await?.0)
    }

    /// Queues a proof and waits for its end. If the future is dropped and nobody else waits, the job is cancelled after
    /// `abandon_grace`.
    pub async fn prove(&self, submission: Submission) -> Result<(Submitted, Arc<Outcome>), EngineError> {
        let (submitted, pending) = self.enter(submission, Interest::Waiting).await?;
        let outcome = pending.outcome().await;
        Ok((submitted, outcome))
    }

    /// Waits for a job's end, or until the time is over (`None`: for ever).
    pub async fn await_job(&self, job_id: &str, timeout: Option<Duration>) -> Result<Awaited, EngineError> {
        let shared = &self.handle.shared;
        let key = shared.ids.parse(job_id).ok_or_else(|| EngineError::unknown_job(job_id))?;
        let waiter = match shared.with(|state, _| state.core.outcome(key)) {
            Some(outcome) => return Ok(Awaited::Ended(outcome)),
            None => Waiter::join(shared, key),
        };
        let Some(waiter) = waiter else {
            // It may have ended between the two looks.
            let outcome = shared.with(|state, _| state.core.outcome(key));
            return outcome.map(Awaited::Ended).ok_or_else(|| EngineError::unknown_job(job_id));
        };
        match timeout {
            None => Ok(Awaited::Ended(waiter.outcome().await)),
            Some(timeout) => match tokio::time::timeout(timeout, waiter.outcome()).await {
                Ok(outcome) => Ok(Awaited::Ended(outcome)),
                Err(_) => Ok(Awaited::TimedOut),
            },
        }
    }

    /// Stops a job and wakes everyone who waits for it. `false`: it had ended before.
    pub fn cancel(&self, job_id: &str) -> Result<bool, EngineError> {
        let shared = &self.handle.shared;
        let key = shared.ids.parse(job_id).ok_or_else(|| EngineError::unknown_job(job_id))?;
        let cancelled = shared.with(|state, now| state.core.cancel(key, "cancelled by a client", now));
        cancelled.ok_or_else(|| EngineError::unknown_job(job_id))
    }

    /// Waits until the store knows of every end so far: what a client was told then stays so after a crash.
    pub async fn settle(&self) {
        let shared = self.handle.shared.clone();
        let flushed = tokio::task::spawn_blocking(move || shared.keeper.as_ref().map(Keeper::flush));
        // A panic in the store: what it lost runs again after the next start.
        let _ = flushed.await;
    }

    /// A picture of the engine, from memory.
    pub fn status(&self) -> EngineStatus {
        let shared = &self.handle.shared;
        let (core, params) = shared.read(|state, now| {
            let loads = state.loads.iter().map(|(circuit, load)| (*circuit, load.percent()));
            let hot = state.params.iter().filter(|(_, params)| shared.proving.is_hot(params));
            let facts = ParamsFacts { loads: loads.collect(), hot: hot.map(|(circuit, _)| *circuit).collect() };
            (state.core.status(now), facts)
        });
        let lifecycle = shared.lifecycle.borrow().clone();
        let uptime = shared.started_at.elapsed();
        let mut status = status::compose(core, params, &shared.facts(), lifecycle, uptime, &shared.ids);
        let trouble = shared.keeper.as_ref().and_then(|keeper| keeper.status().trouble);
        status.warnings.extend(trouble.map(|trouble| format!("the job store takes no jobs: {trouble}")));
        status
    }

    /// Counters and histograms in Prometheus text exposition format, from memory.
    pub fn metrics_text(&self) -> String {
        let shared = &self.handle.shared;
        let uptime = shared.started_at.elapsed();
        let mut text = shared.read(|state, now| metrics::render(&state.core, &state.core.status(now), uptime));
        if let Some(keeper) = &shared.keeper {
            text += &metrics::render_store(&keeper.status());
        }
        text
    }

    /// Loads a circuit's parameters ahead of the first job, and waits for it. Must be called within a tokio runtime.
    pub async fn preload(&self, circuit: CircuitId) -> Result<Preloaded, EngineError> {
        let shared = self.handle.shared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            panics::caught("params_available", || {
                shared.proving.params_available(circuit).map(|()| shared.proving.params_bytes(circuit))
            })
        });
        let bytes = looked.await.map_err(EngineError::lost_thread)?.map_err(EngineError::Internal)??;
        let waiting = loop {
            let asked = self.handle.shared.with(|state, now| {
                if let ParamsState::Loaded { .. } = state.core.request_params(circuit, bytes, now) {
                    return Some(None);
                }
                if state.core.params_state(circuit) == ParamsState::Absent {
                    return None;
                }
                let (done, loaded) = oneshot::channel();
                state.preloads.entry(circuit).or_default().push(done);
                Some(Some(loaded))
            });
            match asked {
                Some(waiting) => break waiting,
                None if self.handle.shared.with(|state, _| state.core.makes_room()) => {
                    tokio::time::sleep(ROOM_POLL).await;
                }
                None => {
                    let free = self.handle.shared.budget.free_for(Use::Params);
                    let reason =
                        format!("they need {bytes} bytes of host memory, {free} are free, and no others can go");
                    return Err(EngineError::ParamsLoad { circuit, reason });
                }
            }
        };
        let Some(loaded) = waiting else {
            return Ok(Preloaded { already_loaded: true, load_time: Duration::ZERO });
        };
        match loaded.await {
            Ok(Ok(load_time)) => Ok(Preloaded { already_loaded: false, load_time }),
            Ok(Err(reason)) => Err(EngineError::ParamsLoad { circuit, reason }),
            Err(_) => Err(EngineError::Stopped),
        }
    }

    /// The budget of host memory.
    pub fn budget(&self) -> &Budget {
        &self.handle.shared.budget
    }

    /// Releases a circuit's parameters: at once, or when the last running job that holds them ends. A load that no job
    /// waits for is cancelled.
    pub fn evict(&self, circuit: CircuitId) -> Evicted {
        self.handle.shared.with(|state, _| {
            let evicted = state.core.evict(circuit);
            if let (true, Some(load)) = (evicted.cancels_load, state.loads.get(&circuit)) {
                load.cancel();
            }
            evicted
        })
    }

    /// Says what the engine is at while it starts ([`Lifecycle::Starting`]), and that it is ready
    /// ([`Lifecycle::Serving`]). Once it drains, that stays.
    pub fn announce(&self, lifecycle: Lifecycle) {
        self.handle.shared.lifecycle.send_if_modified(|current| {
            let changes = *current != Lifecycle::Draining && *current != lifecycle;
            if changes {
                *current = lifecycle;
            }
            changes
        });
        self.handle.shared.revision.bump();
    }

    /// Follows the announcements.
    pub fn lifecycle(&self) -> watch::Receiver<Lifecycle> {
        self.handle.shared.lifecycle.subscribe()
    }

    /// Takes no new jobs from now on, waits until the accepted ones have ended, and stops what is left when the time
    /// is over: for good if jobs live in memory only, until the next start if a store keeps them. Dropping the future lifts neither: calling it again with less time shortens the wait.
    pub async fn drain(&self, at_most: Duration) -> DrainReport {
        let shared = &self.handle.shared;
        shared.with(|state, _| state.core.begin_drain());
        self.announce(Lifecycle::Draining);
        let mut unfinished = shared.unfinished.subscribe();
        // `is_ok` at once: what is in the result holds the channel's lock, which the next change needs.
        let all_ended = tokio::time::timeout(at_most, unfinished.wait_for(|jobs| *jobs == 0)).await.is_ok();
        let left = if all_ended { 0 } else { *shared.unfinished.borrow() };
        shared.stop_jobs("the daemon is shutting down");
        self.settle().await;
        match shared.keeper {
            Some(_) => DrainReport { cancelled: 0, suspended: left },
            None => DrainReport { cancelled: left, suspended: 0 },
        }
    }

    /// The first half of [`Self::submit`] and [`Self::prove`]: when it returns, the payload has been parsed.
    pub(crate) async fn enter(
        &self,
        submission: Submission,
        interest: Interest,
    ) -> Result<(Submitted, Pending<P>), EngineError> {
        // Never closed, so this fails only if the handle is gone, which `self` rules out.
        let permit = self.handle.admissions.clone().acquire_owned().await.map_err(|_| EngineError::Stopped)?;
        let shared = self.handle.shared.clone();
        let entering = tokio::task::spawn_blocking(move || {
            // The work is done to its end, also when nobody waits for it any more.
            admission::enter(&shared, submission, interest, permit)
        });
        let (ticket, waiter) = entering.await.map_err(EngineError::lost_thread)??;
        let shared = &self.handle.shared;
        let submitted = Submitted {
            job_id: shared.ids.text(ticket.key),
            queue_position: ticket.queue_position,
            assigned_device: shared.only_device(),
        };
        let pending = match (ticket.kind, waiter) {
            (TicketKind::Replayed(outcome), _) => Pending::Ended(outcome),
            (_, waiter) => Pending::Unfinished(waiter),
        };
        Ok((submitted, pending))
    }
}

/// A job that a client may wait for.
pub(crate) enum Pending<P: Proving> {
    /// Completed before.
    Ended(Arc<Outcome>),
    /// Being worked at.
    Unfinished(Waiter<P>),
}

impl<P: Proving> Pending<P> {
    /// Its outcome, once there is one.
    pub(crate) async fn outcome(self) -> Arc<Outcome> {
        match self {
            Self::Ended(outcome) => outcome,
            Self::Unfinished(waiter) => waiter.outcome().await,
        }
    }
}

impl<P: Proving> Drop for Handle<P> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// How often it is looked whether parameters that make way are out of memory.
const ROOM_POLL: Duration = Duration::from_millis(20);

/// Seconds and milliseconds of the wall clock since 1970, for job ids.
fn unix_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// How long ago, never negative.
fn since(then: Instant) -> Duration {
    Instant::now().saturating_duration_since(then)
}
