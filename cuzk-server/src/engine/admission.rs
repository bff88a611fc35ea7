//! From a request to a job, on a blocking thread: digest, look for the same job, parse and check, queue.

use std::sync::Arc;

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
        job::Priority,
    },
    metrics::SubmissionResult,
    proving::{Proving, Refusal},
};

/// Gives a submission its job. The waiter counts as one exactly if the interest is [`Interest::Waiting`].
pub(super) fn enter<P: Proving>(
    shared: &Arc<Shared<P>>,
    submission: Submission,
    interest: Interest,
) -> Result<(Ticket, Waiter<P>), EngineError> {
    let Submission { request_id, priority, request } = submission;
    let identity = Identity::of(&request_id, &request);
    let priority = priority.unwrap_or(Priority::default_for(request.kind));
    let payload_bytes = request.payload_bytes();

    let present = shared.with(|state, _| {
        let ticket = state.core.attach(&identity, priority, interest)?;
        let waiter = state.waiter(shared, &ticket, request.kind, interest);
        Some((ticket, waiter))
    });
    if let Some((ticket, waiter)) = present {
        log::attached(&shared.ids.text(ticket.key), &request_id, &ticket);
        return Ok((ticket, waiter));
    }
    // Before the work of parsing; looked at again when the job is queued.
    shared.with(|state, _| state.core.check_room(payload_bytes))?;

    let task = check(shared, &request).inspect_err(|error| {
        shared.with(|state, _| state.core.metrics_mut().submission(SubmissionResult::Invalid));
        log::refused(&request_id, error);
    })?;
    let new = NewJob {
        identity,
        label: log_label(&request_id),
        circuit: shared.proving.circuit(&task),
        priority,
        payload_bytes,
        partitions: shared.proving.partitions(&task),
        partition_bytes: shared.proving.partition_bytes(&task),
    };
    let kind = request.kind;
    // The payload lives on only in what the task kept of it.
    drop(request);

    let line = new.clone();
    let (ticket, waiter) = shared.with(|state, now| {
        let ticket = state.core.submit(new, interest, now)?;
        if ticket.kind == TicketKind::New {
            state.live.insert(ticket.key, Live::new(kind, task));
        }
        let waiter = state.waiter(shared, &ticket, kind, interest);
        Ok::<_, EngineError>((ticket, waiter))
    })?;
    let job_id = shared.ids.text(ticket.key);
    match ticket.kind {
        TicketKind::New => log::accepted(&job_id, &line, ticket.queue_position),
        _ => log::attached(&job_id, &request_id, &ticket),
    }
    Ok((ticket, waiter))
}

/// Parses and checks, and looks whether the parameters are there: at submission, not after hours of waiting.
fn check<P: Proving>(shared: &Shared<P>, request: &crate::ProofRequest) -> Result<P::Task, EngineError> {
    let checked = caught("checking the request", || -> Result<P::Task, Refusal> {
        let task = shared.proving.admit(request)?;
        shared.proving.params_available(shared.proving.circuit(&task))?;
        Ok(task)
    });
    Ok(checked.map_err(EngineError::Internal)??)
}
