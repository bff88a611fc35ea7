//! The real thing behind the engine's port: PoRep requests, parameter files and the CPU as the one device.

use bellperson::groth16::{PreparedVerifyingKey, Proof};
use blstrs::Bls12;
use cuzk_gpu::{
    arith::Backend,
    cpu::Cpu,
    device::Device,
    params::{Library, ParamError, Provenance},
    prover::Blinding,
    srs::{self, Srs},
    timing::Timings,
};
use cuzk_server::{DeviceInfo, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, Refusal};
use cuzk_synth::{
    assignment::Assignment,
    circuit::{CircuitId, CircuitKind},
    error::InputError,
    porep::{Claims, PorepTask},
};
use rand::rngs::OsRng;

/// Proves PoReps on the CPU.
pub struct PorepProving {
    library: Library,
    arithmetic: Backend,
    cpu: Device<Cpu>,
    host_memory_bytes: u64,
}

/// A checked PoRep, and the memory that each of its partitions takes.
pub struct Admitted {
    porep: PorepTask,
    partition_bytes: u64,
}

impl PorepProving {
    /// Proves with the parameters in `library`, on a host that lends so much memory, in bytes.
    pub fn new(library: Library, arithmetic: Backend, host_memory_bytes: u64) -> Self {
        Self { library, arithmetic, cpu: Device::new(Cpu::new(arithmetic)), host_memory_bytes }
    }

    /// Where the parameters are.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The arithmetic that proofs are computed with.
    pub fn arithmetic(&self) -> Backend {
        self.arithmetic
    }

    /// Host memory that a partition takes at its peak, from the lengths in the parameter file: the constraint values
    /// padded to the domain, and the witness twice (as field elements, and as integers while it is multiplied).
    fn partition_bytes(&self, circuit: CircuitId) -> u64 {
        const SCALAR_BYTES: u64 = 32;
        let layout = self.library.find(circuit).ok().and_then(|found| srs::check_layout(&found.files.params).ok());
        layout.map_or(0, |layout| {
            let [_, h, l, ..] = layout.sections;
            SCALAR_BYTES * (3 * (h.points + 1) + 2 * l.points)
        })
    }
}

impl Proving for PorepProving {
    type Task = Admitted;
    type Assignment = Assignment;
    type Params = Srs;

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
        let porep = PorepTask::check(&request.vanilla_proof, &claims).map_err(refusal)?;
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

    fn load_params(&self, circuit: CircuitId) -> Result<(Srs, u64), String> {
        let srs = self.library.load(circuit, self.arithmetic).map_err(|e| e.to_string())?;
        let bytes = srs.bytes();
        Ok((srs, bytes))
    }

    fn synthesize(&self, task: &Admitted, partition: usize) -> Result<Assignment, String> {
        task.porep.synthesize(partition).map_err(|e| e.to_string())
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![DeviceInfo {
            id: "cpu".to_owned(),
            ordinal: 0,
            name: "cpu".to_owned(),
            memory_total_bytes: self.host_memory_bytes,
            memory_free_bytes: self.host_memory_bytes,
            // A second worker would only take cores from the first: here "device" and "CPU tail" are the same cores.
            workers: Some(1),
        }]
    }

    fn prove(&self, _: usize, params: &Srs, assignment: Assignment) -> Result<Proved, String> {
        let (proof, timings) =
            self.cpu.prove(params, assignment, Blinding::random(OsRng)).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        proof.write(&mut bytes).map_err(|e| e.to_string())?;
        let proof = PartitionProof::try_from(bytes).map_err(|bytes| format!("a proof of {} bytes", bytes.len()))?;
        Ok(Proved { proof, timings: phase_timings(&timings) })
    }

    fn verify_partition(
        &self,
        task: &Admitted,
        partition: usize,
        params: &Srs,
        proof: &PartitionProof,
    ) -> Result<bool, String> {
        // Reading checks that the points are on their curves and in the subgroup.
        let proof = Proof::<Bls12>::read(&proof[..]).map_err(|e| e.to_string())?;
        task.porep.verify_partition(partition, key(params), &proof).map_err(|e| e.to_string())
    }

    fn verify_whole(&self, task: &Admitted, params: &Srs, proof: &[u8]) -> Result<bool, String> {
        task.porep.verify_seal(key(params), proof).map_err(|e| e.to_string())
    }
}

fn key(params: &Srs) -> &PreparedVerifyingKey<Bls12> {
    &params.prepared
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
