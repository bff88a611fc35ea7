//! The threads: synthesis, provers, verification, housekeeping, and the look at devices and files.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use super::{
    facts::Facts,
    panics::caught,
    revision::Revision,
    shared::{Chore, Shared, State},
    since,
    verification::{self, Made},
};
use crate::{
    config::EngineConfig,
    core::{ProofFailure, ProofOrder, SynthesisFailure, devices::DeviceSpec, ledger::Run},
    proving::{Attempt, PhaseTimings, Progress, Proving, ProvingError},
};

/// How often devices and files are looked at.
const FACTS_EVERY: Duration = Duration::from_secs(10);

/// Threads that verify proofs, so that a prover can go on. A proof takes them milliseconds.
const VERIFIERS: usize = 2;

/// Starts all threads of an engine. The facts thread ends when the sender is dropped, the others when the engine stops.
pub(super) fn start<P: Proving>(
    shared: &Arc<Shared<P>>,
    config: &EngineConfig,
    chores: mpsc::Receiver<Chore>,
) -> mpsc::Sender<()> {
    spawn("cuzk-free".to_owned(), move || chores.into_iter().for_each(|chore| chore()));
    for n in 0..config.synthesis_threads.max(1) {
        let shared = shared.clone();
        spawn(format!("cuzk-synth-{n}"), move || synthesize_all(&shared));
    }
    for n in 0..VERIFIERS {
        let shared = shared.clone();
        spawn(format!("cuzk-verify-{n}"), move || verification::verify_all(&shared));
    }
    let provers = |spec: &DeviceSpec| spec.workers + usize::from(spec.express);
    let provers: Vec<usize> = shared.with(|state, _| state.core.devices().map(provers).collect());
    for (device, count) in provers.into_iter().enumerate() {
        for n in 0..count {
            let shared = shared.clone();
            spawn(format!("cuzk-prove-{device}-{n}"), move || prove_all(&shared, device));
        }
    }
    let house = shared.clone();
    spawn("cuzk-house".to_owned(), move || house.keep_house());
    let (stop, stopped) = mpsc::channel();
    let facts = shared.clone();
    spawn("cuzk-facts".to_owned(), move || refresh_facts(&facts, &stopped));
    stop
}

pub(super) fn spawn(name: String, work: impl FnOnce() + Send + 'static) {
    let started = thread::Builder::new().name(name.clone()).spawn(work);
    if let Err(error) = started {
        panic!("cannot start thread {name}: {error}");
    }
}

fn refresh_facts<P: Proving>(shared: &Shared<P>, stopped: &mpsc::Receiver<()>) {
    while stopped.recv_timeout(FACTS_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        match Facts::gather(&*shared.proving) {
            Ok(facts) => shared.set_facts(facts),
            Err(error) => tracing::warn!(error, "status shows an older state of the devices"),
        }
    }
}

fn synthesize_all<P: Proving>(shared: &Arc<Shared<P>>) {
    while let Some((run, task, attempt)) = shared.next_work(|state, now| take_synthesis(state, now, &shared.revision)) {
        let begun = Instant::now();
        let result = caught("synthesis", || shared.proving.synthesize(&task, run.partition, &attempt));
        let took = since(begun);
        drop(task);
        let result = match result {
            Err(panic) => Err(SynthesisFailure::Panic(panic)),
            Ok(Err(ProvingError::Stopped)) => Err(SynthesisFailure::Stopped),
            Ok(Err(ProvingError::Input(reason))) => Err(SynthesisFailure::Input(reason)),
            Ok(Err(error)) => Err(SynthesisFailure::Panic(error.to_string())),
            Ok(Ok(assignment)) => Ok(assignment),
        };
        let unwanted = shared.with(|state, now| {
            state.running.remove(&run);
            let (told, assignment) = match result {
                Ok(assignment) => (Ok(()), Some(assignment)),
                Err(failure) => (Err(failure), None),
            };
            if state.core.handle_synthesized(run, told, took, now) {
                state.handover.extend(assignment.map(|assignment| (run, assignment)));
                return None;
            }
            assignment
        });
        if let Some(unwanted) = unwanted {
            shared.free(unwanted);
        }
    }
}

fn take_synthesis<P: Proving>(
    state: &mut State<P>,
    now: Instant,
    revision: &Revision,
) -> Option<(Run, Arc<P::Task>, Arc<Attempt>)> {
    let run = state.core.poll_synthesis(now)?;
    let Some(task) = state.live.get(&run.job).and_then(|live| live.task.clone()) else {
        let failure = SynthesisFailure::Input("internal error: the job has no task".to_owned());
        state.core.handle_synthesized(run, Err(failure), Duration::ZERO, now);
        return None;
    };
    Some((run, task, begin(state, run, false, revision)))
}

/// Notes that somebody works at a partition.
fn begin<P: Proving>(state: &mut State<P>, run: Run, urgent: bool, revision: &Revision) -> Arc<Attempt> {
    let revision = revision.clone();
    let progress = Progress::watched(move || revision.bump());
    let attempt = Arc::new(Attempt::watched(urgent, progress));
    state.running.insert(run, attempt.clone());
    attempt
}

/// All that a prover needs of one partition.
struct ProofWork<P: Proving> {
    order: ProofOrder,
    task: Arc<P::Task>,
    params: Arc<P::Params>,
    assignment: P::Assignment,
    attempt: Arc<Attempt>,
}

fn prove_all<P: Proving>(shared: &Arc<Shared<P>>, device: usize) {
    while let Some(work) = shared.next_work(|state, now| take_proof(state, device, now, &shared.revision)) {
        let ProofWork { order, task, params, assignment, attempt } = work;
        let result = caught("the prover", || shared.proving.prove(device, &params, assignment, &attempt));
        let failure = match result {
            Ok(Ok(proved)) => {
                attempt.progress().enter("verify");
                let made = Made { order, device, task, params, proved };
                shared.with(|state, now| {
                    state.core.handle_made(order, device, now);
                    state.made.push_back(made);
                });
                continue;
            }
            Ok(Err(ProvingError::Input(reason))) => ProofFailure::Input(reason),
            Ok(Err(ProvingError::Device(reason))) => ProofFailure::Device(reason),
            Ok(Err(ProvingError::Sick(reason))) => ProofFailure::Sick(reason),
            Ok(Err(ProvingError::Stopped)) => ProofFailure::Stopped,
            Err(panic) => ProofFailure::Panic(panic),
        };
        verification::report(shared, order, device, Err(failure), &PhaseTimings::default());
    }
}

fn take_proof<P: Proving>(
    state: &mut State<P>,
    device: usize,
    now: Instant,
    revision: &Revision,
) -> Option<ProofWork<P>> {
    let order = state.core.poll_proof(device, now)?;
    let task = state.live.get(&order.run.job).and_then(|live| live.task.clone());
    let params = state.params.get(&order.circuit).cloned();
    let assignment = state.handover.remove(&order.run);
    let (Some(task), Some(params), Some(assignment)) = (task, params, assignment) else {
        let failure = ProofFailure::Input("internal error: task, parameters or assignment missing".to_owned());
        state.core.handle_proved(order, device, Err(failure), &PhaseTimings::default(), now);
        return None;
    };
    let attempt = begin(state, order.run, order.urgent, revision);
    Some(ProofWork { order, task, params, assignment, attempt })
}
