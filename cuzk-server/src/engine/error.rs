//! Why the engine does not do what a client asks, by who has to act.

use cuzk_synth::circuit::CircuitId;

use crate::{
    core::{Refused, identity::log_label},
    proving::Refusal,
    store::StoreError,
};

/// A refusal or failure of one call. A proof that fails is none: that is an outcome of its job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The request is wrong, or cannot be proven by this build or on this machine as it is.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request may be right, but there is no room for it now, or never will be.
    #[error(transparent)]
    NoRoom(#[from] Refused),
    /// No such job: never accepted, ended so long ago that it is forgotten, or of an earlier life without a store.
    #[error("unknown job {0:?}: never accepted, or ended and no longer kept; submit it again")]
    UnknownJob(String),
    /// Parameters could not be loaded.
    #[error("loading the parameters of {circuit}: {reason}")]
    ParamsLoad {
        /// Of which circuit.
        circuit: CircuitId,
        /// Why, with path and remedy.
        reason: String,
    },
    /// The request is right, but could not be kept, so it is not taken either.
    #[error("the job store takes no jobs: {0}; running jobs go on, retry later")]
    NotKept(StoreError),
    /// The engine has been stopped.
    #[error("the daemon has stopped")]
    Stopped,
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

impl EngineError {
    pub(super) fn unknown_job(job_id: &str) -> Self {
        Self::UnknownJob(log_label(job_id))
    }

    pub(super) fn lost_thread(error: tokio::task::JoinError) -> Self {
        Self::Internal(format!("a blocking thread was lost: {error}"))
    }
}
