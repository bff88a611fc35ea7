//! A client that waits for a job. Its end, however it comes, is told to the core.

use std::sync::Arc;

use bytes::Bytes;
use cuzk_synth::circuit::CircuitKind;
use tokio::sync::watch;

use super::shared::Shared;
use crate::{
    core::job::{JobKey, JobStatus, JobTimings, Outcome},
    proving::Proving,
};

/// Carries a job's outcome to those who wait.
pub(super) type OutcomeReceiver = watch::Receiver<Option<Arc<Outcome>>>;

/// One waiting client. Dropped when it has its answer, and when its connection has gone.
pub(crate) struct Waiter<P: Proving> {
    shared: Arc<Shared<P>>,
    key: JobKey,
    kind: CircuitKind,
    outcome: OutcomeReceiver,
    /// Whether the core counts it.
    counted: bool,
}

impl<P: Proving> Waiter<P> {
    /// Begins to wait for an unfinished job.
    pub(super) fn join(shared: &Arc<Shared<P>>, key: JobKey) -> Option<Self> {
        shared.with(|state, _| {
            let live = state.live.get(&key)?;
            let (kind, outcome) = (live.kind, live.outcome.subscribe());
            state.core.handle_waiter_came(key).then(|| Self {
                shared: shared.clone(),
                key,
                kind,
                outcome,
                counted: true,
            })
        })
    }

    /// For a job that the core was told of with the client's interest already in it.
    pub(super) fn new(
        shared: &Arc<Shared<P>>,
        key: JobKey,
        kind: CircuitKind,
        outcome: OutcomeReceiver,
        counted: bool,
    ) -> Self {
        Self { shared: shared.clone(), key, kind, outcome, counted }
    }

    /// The job's outcome, once there is one.
    pub(super) async fn outcome(mut self) -> Arc<Outcome> {
        let ended = match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        ended.unwrap_or_else(|| Arc::new(self.stopped()))
    }

    /// The engine went away without a word.
    fn stopped(&self) -> Outcome {
        Outcome {
            key: self.key,
            kind: self.kind,
            status: JobStatus::Cancelled,
            proof: Bytes::new(),
            error: "the daemon has stopped: submit it again".to_owned(),
            timings: JobTimings::default(),
            devices: Vec::new(),
        }
    }
}

impl<P: Proving> Drop for Waiter<P> {
    fn drop(&mut self) {
        if self.counted {
            self.shared.with(|state, now| state.core.handle_waiter_gone(self.key, now));
        }
    }
}
