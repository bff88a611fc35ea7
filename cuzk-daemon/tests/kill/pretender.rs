//! Proves nothing, but repeatably.

use std::{thread, time::Duration};

use cuzk_server::{
    Attempt, DeviceInfo, Load, ParamsSize, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, ProvingError,
    Refusal,
};
use cuzk_synth::circuit::CircuitId;

use crate::{pretended, work};

pub(crate) struct Pretender;

/// What it keeps of a payload.
pub(crate) struct Task {
    digest: u64,
    partitions: usize,
    millis: u64,
}

pub(crate) struct Assignment {
    digest: u64,
    partition: usize,
    millis: u64,
}

impl Proving for Pretender {
    type Task = Task;
    type Assignment = Assignment;
    type Params = ();

    fn admit(&self, request: &ProofRequest) -> Result<Task, Refusal> {
        let payload = &request.vanilla_proof;
        Ok(Task { digest: work::digest(payload), partitions: work::partitions(payload), millis: work::millis(payload) })
    }

    fn circuit(&self, _: &Task) -> CircuitId {
        pretended::CIRCUIT
    }

    fn partitions(&self, task: &Task) -> usize {
        task.partitions
    }

    fn partition_bytes(&self, _: &Task) -> u64 {
        pretended::BYTES
    }

    fn params_available(&self, _: CircuitId) -> Result<(), Refusal> {
        Ok(())
    }

    fn provable_circuits(&self) -> Vec<CircuitId> {
        vec![pretended::CIRCUIT]
    }

    fn params_bytes(&self, _: CircuitId) -> u64 {
        pretended::BYTES
    }

    fn load_params(&self, _: CircuitId, _: &Load) -> Result<((), ParamsSize), String> {
        Ok(pretended::PARAMS)
    }

    fn synthesize(&self, task: &Task, partition: usize, _: &Attempt) -> Result<Assignment, ProvingError> {
        Ok(Assignment { digest: task.digest, partition, millis: task.millis })
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        pretended::devices(Some(4))
    }

    fn prove(&self, _: usize, (): &(), assignment: Assignment, _: &Attempt) -> Result<Proved, ProvingError> {
        thread::sleep(Duration::from_millis(assignment.millis));
        let proof = work::proof(assignment.digest, assignment.partition);
        Ok(Proved { proof, timings: PhaseTimings::default() })
    }

    fn verify_partition(&self, task: &Task, partition: usize, (): &(), proof: &PartitionProof) -> Result<bool, String> {
        Ok(*proof == work::proof(task.digest, partition))
    }

    fn verify_whole(&self, task: &Task, (): &(), proof: &[u8]) -> Result<bool, String> {
        let whole: Vec<u8> = (0..task.partitions).flat_map(|partition| work::proof(task.digest, partition)).collect();
        Ok(proof == whole)
    }
}
