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
    shared::{Shared, State, provers},
    since,
};
use crate::{
    config::EngineConfig,
    core::{ProofFailure, ProofOrder, SynthesisFailure, SynthesisOrder},
    proving::{PartitionProof, PhaseTimings, Proving},
};

/// How often devices and files are looked at.
const FACTS_EVERY: Duration = Duration::from_secs(10);

/// Starts all threads of an engine. The facts thread ends when the sender is dropped, the others when the engine stops.
pub(super) fn start<P: Proving>(shared: &Arc<Shared<P>>, config: &EngineConfig) -> mpsc::Sender<()> {
    for n in 0..config.synthesis_threads.max(1) {
        let shared = shared.clone();
        spawn(format!("cuzk-synth-{n}"), move || synthesize_all(&shared));
    }
    for (device, info) in shared.facts().devices.iter().enumerate() {
        for n in 0..provers(info.workers, config) {
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
    while let Some((order, task)) = shared.next_work(take_synthesis) {
        let begun = Instant::now();
        let result = caught("synthesis", || shared.proving.synthesize(&task, order.partition));
        let took = since(begun);
        drop(task);
        // An assignment that nobody wants comes back, to be freed outside the lock.
        let _unwanted = match result.and_then(|result| result) {
            Ok(assignment) => shared.with(|state, now| {
                if state.core.handle_synthesized(order, Ok(()), took, now) {
                    state.handover.insert((order.job, order.partition), assignment);
                    return None;
                }
                Some(assignment)
            }),
            Err(reason) => shared.with(|state, now| {
                state.core.handle_synthesized(order, Err(SynthesisFailure(reason)), took, now);
                None
            }),
        };
    }
}

fn take_synthesis<P: Proving>(state: &mut State<P>, now: Instant) -> Option<(SynthesisOrder, Arc<P::Task>)> {
    let order = state.core.poll_synthesis(now)?;
    let Some(task) = state.live.get(&order.job).and_then(|live| live.task.clone()) else {
        let failure = SynthesisFailure("internal error: the job has no task".to_owned());
        state.core.handle_synthesized(order, Err(failure), Duration::ZERO, now);
        return None;
    };
    Some((order, task))
}

/// All that a prover needs of one partition.
struct ProofWork<P: Proving> {
    order: ProofOrder,
    task: Arc<P::Task>,
    params: Arc<P::Params>,
    assignment: P::Assignment,
}

fn prove_all<P: Proving>(shared: &Arc<Shared<P>>, device: usize) {
    while let Some(work) = shared.next_work(|state, now| take_proof(state, device, now)) {
        let ProofWork { order, task, params, assignment } = work;
        let mut timings = PhaseTimings::default();
        let result = caught("the prover", || shared.proving.prove(device, &params, assignment));
        let result = match result {
            Err(panic) => Err(ProofFailure::Panic(panic)),
            Ok(Err(reason)) => Err(ProofFailure::Error(reason)),
            Ok(Ok(proved)) => {
                timings = proved.timings;
                let begun = Instant::now();
                let verified = verify_partition(shared, order, &task, &params, &proved.proof);
                timings.add("verify", since(begun));
                verified.map(|()| proved.proof)
            }
        };
        log::timing(&shared.ids.text(order.job), order.partition, &shared.device_ids[device], &timings);
        let whole = shared.with(|state, now| state.core.handle_proved(order, device, result, &timings, now));
        if let Some(proof) = whole {
            let verified = verify_whole(shared, &task, &params, &proof);
            shared.with(|state, now| state.core.handle_whole_verified(order.job, proof, verified, now));
        }
    }
}

fn take_proof<P: Proving>(state: &mut State<P>, device: usize, now: Instant) -> Option<ProofWork<P>> {
    let order = state.core.poll_proof(device, now)?;
    let task = state.live.get(&order.job).and_then(|live| live.task.clone());
    let params = state.params.get(&order.circuit).cloned();
    let assignment = state.handover.remove(&(order.job, order.partition));
    let (Some(task), Some(params), Some(assignment)) = (task, params, assignment) else {
        let failure = ProofFailure::Panic("internal error: task, parameters or assignment missing".to_owned());
        state.core.handle_proved(order, device, Err(failure), &PhaseTimings::default(), now);
        return None;
    };
    Some(ProofWork { order, task, params, assignment })
}

fn verify_partition<P: Proving>(
    shared: &Shared<P>,
    order: ProofOrder,
    task: &P::Task,
    params: &P::Params,
    proof: &PartitionProof,
) -> Result<(), ProofFailure> {
    let verify = || shared.proving.verify_partition(task, order.partition, params, proof);
    match caught("verification", verify) {
        Err(panic) => Err(ProofFailure::Panic(panic)),
        Ok(Err(reason)) => Err(ProofFailure::Error(format!("verification: {reason}"))),
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
