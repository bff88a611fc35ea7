//! What the core's decisions bring about: some of it under its lock, the rest when that has been released.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Instant,
};

use cuzk_synth::circuit::CircuitId;

use super::{Chore, Live, Shared, State};
use crate::{
    core::Effect,
    engine::{incidents::Noted, log, panics::caught},
    proving::{Load, ParamsSize, Proving},
    store::StoreEvent,
};

/// What is left to do when the lock has been released: nothing slow happens under it.
pub(super) enum After<P: Proving> {
    Load(CircuitId),
    Revive(usize),
    Log(Box<dyn FnOnce() + Send>),
    Task(Arc<P::Task>),
    Assignment(P::Assignment),
    Params(CircuitId, Option<Arc<P::Params>>),
}

impl<P: Proving> Shared<P> {
    /// What of the effects must happen under the lock; the rest is returned.
    pub(super) fn apply_effects(self: &Arc<Self>, state: &mut State<P>) -> Vec<After<P>> {
        let mut after = Vec::new();
        for effect in state.core.take_effects() {
            state.incidents.note(&effect, &state.core, Instant::now());
            self.apply(effect, state, &mut after);
        }
        let unfinished = state.core.unfinished();
        self.unfinished.send_if_modified(|n| std::mem::replace(n, unfinished) != unfinished);
        after
    }

    fn apply(self: &Arc<Self>, effect: Effect, state: &mut State<P>, after: &mut Vec<After<P>>) {
        match effect {
            Effect::Started { job, queue_wait } => {
                let id = self.ids.text(job);
                let label = state.core.label(job).unwrap_or_default().to_owned();
                after.push(After::log(move || log::started(&id, &label, queue_wait)));
            }
            Effect::Ended { outcome, label } => {
                let of_job = state.running.iter().filter(|(run, _)| run.job == outcome.key);
                of_job.for_each(|(_, attempt)| attempt.stop());
                if let Some(live) = state.live.remove(&outcome.key) {
                    live.outcome.send_replace(Some(outcome.clone()));
                    if live.kept && !state.suspending {
                        self.tell_keeper(StoreEvent::Ended(outcome.clone()));
                    }
                    after.extend(live.task.map(After::Task));
                }
                let id = self.ids.text(outcome.key);
                after.push(After::log(move || log::ended(&id, &label, &outcome)));
            }
            Effect::Discard(run) => after.extend(state.handover.remove(&run).map(After::Assignment)),
            Effect::Retried { job, partition, place, reason } => {
                let id = self.ids.text(job);
                let loud = state.live.get_mut(&job).is_some_and(Live::may_log_retry);
                after.push(After::log(move || log::retried(&id, partition, &place, &reason, loud)));
            }
            Effect::Stalled { run, place, age } => {
                if let Some(attempt) = state.running.get(&run) {
                    attempt.stop();
                }
                let (id, place) = (self.ids.text(run.job), state.core.place(place));
                after.push(After::log(move || log::stalled(&id, run.partition, &place, age)));
            }
            Effect::Fenced { device, reason } => {
                let device = self.device_ids[device].clone();
                after.push(After::log(move || log::fenced(&device, &reason)));
            }
            Effect::Revived { device, out_for } => {
                let device = self.device_ids[device].clone();
                after.push(After::log(move || log::revived(&device, out_for)));
            }
            Effect::Revive(device) => after.push(After::Revive(device)),
            Effect::Proved { run, proof } => {
                if state.live.get(&run.job).is_some_and(|live| live.kept) {
                    self.tell_keeper(StoreEvent::Proved(run.job, run.partition, proof));
                }
            }
            Effect::Forgotten(jobs) => jobs.into_iter().for_each(|job| self.tell_keeper(StoreEvent::Forgotten(job))),
            Effect::LoadParams(circuit) => after.push(After::Load(circuit)),
            Effect::DropParams(circuit) => after.push(After::Params(circuit, state.params.remove(&circuit))),
        }
    }

    fn tell_keeper(&self, event: StoreEvent) {
        if let Some(keeper) = &self.keeper {
            keeper.tell(event);
        }
    }

    pub(super) fn finish(self: &Arc<Self>, after: Vec<After<P>>) {
        for item in after {
            match item {
                After::Load(circuit) => self.start_load(circuit),
                After::Revive(device) => self.start_revival(device),
                After::Log(write) => write(),
                After::Task(task) => self.free(task),
                After::Assignment(assignment) => self.free(assignment),
                After::Params(circuit, params) => {
                    let shared = self.clone();
                    self.chore(Box::new(move || {
                        drop(params);
                        shared.with(|state, _| state.core.handle_params_dropped(circuit));
                    }));
                }
            }
        }
    }

    /// Has something freed by the one thread that does: unmapping from many threads at once makes all of them flush their
    /// address translations.
    pub(in crate::engine) fn free<T: Send + 'static>(&self, garbage: T) {
        self.chore(Box::new(move || drop(garbage)));
    }

    fn chore(&self, chore: Chore) {
        if let Err(mpsc::SendError(chore)) = self.chores.send(chore) {
            chore(); // The thread is gone: the engine is at its end.
        }
    }

    /// Tries to revive a device, on a thread of its own.
    fn start_revival(self: &Arc<Self>, device: usize) {
        let shared = self.clone();
        let started = thread::Builder::new().name(format!("cuzk-revive-{device}")).spawn(move || {
            let revived = caught("reviving", || shared.proving.revive(device)).and_then(|result| result);
            shared.with(|state, now| state.core.handle_revived(device, revived, now));
        });
        if let Err(error) = started {
            let failed = Err(format!("no thread to revive it: {error}"));
            self.with(|state, now| state.core.handle_revived(device, failed, now));
        }
    }

    /// Loads parameters on a thread of their own: no job of another circuit waits for it.
    fn start_load(self: &Arc<Self>, circuit: CircuitId) {
        let (shared, load) = (self.clone(), Arc::new(Load::default()));
        self.with(|state, _| state.loads.insert(circuit, load.clone()));
        let started = thread::Builder::new().name(format!("cuzk-load-{circuit}")).spawn(move || {
            let loaded = caught("loading", || shared.proving.load_params(circuit, &load));
            shared.report_load(circuit, loaded.and_then(|result| result));
        });
        if let Err(error) = started {
            self.report_load(circuit, Err(format!("no thread for it: {error}")));
        }
    }

    fn report_load(self: &Arc<Self>, circuit: CircuitId, result: Result<(P::Params, ParamsSize), String>) {
        match &result {
            Ok((_, size)) => {
                tracing::info!(%circuit, bytes = size.bytes, host_bytes = size.host_bytes, "parameters loaded");
            }
            Err(reason) => tracing::error!(%circuit, reason, "parameters not loaded"),
        }
        self.with(|state, now| {
            state.loads.remove(&circuit);
            if let Err(reason) = &result {
                let text = format!("the parameters of {circuit} were not loaded: {reason}");
                state.incidents.push(Noted { at: now, job: None, device: None, text });
            }
            let outcome = result.map(|(params, size)| {
                state.params.insert(circuit, Arc::new(params));
                size
            });
            let told = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
            let took = state.core.handle_params_loaded(circuit, outcome, now);
            for preload in state.preloads.remove(&circuit).unwrap_or_default() {
                // Who asked may have gone.
                let _ = preload.send(told.clone().map(|()| took));
            }
        });
    }
}

impl<P: Proving> After<P> {
    fn log(write: impl FnOnce() + Send + 'static) -> Self {
        Self::Log(Box::new(write))
    }
}
