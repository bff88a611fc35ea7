//! What an operator can set about the engine.

use std::time::Duration;

use cuzk_synth::circuit::CircuitId;

use crate::memory::Shares;

/// Sizes of pools, queues and budgets. [`Default`] suits one machine with one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Prover threads a device. Two hide the CPU part of one proof behind the kernels of the next.
    pub gpu_workers_per_device: usize,
    /// Partitions synthesized at once. One synthesis may use several cores by itself.
    pub synthesis_threads: usize,
    /// Jobs that may wait for their first synthesis; further ones are refused.
    pub max_queued_jobs: usize,
    /// The budget of host memory and how it is divided.
    pub memory: Shares,
    /// Partitions ready ahead of the provers of each device; `None`: one for each prover.
    pub lookahead: Option<usize>,
    /// Attempts at one partition before its job fails.
    pub attempts: u32,
    /// How long jobs of one priority may be taken out of order so that parameters need not be exchanged.
    pub group_delay: Duration,
    /// Devices, by id or ordinal, that take only certain circuits.
    pub affinity: Vec<(String, Vec<CircuitId>)>,
    /// Finished jobs that are kept for clients that come back.
    pub retain_finished: usize,
    /// Bytes of finished jobs that are kept.
    pub retain_finished_bytes: u64,
    /// How long finished jobs are kept.
    pub retain_finished_for: Duration,
    /// How long a job goes on after the last client that called `Prove` for it has gone.
    pub abandon_grace: Duration,
    /// Requests parsed and checked at once.
    pub admit_threads: usize,
    /// After each such time a waiting job rises one priority, up to HIGH, so that LOW is never starved.
    pub promote_after: Duration,
    /// A synthesis or proof of one 32 GiB partition that runs longer than this is given up: nobody waits for ever. Smaller
    /// circuits have less time; see [`crate::core::watchdog::stage_limit`].
    pub stage_limit: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            gpu_workers_per_device: 2,
            synthesis_threads: 1,
            max_queued_jobs: 64,
            memory: Shares::of(16 << 30, 4 << 30),
            lookahead: None,
            attempts: 3,
            group_delay: Duration::from_secs(120),
            affinity: Vec::new(),
            retain_finished: 4096,
            retain_finished_bytes: 64 << 20,
            // A node that was away for some days finds its proofs.
            retain_finished_for: Duration::from_secs(7 * 24 * 3600),
            abandon_grace: Duration::from_secs(60),
            admit_threads: 2,
            promote_after: Duration::from_secs(30 * 60),
            // Clients give up after half an hour by default; a 32 GiB partition takes a CPU some ten minutes.
            stage_limit: Duration::from_secs(30 * 60),
        }
    }
}
