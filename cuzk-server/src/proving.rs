//! The port between the engine and the mathematics: what the engine asks of whoever synthesizes and proves.
//!
//! The engine decides *what* runs *when*; an implementation of [`Proving`] does one thing at a time, on the
//! thread that calls it. All methods are called from several threads at once, and none from an async thread.
//! A panic in any of them fails the attempt it was called for and nothing else.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use cuzk_synth::circuit::{CircuitId, CircuitKind, SectorSize};

use crate::memory::Budget;

/// Length of one Groth16 proof over BLS12-381, in bytes.
pub const PROOF_BYTES: usize = 192;

/// The proof of one partition: A and C compressed in G1, B compressed in G2.
pub type PartitionProof = [u8; PROOF_BYTES];

/// Turns requests into proofs, partition by partition.
pub trait Proving: Send + Sync + 'static {
    /// A checked request: all that synthesis and verification need of it.
    type Task: Send + Sync + 'static;
    /// One synthesized partition, ready for a device.
    type Assignment: Send + 'static;
    /// The proving parameters of one circuit. Large; shared by all jobs of the circuit.
    type Params: Send + Sync + 'static;

    /// Told before anything else: where to reserve the memory that devices take for themselves
    /// ([`crate::memory::Use::Device`]). Parameters and partitions are reserved by the engine.
    fn use_budget(&self, _: &Budget) {}

    /// Parses and checks a request. Blocking, CPU only; nothing is queued if it refuses.
    fn admit(&self, request: &ProofRequest) -> Result<Self::Task, Refusal>;

    /// The circuit that proves the task.
    fn circuit(&self, task: &Self::Task) -> CircuitId;

    /// How many partitions the task has; at least 1.
    fn partitions(&self, task: &Self::Task) -> usize;

    /// Host memory of one synthesized partition, in bytes, from the start of its synthesis to the end of its proof.
    fn partition_bytes(&self, task: &Self::Task) -> u64;

    /// Whether the parameter files of a circuit are present and may be used. Cheap: looks, does not read.
    fn params_available(&self, circuit: CircuitId) -> Result<(), Refusal>;

    /// The circuits for which [`Self::params_available`] agrees.
    fn provable_circuits(&self) -> Vec<CircuitId>;

    /// What an operator should know, one sentence each, such as development parameters in use.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Host memory that the parameters of a circuit will take, in bytes: reserved before they are loaded. 0 if that is
    /// not known; the truth is told by [`Self::load_params`].
    fn params_bytes(&self, circuit: CircuitId) -> u64;

    /// Loads the parameters of a circuit and tells their size. Blocking, seconds to minutes. Tells `load` how far it is,
    /// and ends with an error soon after it was cancelled. Never called twice at once for one circuit.
    fn load_params(&self, circuit: CircuitId, load: &Load) -> Result<(Self::Params, ParamsSize), String>;

    /// Whether loaded parameters are on a device too, so that a proof begins at once.
    fn is_hot(&self, _params: &Self::Params) -> bool {
        false
    }

    /// Synthesizes one partition (`0..partitions`). Blocking; may use a thread pool of its own.
    fn synthesize(
        &self,
        task: &Self::Task,
        partition: usize,
        attempt: &Attempt,
    ) -> Result<Self::Assignment, ProvingError>;

    /// The devices, in the order of the `device` index of [`Self::prove`]; number, ids and order never change.
    /// Asked at the start and now and then, to learn about free memory.
    fn devices(&self) -> Vec<DeviceInfo>;

    /// When the phases of the last partitions ran, of those that have this number or a later one.
    fn partition_times(&self, _from: u64) -> Vec<PartitionTimes> {
        Vec::new()
    }

    /// Page-locked host memory; zeros where there is none.
    fn pinned_memory(&self) -> PinnedMemory {
        PinnedMemory::default()
    }

    /// Proves one partition on a device. Blocking. Takes the device's lock by itself, only around the kernel phase.
    /// After an error that another try may cure, the engine synthesizes the partition again and gives it to another device
    /// if there is one.
    fn prove(
        &self,
        device: usize,
        params: &Self::Params,
        assignment: Self::Assignment,
        attempt: &Attempt,
    ) -> Result<Proved, ProvingError>;

    /// Makes a device that was sick usable again and makes sure that it is: a new context, a known proof. Blocking.
    /// The engine gives the device no work until this succeeds.
    fn revive(&self, _device: usize) -> Result<(), String> {
        Ok(())
    }

    /// Whether the proof of one partition is right for the task's public inputs.
    fn verify_partition(
        &self,
        task: &Self::Task,
        partition: usize,
        params: &Self::Params,
        proof: &PartitionProof,
    ) -> Result<bool, String>;

    /// Whether the partitions' proofs, one after the other, are right as a whole.
    fn verify_whole(&self, task: &Self::Task, params: &Self::Params, proof: &[u8]) -> Result<bool, String>;
}

/// One attempt at one partition, as whoever works at it sees it.
#[derive(Debug, Default)]
pub struct Attempt {
    stopped: AtomicBool,
    urgent: AtomicBool,
    progress: Progress,
}

/// Where an attempt tells what is being done, for those who watch. Clones are one.
#[derive(Clone, Default)]
pub struct Progress(Arc<ProgressState>);

#[derive(Default)]
struct ProgressState {
    /// What was done, in order, and since when; the last is what is being done.
    phases: Mutex<Vec<(&'static str, Instant)>>,
    /// Told when that changes.
    on_change: Option<Box<dyn Fn() + Send + Sync>>,
}

/// Phases of one attempt that are remembered.
const MOST_PHASES: usize = 64;

impl Progress {
    /// With somebody to tell of changes, who must return at once.
    pub(crate) fn watched(on_change: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(ProgressState { phases: Mutex::default(), on_change: Some(Box::new(on_change)) }))
    }

    /// Says what is being done from now on. Cheap, but not for inner loops. Names come from the code, as in
    /// [`PhaseTimings`].
    pub fn enter(&self, phase: &'static str) {
        {
            let mut phases = self.lock();
            // Whoever tells of more is remembered by the first ones and the latest.
            phases.truncate(MOST_PHASES - 1);
            phases.push((phase, Instant::now()));
        }
        if let Some(tell) = &self.0.on_change {
            tell();
        }
    }

    /// What is being done and since when, if that was said.
    pub fn phase(&self) -> Option<(&'static str, Instant)> {
        self.lock().last().copied()
    }

    /// All that was said.
    pub(crate) fn phases(&self) -> Vec<(&'static str, Instant)> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(&'static str, Instant)>> {
        self.0.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.phase().map(|(name, _)| name)).finish()
    }
}

impl Attempt {
    /// An attempt; an urgent one goes first wherever it has to wait, such as at a device's lock.
    pub fn new(urgent: bool) -> Self {
        Self { urgent: AtomicBool::new(urgent), ..Self::default() }
    }

    /// As [`Self::new`], with somebody to tell when its phase changes.
    pub(crate) fn watched(urgent: bool, progress: Progress) -> Self {
        Self { progress, ..Self::new(urgent) }
    }

    /// Where it tells what is being done.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether nobody wants its result any more. To be asked between phases; the answer to it is
    /// [`ProvingError::Stopped`].
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether it goes first.
    pub fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Relaxed)
    }

    /// The error if it is stopped.
    pub fn go_on(&self) -> Result<(), ProvingError> {
        if self.is_stopped() { Err(ProvingError::Stopped) } else { Ok(()) }
    }

    /// Tells whoever works at it to stop.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Why a partition was not synthesized or not proven, by what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvingError {
    /// The request or the parameters are wrong: no try and no device will do.
    #[error("{0}")]
    Input(String),
    /// It failed here and now: another try or another device may do.
    #[error("{0}")]
    Device(String),
    /// As [`Self::Device`], and the device must have no more work before it is revived.
    #[error("{0}")]
    Sick(String),
    /// The attempt was stopped.
    #[error("stopped")]
    Stopped,
}

/// A request as the client sent it, apart from its name and priority. Nothing is checked yet except the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofRequest {
    /// What is to be proven.
    pub kind: CircuitKind,
    /// In bytes.
    pub sector_size: u64,
    /// The number of the registered proof (for PoRep the seal proof, 0 to 19).
    pub registered_proof: u64,
    /// The sector's number within its miner.
    pub sector_number: u64,
    /// The miner's actor id.
    pub miner_id: u64,
    /// PoSt challenge randomness.
    pub randomness: Bytes,
    /// Which WindowPoSt partition.
    pub partition_index: u32,
    /// PoRep: the C1 output. Shares the receive buffer.
    pub vanilla_proof: Bytes,
    /// The kinds that take several vanilla proofs.
    pub vanilla_proofs: Vec<Bytes>,
    /// SnapDeals: the old replica's commitment.
    pub comm_r_old: Bytes,
    /// SnapDeals: the new replica's commitment.
    pub comm_r_new: Bytes,
    /// SnapDeals: the new data's commitment.
    pub comm_d_new: Bytes,
}

impl ProofRequest {
    /// A request of a kind with every other field zero or empty.
    pub fn new(kind: CircuitKind) -> Self {
        Self {
            kind,
            sector_size: 0,
            registered_proof: 0,
            sector_number: 0,
            miner_id: 0,
            randomness: Bytes::new(),
            partition_index: 0,
            vanilla_proof: Bytes::new(),
            vanilla_proofs: Vec::new(),
            comm_r_old: Bytes::new(),
            comm_r_new: Bytes::new(),
            comm_d_new: Bytes::new(),
        }
    }

    /// The sector size as one the network has, or the refusal that names the field.
    pub fn checked_sector_size(&self) -> Result<SectorSize, Refusal> {
        SectorSize::from_bytes(self.sector_size).ok_or_else(|| {
            Refusal::invalid(
                "sector_size",
                format!(
                    "{} bytes is no sector size of the network (2 KiB, 8 MiB, 512 MiB, 32 GiB, 64 GiB)",
                    self.sector_size
                ),
            )
        })
    }

    /// Bytes of all its variable-length fields together.
    pub fn payload_bytes(&self) -> u64 {
        let fixed = [&self.randomness, &self.vanilla_proof, &self.comm_r_old, &self.comm_r_new, &self.comm_d_new];
        let bytes: usize = fixed.into_iter().chain(&self.vanilla_proofs).map(Bytes::len).sum();
        bytes as u64
    }
}

/// Why a request is not taken, by who has to act: the caller, this program's authors, the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong.
    #[error("{field}: {reason}")]
    InvalidArgument {
        /// The field of the request, such as `vanilla_proof` or `vanilla_proof.Phase1Out`.
        field: String,
        /// What was expected and what was found, in one line.
        reason: String,
    },
    /// The request may be right, but this build does not prove it.
    #[error("{0}")]
    Unimplemented(String),
    /// Something must be done on this machine first, such as fetching parameters. Says what, and where.
    #[error("{0}")]
    FailedPrecondition(String),
}

impl Refusal {
    /// A wrong field and the reason.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::InvalidArgument { field: field.into(), reason: reason.into() }
    }
}

/// One device that proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What clients and logs call it: "cpu", or the device's UUID. Unique.
    pub id: String,
    /// The number clients see.
    pub ordinal: u32,
    /// The model's name, for people.
    pub name: String,
    /// Its PCI address, such as `0000:01:00.0`; empty if it has none.
    pub pci: String,
    /// All its memory, in bytes.
    pub memory_total_bytes: u64,
    /// Its free memory, in bytes, as last measured.
    pub memory_free_bytes: u64,
    /// How many partitions it should be given at once; `None` leaves it to `gpu_workers_per_device`.
    pub workers: Option<usize>,
    /// Whether it can take one partition more if that is CRITICAL, so that it waits for one running partition at most.
    pub express: bool,
    /// Whether it stands in for the others only: it gets a partition while every other device that takes the circuit is
    /// sick, or has failed on the partition.
    pub fallback: bool,
}

/// One load of parameters, as whoever loads sees it.
#[derive(Debug, Default)]
pub struct Load {
    cancelled: AtomicBool,
    done: AtomicU64,
    of: AtomicU64,
}

impl Load {
    /// So many bytes of so many have been read.
    pub fn report(&self, done: u64, of: u64) {
        self.of.store(of, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// How much of it has been read, in percent, if anything was reported.
    pub fn percent(&self) -> Option<u64> {
        let of = self.of.load(Ordering::Relaxed);
        (of > 0).then(|| self.done.load(Ordering::Relaxed).min(of) * 100 / of)
    }

    /// Tells whoever loads to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Set once it is to stop.
    pub fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }
}

/// What loaded parameters take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamsSize {
    /// All of them, wherever they are: what clients are shown.
    pub bytes: u64,
    /// The host memory that they hold. Pages of mapped files do not count: the kernel takes them back at will.
    pub host_bytes: u64,
}

/// When the phases of one proven partition ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTimes {
    /// Counts proven partitions, from 0.
    pub number: u64,
    /// The index of the device.
    pub device: usize,
    /// The thread that proved it.
    pub lane: u32,
    /// Name, begin and end of each phase; names as in [`PhaseTimings`].
    pub phases: Vec<(&'static str, Instant, Instant)>,
}

/// Page-locked host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinnedMemory {
    /// In use, in bytes.
    pub bytes: u64,
    /// The most that may be used, in bytes.
    pub limit_bytes: u64,
}

/// A partition's proof and how long its phases took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The proof.
    pub proof: PartitionProof,
    /// Phase by phase.
    pub timings: PhaseTimings,
}

/// Named durations of one partition's proof, in the order in which the phases ran.
///
/// Names are metric labels, so they come from the code, never from a request. The times around the device's lock
/// go under [`PhaseTimings::LOCK_WAIT`] and [`PhaseTimings::LOCK_HOLD`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimings {
    phases: Vec<(&'static str, Duration)>,
}

impl PhaseTimings {
    /// Waiting for the device's lock.
    pub const LOCK_WAIT: &'static str = "lock_wait";
    /// Holding the device's lock: the time the device works for this partition.
    pub const LOCK_HOLD: &'static str = "lock_hold";

    /// Adds a phase; a name that is there already gets the sum.
    pub fn add(&mut self, name: &'static str, duration: Duration) {
        match self.phases.iter_mut().find(|(n, _)| *n == name) {
            Some((_, sum)) => *sum += duration,
            None => self.phases.push((name, duration)),
        }
    }

    /// The duration of a phase; zero if it did not run.
    pub fn get(&self, name: &str) -> Duration {
        self.iter().find(|(n, _)| *n == name).map_or(Duration::ZERO, |(_, d)| d)
    }

    /// All phases in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        self.phases.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_tells_how_far_it_is() {
        let load = Load::default();
        assert_eq!(load.percent(), None);
        load.report(45, 200);
        assert_eq!(load.percent(), Some(22));
        load.cancel();
        assert!(load.cancelled().load(Ordering::Relaxed));
    }

    #[test]
    fn an_attempt_remembers_its_first_phases_and_the_latest() {
        let progress = Progress::default();
        assert_eq!(progress.phase(), None);
        for _ in 0..2 * MOST_PHASES {
            progress.enter("stage");
        }
        progress.enter("verify");
        assert_eq!(progress.phase().map(|(name, _)| name), Some("verify"));
        assert_eq!(progress.phases().len(), MOST_PHASES);
    }

    #[test]
    fn phases_add_up_under_one_name() {
        let mut timings = PhaseTimings::default();
        timings.add("ntt", Duration::from_millis(2));
        timings.add(PhaseTimings::LOCK_HOLD, Duration::from_millis(9));
        timings.add("ntt", Duration::from_millis(3));
        assert_eq!(timings.get("ntt"), Duration::from_millis(5));
        assert_eq!(timings.get("msm"), Duration::ZERO);
        assert_eq!(timings.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["ntt", "lock_hold"]);
    }

    #[test]
    fn unknown_sector_sizes_are_refused_by_name() {
        let mut request = ProofRequest::new(CircuitKind::Porep);
        request.sector_size = 2049;
        let refusal = request.checked_sector_size().unwrap_err().to_string();
        assert!(refusal.starts_with("sector_size: 2049 bytes"), "{refusal}");
        request.sector_size = 2048;
        assert_eq!(request.checked_sector_size(), Ok(SectorSize::Kib2));
    }

    #[test]
    fn payload_counts_every_bytes_field() {
        let mut request = ProofRequest::new(CircuitKind::Snap);
        request.vanilla_proof = Bytes::from_static(b"12345");
        request.vanilla_proofs = vec![Bytes::from_static(b"123"), Bytes::from_static(b"1")];
        request.comm_d_new = Bytes::from_static(b"12");
        request.randomness = Bytes::from_static(b"1");
        assert_eq!(request.payload_bytes(), 12);
    }
}
