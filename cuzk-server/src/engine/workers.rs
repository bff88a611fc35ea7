//! The threads: synthesis, provers, housekeeping, and the look at devices and files.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use super::{
    facts::Facts,
    log,
    panics::caught,
    revision::Revision,
    shared::{Chore, Shared, State},
    since,
};
use crate::{
    config::EngineConfig,
    core::{ProofFailure, ProofOrder, SynthesisFailure, devices::DeviceSpec, ledger::Run},
    proving::{Attempt, PartitionProof, PhaseTimings, Progress, Proving, ProvingError},
};

/// How often devices and files are looked at.
const FACTS_EVERY: Duration = Duration::from_secs(10);

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
    let provers = |spec: &DeviceSpec| spec.workers + usize::from(spec.express);
    let provers: Vec<usize> = shared.with(|state, _| state.core.devices().map(provers).collect());
    for (device, count) in provers.into_iter().enumerate() {
        for n in 0..count {
            let shared = shared.clone();
            spawn(format!("cuzk-prove-{device}-{n}"), move || prove_all(&shared, device, n));
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

fn prove_all<P: Proving>(shared: &Arc<Shared<P>>, device: usize, worker: usize) {
    while let Some(work) = shared.next_work(|state, now| take_proof(state, (device, worker), now, &shared.revision)) {
        let ProofWork { order, task, params, assignment, attempt } = work;
        let mut timings = PhaseTimings::default();
        let result = caught("the prover", || shared.proving.prove(device, &params, assignment, &attempt));
        let result = match result {
            Err(panic) => Err(ProofFailure::Panic(panic)),
            Ok(Err(ProvingError::Input(reason))) => Err(ProofFailure::Input(reason)),
            Ok(Err(ProvingError::Device(reason))) => Err(ProofFailure::Device(reason)),
            Ok(Err(ProvingError::Sick(reason))) => Err(ProofFailure::Sick(reason)),
            Ok(Err(ProvingError::Stopped)) => Err(ProofFailure::Stopped),
            Ok(Ok(proved)) => {
                timings = proved.timings;
                attempt.progress().enter("verify");
                let begun = Instant::now();
                let verified = verify_partition(shared, order.run, &task, &params, &proved.proof);
                timings.add("verify", since(begun));
                verified.map(|()| proved.proof)
            }
        };
        let (job, partition) = (shared.ids.text(order.run.job), order.run.partition);
        if result == Err(ProofFailure::BadProof) {
            log::bad_proof(&job, partition, &shared.device_ids[device]);
        }
        log::timing(&job, partition, &shared.device_ids[device], &timings);
        let whole = shared.with(|state, now| {
            state.running.remove(&order.run);
            state.timeline.end(device, worker, now);
            state.core.handle_proved(order, device, result, &timings, now)
        });
        if let Some(proof) = whole {
            let verified = verify_whole(shared, &task, &params, &proof);
            shared.with(|state, now| state.core.handle_whole_verified(order.run.job, proof, verified, now));
        }
    }
}

fn take_proof<P: Proving>(
    state: &mut State<P>,
    (device, worker): (usize, usize),
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
    state.timeline.begin(device, worker, order.run, attempt.clone(), now);
    Some(ProofWork { order, task, params, assignment, attempt })
}

fn verify_partition<P: Proving>(
    shared: &Shared<P>,
    run: Run,
    task: &P::Task,
    params: &P::Params,
    proof: &PartitionProof,
) -> Result<(), ProofFailure> {
    let verify = || shared.proving.verify_partition(task, run.partition, params, proof);
    match caught("verification", verify) {
        Err(panic) => Err(ProofFailure::Panic(panic)),
        Ok(Err(reason)) => Err(ProofFailure::Input(format!("verification: {reason}"))),
        Ok(Ok(false)) => Err(ProofFailure::BadProof),
        Ok(Ok(true)) => Ok(()),
    }
}

fn verify_whole<P: Proving>(
    shared: &Shared<P>,
    task: &P::Task,
    params: &P::Params,
    proof: &[u8],
) -> Result<(), String> {
    let verify = || shared.proving.verify_whole(task, params, proof);
    match caught("verification", verify)?? {
        true => Ok(()),
        false => Err("it does not verify".to_owned()),
    }
}
