#![doc = include_str!("../README.md")]

pub mod access;
pub mod config;
pub mod core;
pub mod engine;
pub mod grpc;
pub mod http;
pub mod json;
pub mod memory;
pub mod metrics;
pub mod proving;
pub mod sim;
pub mod store;

pub use config::EngineConfig;
pub use engine::{
    Awaited, DrainReport, Engine, EngineError, EngineStatus, Lifecycle, Preloaded, Submission, Submitted,
};
pub use grpc::{Connection, Connections, Handshake, Io, Listener, Secure, Secured, ServeError, ServeOptions, serve};
pub use proving::{
    Attempt, DeviceInfo, Load, ParamsSize, PartitionProof, PartitionTimes, PhaseTimings, PinnedMemory, Progress,
    ProofRequest, Proved, Proving, ProvingError, Refusal,
};

pub use crate::core::{
    job::{JobStatus, Outcome, Priority},
    params::Evicted,
    view::{JobFilter, JobState},
};
