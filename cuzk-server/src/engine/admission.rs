//! From a request to a job, on a blocking thread: digest, look for the same job, parse and check, queue.

use std::{sync::Arc, time::SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use super::{
    Submission,
    error::EngineError,
    log,
    panics::caught,
    shared::{Live, Shared},
    waiter::Waiter,
};
use crate::{
    core::{
        Interest, NewJob, Ticket, TicketKind,
        identity::{Identity, log_label},
        job::{JobKey, Priority},
        view::Subject,
    },
    metrics::SubmissionResult,
    proving::{ProofRequest, Proving, Refusal},
    store::{KeptJob, StoreEvent},
};

/// Gives a submission its job. The waiter counts as one exactly if the interest is [`Interest::Waiting`]. The permit is
/// for the work of the processor: it is given back before the wait for the disk, so that submissions can share a sync.
pub(super) fn enter<P: Proving>(
    shared: &Arc<Shared<P>>,
    submission: Submission,
    interest: Interest,
    permit: OwnedSemaphorePermit,
) -> Result<(Ticket, Waiter<P>), EngineError> {
    let mut permit = Some(permit);
    let identity = Identity::of(&submission.request_id, &submission.request);
    loop {
        let (ticket, waiter) = take_or_attach(shared, &submission, identity, interest, &mut permit)?;
        permit = None;
        // A job that another client has just brought is there for nobody before it is kept. If it cannot be, this
        // client's attempt is the next one.
        if ticket.kind != TicketKind::Attached || shared.wait_kept(ticket.key) {
            return Ok((ticket, waiter));
        }
    }
}

fn take_or_attach<P: Proving>(
    shared: &Arc<Shared<P>>,
    submission: &Submission,
    identity: Identity,
    interest: Interest,
    permit: &mut Option<OwnedSemaphorePermit>,
) -> Result<(Ticket, Waiter<P>), EngineError> {
    let Submission { request_id, priority, request } = submission;
    let priority = priority.unwrap_or(Priority::default_for(request.kind));
    let payload_bytes = request.payload_bytes();

    let present = shared.with(|state, _| {
        let ticket = state.core.attach(&identity, priority, interest)?;
        let waiter = state.waiter(shared, &ticket, request.kind, interest);
        Some((ticket, waiter))
    });
    if let Some((ticket, waiter)) = present {
        log::attached(&shared.ids.text(ticket.key), request_id, &ticket);
        return Ok((ticket, waiter));
    }
    // Before the work of parsing; looked at again when the job is queued.
    shared.with(|state, _| state.core.check_room(payload_bytes))?;

    let task = check(shared, request).inspect_err(|error| {
        shared.with(|state, _| state.core.metrics_mut().submission(SubmissionResult::Invalid));
        log::refused(request_id, error);
    })?;
    *permit = None;
    let circuit = shared.proving.circuit(&task);
    let new = NewJob {
        identity,
        label: log_label(request_id),
        circuit,
        priority,
        payload_bytes,
        partitions: shared.proving.partitions(&task),
        partition_bytes: shared.proving.partition_bytes(&task),
        params_bytes: shared.proving.params_bytes(circuit),
    };
    let line = new.clone();
    let (ticket, waiter) = shared.with(|state, now| {
        let ticket = match &shared.keeper {
            Some(_) => state.core.submit_held(new, interest, now)?,
            None => state.core.submit(new, interest, now)?,
        };
        if ticket.kind == TicketKind::New {
            state.live.insert(ticket.key, Live::new(request.kind, Some(task)));
            state.core.describe(ticket.key, subject(request));
        }
        let waiter = state.waiter(shared, &ticket, request.kind, interest);
        Ok::<_, EngineError>((ticket, waiter))
    })?;
    let job_id = shared.ids.text(ticket.key);
    match ticket.kind {
        TicketKind::New => {
            keep(shared, ticket.key, &line, request)?;
            log::accepted(&job_id, &line, ticket.queue_position);
        }
        _ => log::attached(&job_id, request_id, &ticket),
    }
    Ok((ticket, waiter))
}

/// Has a new job kept, if there is a store, and lets it be worked at. What cannot be kept ends as if it had never been.
fn keep<P: Proving>(
    shared: &Arc<Shared<P>>,
    key: JobKey,
    new: &NewJob,
    request: &ProofRequest,
) -> Result<(), EngineError> {
    let Some(keeper) = &shared.keeper else { return Ok(()) };
    let kept = KeptJob { key, new: new.clone(), accepted: SystemTime::now() };
    let result = keeper.accept(&kept, request);
    shared.with(|state, now| match &result {
        Err(error) => {
            state.core.cancel(key, &format!("the job store takes no jobs: {error}"), now);
        }
        Ok(()) => match state.live.get_mut(&key) {
            Some(live) => {
                live.kept = true;
                state.core.release(key, now);
            }
            // It ended while it was written, and the store has not been told. If the engine stops, it goes on later.
            None => {
                if !state.suspending
                    && let Some(outcome) = state.core.outcome(key)
                {
                    keeper.tell(StoreEvent::Ended(outcome));
                }
            }
        },
    });
    result.map_err(EngineError::NotKept)
}

/// What a request is about, for those who watch.
pub(super) fn subject(request: &ProofRequest) -> Subject {
    Subject { miner_id: request.miner_id, sector_number: request.sector_number }
}

/// Parses and checks, and looks whether the parameters are there: at submission, not after hours of waiting.
pub(super) fn check<P: Proving>(shared: &Shared<P>, request: &ProofRequest) -> Result<P::Task, EngineError> {
    let checked = caught("checking the request", || -> Result<P::Task, Refusal> {
        let task = shared.proving.admit(request)?;
        shared.proving.params_available(shared.proving.circuit(&task))?;
        Ok(task)
    });
    Ok(checked.map_err(EngineError::Internal)??)
}
