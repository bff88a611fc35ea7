//! Verification: no proof leaves that was not found right, a partition's and then the whole job's. It has threads of its
//! own, so that whoever made a proof can make the next one meanwhile.

use std::{sync::Arc, time::Instant};

use super::{log, panics::caught, shared::Shared, since};
use crate::{
    core::{ProofFailure, ProofOrder, ledger::Run},
    proving::{PartitionProof, PhaseTimings, Proved, Proving},
};

/// A partition's proof that was not verified yet, and all that is needed for it.
pub(super) struct Made<P: Proving> {
    pub(super) order: ProofOrder,
    pub(super) device: usize,
    pub(super) task: Arc<P::Task>,
    pub(super) params: Arc<P::Params>,
    pub(super) proved: Proved,
}

/// Verifies what was made, until the engine stops.
pub(super) fn verify_all<P: Proving>(shared: &Arc<Shared<P>>) {
    while let Some(made) = shared.next_work(|state, _| state.made.pop_front()) {
        let Made { order, device, task, params, proved: Proved { proof, mut timings } } = made;
        let begun = Instant::now();
        let verified = verify_partition(shared, order.run, &task, &params, &proof);
        timings.add("verify", since(begun));
        if let Some(whole) = report(shared, order, device, verified.map(|()| proof), &timings) {
            let verified = verify_whole(shared, &task, &params, &whole);
            shared.with(|state, now| state.core.handle_whole_verified(order.run.job, whole, verified, now));
        }
    }
}

/// Tells the core how an attempt at a proof ended. Returns the proof of the whole job if this was the last it needed.
pub(super) fn report<P: Proving>(
    shared: &Arc<Shared<P>>,
    order: ProofOrder,
    device: usize,
    result: Result<PartitionProof, ProofFailure>,
    timings: &PhaseTimings,
) -> Option<Vec<u8>> {
    let (job, partition) = (shared.ids.text(order.run.job), order.run.partition);
    if result == Err(ProofFailure::BadProof) {
        log::bad_proof(&job, partition, &shared.device_ids[device]);
    }
    log::timing(&job, partition, &shared.device_ids[device], timings);
    shared.with(|state, now| {
        state.running.remove(&order.run);
        state.core.handle_proved(order, device, result, timings, now)
    })
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
