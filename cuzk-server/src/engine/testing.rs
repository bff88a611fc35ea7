//! A [`Proving`] whose behaviour tests write into the payload, and gates that hold it where they want it.

use std::{
    collections::HashSet,
    sync::{Arc, Condvar, Mutex, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use cuzk_synth::circuit::{CircuitId, CircuitKind, SectorSize};

use super::{Engine, Submission};
use crate::{
    core::job::Priority,
    proving::{
        Attempt, DeviceInfo, Load, ParamsSize, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving,
        ProvingError, Refusal,
    },
};

/// Stops threads until it is opened, and tells who has come.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

impl Gate {
    /// Comes to the gate, and passes when it is open.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, |s| !s.0).unwrap();
        assert!(!waited.timed_out(), "nobody opened the gate");
    }

    /// Waits until so many have come, ever.
    pub(crate) fn arrived(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, |s| s.1 < count).unwrap();
        assert!(!waited.timed_out(), "{} came to the gate, not {count}", state.1);
    }

    /// Lets everyone pass, for ever.
    pub(crate) fn open(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_all();
    }
}

/// Proves by filling 192 bytes with the payload's tag. The payload is words: `tag=7`, `parts=3`, and what to do wrong.
#[derive(Default)]
pub(crate) struct Fake {
    /// Number of devices; 0 counts as 1.
    pub(crate) devices: usize,
    /// Where `hold-synth` synthesis stops.
    pub(crate) synth: Gate,
    /// Where `hold-prove` proving stops.
    pub(crate) prove: Gate,
    /// Where `hold-verify` verification stops.
    pub(crate) verify: Gate,
    /// Where the loading of 32 GiB parameters stops.
    pub(crate) load: Gate,
    /// What was proven, in order: tag and partition.
    pub(crate) proven: Mutex<Vec<(u8, usize)>>,
    /// Circuits whose parameters were loaded, in order.
    pub(crate) loads: Mutex<Vec<CircuitId>>,
    /// How many requests were parsed.
    pub(crate) admitted: Mutex<usize>,
    failed_once: Mutex<HashSet<(u8, usize)>>,
    alive: Arc<()>,
}

pub(crate) struct Task {
    words: String,
    circuit: CircuitId,
}

impl Task {
    fn says(&self, word: &str) -> bool {
        self.words.split(' ').any(|w| w == word)
    }

    fn number(&self, name: &str) -> Option<u8> {
        let prefix = format!("{name}=");
        self.words.split(' ').find_map(|w| w.strip_prefix(&prefix)?.parse().ok())
    }

    fn tag(&self) -> u8 {
        self.number("tag").unwrap_or(0)
    }
}

pub(crate) struct Assignment {
    tag: u8,
    partition: usize,
    task: Arc<Task>,
}

/// Counted by the fake, so that tests see when they are released.
pub(crate) struct Params {
    circuit: CircuitId,
    _alive: Arc<()>,
}

impl Fake {
    pub(crate) fn new(devices: usize) -> Arc<Self> {
        Arc::new(Self { devices, ..Self::default() })
    }

    /// Parameter sets that somebody holds.
    pub(crate) fn params_alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }

    fn first_time(&self, tag: u8, partition: usize) -> bool {
        self.failed_once.lock().unwrap().insert((tag, partition))
    }
}

impl Proving for Fake {
    type Task = Arc<Task>;
    type Assignment = Assignment;
    type Params = Params;

    fn admit(&self, request: &ProofRequest) -> Result<Arc<Task>, Refusal> {
        *self.admitted.lock().unwrap() += 1;
        if request.kind != CircuitKind::Porep {
            return Err(Refusal::Unimplemented(format!("{} proofs are not built", request.kind.prefix())));
        }
        let size = request.checked_sector_size()?;
        let words = String::from_utf8_lossy(&request.vanilla_proof[..request.vanilla_proof.len().min(200)]);
        let task = Task { words: words.trim_end_matches('\0').to_owned(), circuit: CircuitId::porep(size) };
        if task.says("invalid") {
            return Err(Refusal::invalid("vanilla_proof", "JSON: line 1, column 2: nothing there"));
        }
        assert!(!task.says("admit-panic"), "parser fell over");
        Ok(Arc::new(task))
    }

    fn circuit(&self, task: &Arc<Task>) -> CircuitId {
        task.circuit
    }

    fn partitions(&self, task: &Arc<Task>) -> usize {
        task.number("parts").unwrap_or(1).into()
    }

    fn partition_bytes(&self, _: &Arc<Task>) -> u64 {
        1 << 20
    }

    fn params_available(&self, circuit: CircuitId) -> Result<(), Refusal> {
        match circuit.size {
            SectorSize::Kib2 | SectorSize::Gib32 | SectorSize::Mib8 => Ok(()),
            _ => Err(Refusal::FailedPrecondition(format!("/params/{circuit}.params is missing: fetch it"))),
        }
    }

    fn provable_circuits(&self) -> Vec<CircuitId> {
        CircuitId::all().filter(|c| c.kind == CircuitKind::Porep && self.params_available(*c).is_ok()).collect()
    }

    fn warnings(&self) -> Vec<String> {
        vec!["fake proofs".to_owned()]
    }

    fn params_bytes(&self, _: CircuitId) -> u64 {
        1000
    }

    fn load_params(&self, circuit: CircuitId, load: &Load) -> Result<(Params, ParamsSize), String> {
        self.loads.lock().unwrap().push(circuit);
        match circuit.size {
            SectorSize::Gib32 => {
                load.report(1, 4);
                self.load.pass();
                if load.cancelled().load(Ordering::Relaxed) {
                    return Err("cancelled".to_owned());
                }
            }
            SectorSize::Mib8 => return Err("digest mismatch".to_owned()),
            _ => {}
        }
        Ok((Params { circuit, _alive: self.alive.clone() }, ParamsSize { bytes: 1000, host_bytes: 1000 }))
    }

    fn is_hot(&self, params: &Params) -> bool {
        params.circuit.size == SectorSize::Gib32
    }

    fn synthesize(&self, task: &Arc<Task>, partition: usize, _: &Attempt) -> Result<Assignment, ProvingError> {
        if task.says("hold-synth") {
            self.synth.pass();
        }
        assert!(!task.says("synth-panic"), "index out of bounds");
        if task.says("synth-error") {
            return Err(ProvingError::Input("constraint 7 is not satisfied".to_owned()));
        }
        Ok(Assignment { tag: task.tag(), partition, task: task.clone() })
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let info = |n: usize| DeviceInfo {
            pci: format!("0000:{n:02x}:00.0"),
            id: format!("dev-{n}"),
            ordinal: n as u32,
            name: "fake".to_owned(),
            memory_total_bytes: 100,
            memory_free_bytes: 50,
            workers: Some(1),
            express: false,
            fallback: false,
        };
        (0..self.devices.max(1)).map(info).collect()
    }

    fn prove(
        &self,
        _device: usize,
        _: &Params,
        assignment: Assignment,
        attempt: &Attempt,
    ) -> Result<Proved, ProvingError> {
        let Assignment { tag, partition, task } = assignment;
        if task.says("until-stopped") {
            self.prove.pass();
            while !attempt.is_stopped() {
                std::thread::sleep(Duration::from_millis(1));
            }
            attempt.go_on()?;
        }
        attempt.progress().enter(PhaseTimings::LOCK_HOLD);
        if task.says("hold-prove") {
            self.prove.pass();
        }
        assert!(!task.says("prove-panic"), "kernel {tag} fell over");
        if task.says("prove-error") {
            return Err(ProvingError::Device("out of memory".to_owned()));
        }
        let bad =
            task.number("bad") == Some(partition as u8) && (!task.says("once") || self.first_time(tag, partition));
        self.proven.lock().unwrap().push((tag, partition));
        let mut timings = PhaseTimings::default();
        timings.add(PhaseTimings::LOCK_HOLD, Duration::from_millis(7));
        Ok(Proved { proof: [if bad { 255 } else { tag }; 192], timings })
    }

    fn verify_partition(&self, task: &Arc<Task>, _: usize, _: &Params, proof: &PartitionProof) -> Result<bool, String> {
        assert!(!task.says("verify-panic"), "pairing fell over");
        if task.says("hold-verify") {
            self.verify.pass();
        }
        Ok(proof[0] == task.tag())
    }

    fn verify_whole(&self, task: &Arc<Task>, _: &Params, proof: &[u8]) -> Result<bool, String> {
        let partitions = self.partitions(task);
        Ok(!task.says("whole-bad") && proof.len() == 192 * partitions && proof.iter().all(|b| *b == task.tag()))
    }
}

/// A 2 KiB PoRep request with these words as its payload.
pub(crate) fn request(words: &str) -> ProofRequest {
    ProofRequest {
        sector_size: 2048,
        vanilla_proof: Bytes::copy_from_slice(words.as_bytes()),
        ..ProofRequest::new(CircuitKind::Porep)
    }
}

/// The same under a client's id.
pub(crate) fn submission(request_id: &str, words: &str) -> Submission {
    Submission { request_id: request_id.to_owned(), priority: None, request: request(words) }
}

/// The same with a priority.
pub(crate) fn urgent(request_id: &str, words: &str, priority: Priority) -> Submission {
    Submission { priority: Some(priority), ..submission(request_id, words) }
}

impl Engine<Fake> {
    /// Clients that wait for a job, over all jobs.
    pub(crate) fn waiting_clients(&self) -> usize {
        let count = |live: &super::shared::Live<Fake>| live.outcome.receiver_count();
        self.handle.shared.with(|state, _| state.live.values().map(count).sum())
    }
}
