//! Proves nothing, but repeatably.

use std::{thread, time::Duration};

use cuzk_server::{
    Attempt, DeviceInfo, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, ProvingError, Refusal,
};

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

    pretended::one_circuit!(Task);

    fn partitions(&self, task: &Task) -> usize {
        task.partitions
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
