//! The real thing behind the engine's port: PoRep requests, parameter files, GPUs, and the CPU.

mod params;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use bellperson::groth16::{PreparedVerifyingKey, Proof};
use blstrs::Bls12;
use cuzk_gpu::{
    arith::Backend,
    cpu::{Cpu, Pools},
    cuda::{self, prove::Devices},
    device::Device,
    params::{Library, ParamError, Provenance},
    prover::{Blinding, Partition, ProveError, Watcher},
    timeline::{Record, Timeline},
    timing::Timings,
};
use cuzk_server::{
    Attempt, DeviceInfo, Load, ParamsSize, PartitionProof, PartitionTimes, PhaseTimings, PinnedMemory, ProofRequest,
    Proved, Proving, ProvingError, Refusal,
};
use cuzk_synth::{
    circuit::{CircuitId, CircuitKind},
    error::InputError,
    porep::{self, Claims, PorepTask},
    r1cs::{Check, Wrong},
    synthesis::Synthesis,
};
use rand::rngs::OsRng;
use rayon::ThreadPool;

pub use self::params::Params;

/// Proves PoReps.
pub struct PorepProving {
    library: Library,
    settings: Settings,
    gpus: Devices,
    cpu: Device<Cpu>,
    timeline: Timeline,
    /// Page-locked memory of circuits on the GPUs, once it was asked for.
    pinned: Mutex<BTreeMap<CircuitId, u64>>,
}

/// How to prove.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The arithmetic that proofs are computed with.
    pub arithmetic: Backend,
    /// How much of a witness is checked before it is proven.
    pub check: Check,
    /// Where recorded constraint systems are kept; without it they are recorded at every start.
    pub circuit_cache: Option<PathBuf>,
    /// Whether the CPU proves: alone, or what no GPU can.
    pub on_cpu: bool,
    /// Memory that this host lends, in bytes.
    pub host_memory_bytes: u64,
    /// Threads for everything that comes before the prover: checks, witnesses, loading.
    pub synthesis: Arc<ThreadPool>,
    /// Threads of the prover.
    pub prover: Pools,
}

/// One synthesized partition.
pub struct Witness {
    circuit: CircuitId,
    values: Synthesis,
}

/// A checked PoRep, and the memory that each of its partitions takes.
pub struct Admitted {
    porep: PorepTask,
    partition_bytes: u64,
}

impl PorepProving {
    /// Proves with the parameters in `library`, on these GPUs.
    pub fn new(library: Library, settings: Settings, gpus: Devices, timeline: Timeline) -> Self {
        let cpu = Device::new(Cpu::with_pools(settings.arithmetic, settings.prover.clone()));
        Self { library, gpus, cpu, settings, timeline, pinned: Mutex::default() }
    }

    /// The GPUs.
    pub fn gpus(&self) -> &Devices {
        &self.gpus
    }

    /// Where the parameters are.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// How it proves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Host memory that a partition takes at its peak, from the lengths in the parameter file: two vectors of the domain
    /// (40 bytes an element in the wider form), the coefficients of H, and what synthesis leaves (five planes of bits, indexes
    /// and the few full scalars: 2.4 bytes a variable for 32 GiB, 2.8 for 2 KiB).
    fn partition_bytes(&self, circuit: CircuitId) -> u64 {
        self.layout(circuit).map_or(0, |layout| {
            let [_, h, l, ..] = layout.sections;
            (2 * 40 + 32) * (h.points + 1) + 3 * l.points
        })
    }

    fn prove_partition(
        &self,
        device: usize,
        params: &Params,
        partition: &Partition,
    ) -> Result<(Proof<Bls12>, Timings), ProveError> {
        let blinding = Blinding::random(OsRng);
        match device < self.gpus.infos().len() {
            true => self.gpus.prove(device, &params.on_gpus, partition, blinding),
            false => self.cpu.prove(&params.srs, partition, blinding),
        }
    }

    /// Names the constraint at which a synthesis is wrong.
    fn explain(circuit: CircuitId, wrong: Wrong) -> String {
        let (what, constraint) = match wrong {
            Wrong::Unsatisfied(constraint) => ("the witness does not satisfy constraint", constraint),
            Wrong::Factors(constraint) => ("synthesis gave factors that are not those of constraint", constraint),
        };
        let path = porep::path_of_constraint(circuit, constraint).ok().flatten();
        let path = path.map_or(String::new(), |path| format!(" ({path})"));
        format!("{what} {constraint}{path}")
    }

    /// Why a finished proof does not verify: the first constraint at which its synthesis is wrong, if that is why.
    fn why_invalid(&self, task: &Admitted, partition: usize, params: &Params) -> Option<String> {
        let values = task.porep.synthesize(partition).ok()?;
        let wrong = params.r1cs.first_wrong(&values, Check::Full)?;
        Some(Self::explain(task.porep.circuit(), wrong))
    }
}

impl Proving for PorepProving {
    type Task = Admitted;
    type Assignment = Witness;
    type Params = Params;

    fn admit(&self, request: &ProofRequest) -> Result<Admitted, Refusal> {
        if request.kind != CircuitKind::Porep {
            return Err(Refusal::Unimplemented(format!(
                "{} proofs are not built yet, only PoRep",
                request.kind.prefix()
            )));
        }
        let claims = Claims {
            sector_size: request.sector_size,
            registered_proof: request.registered_proof,
            sector_number: request.sector_number,
            miner_id: request.miner_id,
        };
        let check = || PorepTask::check(&request.vanilla_proof, &claims);
        let porep = self.settings.synthesis.install(check).map_err(refusal)?;
        let partition_bytes = self.partition_bytes(porep.circuit());
        Ok(Admitted { porep, partition_bytes })
    }

    fn circuit(&self, task: &Admitted) -> CircuitId {
        task.porep.circuit()
    }

    fn partitions(&self, task: &Admitted) -> usize {
        task.porep.partitions()
    }

    fn partition_bytes(&self, task: &Admitted) -> u64 {
        task.partition_bytes
    }

    fn params_available(&self, circuit: CircuitId) -> Result<(), Refusal> {
        match self.library.find(circuit) {
            Ok(_) => Ok(()),
            Err(ParamError::Circuit(error)) => Err(refusal(error)),
            Err(error) => Err(Refusal::FailedPrecondition(error.to_string())),
        }
    }

    fn provable_circuits(&self) -> Vec<CircuitId> {
        CircuitId::all().filter(|&circuit| self.library.find(circuit).is_ok()).collect()
    }

    fn warnings(&self) -> Vec<String> {
        CircuitId::all()
            .filter_map(|circuit| self.library.find(circuit).ok())
            .filter(|found| found.provenance == Provenance::Development)
            .map(|found| {
                format!(
                    "{}: INSECURE development parameters in use ({}); no network accepts these proofs",
                    found.circuit,
                    found.files.params.display()
                )
            })
            .collect()
    }

    fn params_bytes(&self, circuit: CircuitId) -> u64 {
        self.reckoned_bytes(circuit)
    }

    fn load_params(&self, circuit: CircuitId, load: &Load) -> Result<(Params, ParamsSize), String> {
        self.settings.synthesis.install(|| self.load_here(circuit, load))
    }

    fn is_hot(&self, params: &Params) -> bool {
        params.on_gpus.is_on_a_device()
    }

    fn synthesize(&self, task: &Admitted, partition: usize, attempt: &Attempt) -> Result<Witness, ProvingError> {
        attempt.go_on()?;
        let values = self.settings.synthesis.install(|| task.porep.synthesize(partition));
        let values = values.map_err(|e| ProvingError::Input(e.to_string()))?;
        Ok(Witness { circuit: task.porep.circuit(), values })
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let gpu = |(i, info): (usize, &cuda::driver::DeviceInfo)| DeviceInfo {
            id: info.uuid.clone(),
            ordinal: i as u32,
            name: info.name.clone(),
            pci: info.pci.clone(),
            memory_total_bytes: info.memory as u64,
            memory_free_bytes: self.gpus.free_memory(i).unwrap_or(0) as u64,
            workers: None,
            express: false,
            fallback: false,
        };
        let mut devices: Vec<_> = self.gpus.infos().enumerate().map(gpu).collect();
        if self.settings.on_cpu {
            devices.push(DeviceInfo {
                id: "cpu".to_owned(),
                ordinal: devices.len() as u32,
                name: "cpu".to_owned(),
                pci: String::new(),
                memory_total_bytes: self.settings.host_memory_bytes,
                memory_free_bytes: self.settings.host_memory_bytes,
                // A second worker would only take cores from the first: here "device" and "CPU tail" are the same cores.
                workers: Some(1),
                express: false,
                fallback: !devices.is_empty(),
            });
        }
        devices
    }

    fn revive(&self, device: usize) -> Result<(), String> {
        match device < self.gpus.infos().len() {
            true => self.gpus.revive(device).map_err(|e| e.to_string()),
            false => Ok(()),
        }
    }

    fn pinned_memory(&self) -> PinnedMemory {
        let (bytes, limit_bytes) = self.gpus.pinned_in_use();
        PinnedMemory { bytes, limit_bytes }
    }

    fn prove(
        &self,
        device: usize,
        params: &Params,
        witness: Witness,
        attempt: &Attempt,
    ) -> Result<Proved, ProvingError> {
        let progress = attempt.progress().clone();
        progress.enter("check");
        let Witness { circuit, values } = witness;
        let check = || params.r1cs.first_wrong(&values, self.settings.check);
        if let Some(wrong) = self.settings.synthesis.install(check) {
            return Err(ProvingError::Input(Self::explain(circuit, wrong)));
        }
        attempt.go_on()?;
        let partition = Partition {
            urgent: attempt.is_urgent(),
            watcher: Watcher::new(move |phase| progress.enter(phase.name())),
            ..Partition::new(params.r1cs.clone(), values)
        };
        let (proof, timings) = self.prove_partition(device, params, &partition).map_err(proving_error)?;
        let phases = phase_timings(&timings);
        self.timeline.record(device, timings);
        let mut bytes = Vec::new();
        proof.write(&mut bytes).map_err(|e| ProvingError::Device(e.to_string()))?;
        let proof = PartitionProof::try_from(bytes)
            .map_err(|bytes| ProvingError::Device(format!("a proof of {} bytes", bytes.len())))?;
        Ok(Proved { proof, timings: phases })
    }

    fn partition_times(&self, from: u64) -> Vec<PartitionTimes> {
        let record = |record: Record| PartitionTimes {
            number: record.number,
            device: record.device,
            lane: record.lane,
            phases: record.timings.intervals().iter().map(|i| (i.phase.name(), i.begin, i.end)).collect(),
        };
        self.timeline.recent().into_iter().filter(|record| record.number >= from).map(record).collect()
    }

    fn verify_partition(
        &self,
        task: &Admitted,
        partition: usize,
        params: &Params,
        proof: &PartitionProof,
    ) -> Result<bool, String> {
        // Reading checks that the points are on their curves and in the subgroup.
        let proof = Proof::<Bls12>::read(&proof[..]).map_err(|e| e.to_string())?;
        let valid = task.porep.verify_partition(partition, key(params), &proof).map_err(|e| e.to_string())?;
        if valid {
            return Ok(true);
        }
        // If the witness is right, the device was wrong, and the engine tries again.
        self.why_invalid(task, partition, params).map_or(Ok(false), Err)
    }

    fn verify_whole(&self, task: &Admitted, params: &Params, proof: &[u8]) -> Result<bool, String> {
        task.porep.verify_seal(key(params), proof).map_err(|e| e.to_string())
    }
}

fn key(params: &Params) -> &PreparedVerifyingKey<Bls12> {
    &params.srs.prepared
}

fn proving_error(error: ProveError) -> ProvingError {
    match error {
        ProveError::Input(reason) => ProvingError::Input(reason),
        ProveError::Device(error) if error.fault.is_sickness() => ProvingError::Sick(error.to_string()),
        ProveError::Device(error) => ProvingError::Device(error.to_string()),
    }
}

fn refusal(error: InputError) -> Refusal {
    match error {
        InputError::Invalid { field, reason } => Refusal::InvalidArgument { field, reason },
        InputError::Unimplemented(text) => Refusal::Unimplemented(text),
    }
}

fn phase_timings(timings: &Timings) -> PhaseTimings {
    let mut phases = PhaseTimings::default();
    for interval in timings.intervals() {
        phases.add(interval.phase.name(), interval.end - interval.begin);
    }
    phases
}
