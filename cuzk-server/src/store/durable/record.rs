//! What is kept of a job, and its rows in the database.
//!
//! Rows are protobuf messages, so that later versions can add fields; their names for kinds, priorities and states are
//! text. The payload's bytes are not in the row but in a file of their own, one field after the other; the row has the
//! lengths. What the file says is checked by the payload digest, which is part of the job's identity.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cuzk_synth::circuit::{CircuitId, CircuitKind};
use prost::Message;

use crate::{
    core::{
        NewJob,
        identity::Identity,
        job::{JobKey, JobStatus, JobTimings, Outcome, Priority},
    },
    proving::{PROOF_BYTES, PartitionProof, ProofRequest},
    store::KeptJob,
};

/// An accepted job, apart from its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredJob {
    /// Which.
    pub(super) key: JobKey,
    /// What it is the same as.
    pub(super) identity: Identity,
    /// The client's name for it, fit for a log.
    pub(super) label: String,
    /// What proves it.
    pub(super) circuit: CircuitId,
    /// How urgent it was when it came.
    pub(super) priority: Priority,
    /// Number of partitions.
    pub(super) partitions: usize,
    /// Host memory of one synthesized partition, in bytes.
    pub(super) partition_bytes: u64,
    /// Host memory of the circuit's parameters, in bytes.
    pub(super) params_bytes: u64,
    /// When it was accepted, in milliseconds since 1970.
    pub(super) accepted_unix_ms: u64,
    /// Its request, apart from the payload.
    pub(super) envelope: Envelope,
}

/// A request without the bytes of its payload, but with their lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    sector_size: u64,
    registered_proof: u64,
    sector_number: u64,
    miner_id: u64,
    partition_index: u32,
    /// Of [`payload_parts`], in that order.
    lengths: Vec<u64>,
}

/// An ended job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredOutcome {
    /// What it is the same as.
    pub(super) identity: Identity,
    /// How it ended.
    pub(super) outcome: Outcome,
    /// When, in milliseconds since 1970.
    pub(super) ended_unix_ms: u64,
}

/// The payload's fields in the order of the file.
pub(super) fn payload_parts(request: &ProofRequest) -> Vec<&Bytes> {
    let fixed =
        [&request.randomness, &request.vanilla_proof, &request.comm_r_old, &request.comm_r_new, &request.comm_d_new];
    fixed.into_iter().chain(&request.vanilla_proofs).collect()
}

impl Envelope {
    /// That of a request.
    pub(super) fn of(request: &ProofRequest) -> Self {
        Self {
            sector_size: request.sector_size,
            registered_proof: request.registered_proof,
            sector_number: request.sector_number,
            miner_id: request.miner_id,
            partition_index: request.partition_index,
            lengths: payload_parts(request).into_iter().map(|part| part.len() as u64).collect(),
        }
    }

    /// Length of the payload file, in bytes.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.lengths.iter().sum()
    }

    /// The request, with its payload from the file; shares the buffer. `None` if the lengths do not add up.
    pub(super) fn open(&self, kind: CircuitKind, payload: &Bytes) -> Option<ProofRequest> {
        let mut rest = payload.clone();
        let mut parts = Vec::with_capacity(self.lengths.len());
        for length in &self.lengths {
            let length = usize::try_from(*length).ok().filter(|length| *length <= rest.len())?;
            parts.push(rest.split_to(length));
        }
        if !rest.is_empty() {
            return None;
        }
        let mut parts = parts.into_iter();
        Some(ProofRequest {
            kind,
            sector_size: self.sector_size,
            registered_proof: self.registered_proof,
            sector_number: self.sector_number,
            miner_id: self.miner_id,
            partition_index: self.partition_index,
            randomness: parts.next()?,
            vanilla_proof: parts.next()?,
            comm_r_old: parts.next()?,
            comm_r_new: parts.next()?,
            comm_d_new: parts.next()?,
            vanilla_proofs: parts.collect(),
        })
    }
}

impl StoredJob {
    pub(super) fn new(kept: &KeptJob, request: &ProofRequest) -> Self {
        let NewJob { identity, label, circuit, priority, partitions, partition_bytes, params_bytes, payload_bytes: _ } =
            kept.new.clone();
        Self {
            key: kept.key,
            identity,
            label,
            circuit,
            priority,
            partitions,
            partition_bytes,
            params_bytes,
            accepted_unix_ms: unix_ms(kept.accepted),
            envelope: Envelope::of(request),
        }
    }

    pub(super) fn kept(&self) -> KeptJob {
        let new = NewJob {
            identity: self.identity,
            label: self.label.clone(),
            circuit: self.circuit,
            priority: self.priority,
            payload_bytes: self.envelope.payload_bytes(),
            partitions: self.partitions,
            partition_bytes: self.partition_bytes,
            params_bytes: self.params_bytes,
        };
        KeptJob { key: self.key, new, accepted: UNIX_EPOCH + Duration::from_millis(self.accepted_unix_ms) }
    }

    pub(super) fn to_row(&self) -> Vec<u8> {
        let envelope = &self.envelope;
        JobRow {
            request: self.identity.request.map(Vec::from),
            payload: self.identity.payload.to_vec(),
            label: self.label.clone(),
            circuit: self.circuit.to_string(),
            priority: self.priority.label().to_owned(),
            partitions: self.partitions as u64,
            partition_bytes: self.partition_bytes,
            params_bytes: self.params_bytes,
            accepted_unix_ms: self.accepted_unix_ms,
            sector_size: envelope.sector_size,
            registered_proof: envelope.registered_proof,
            sector_number: envelope.sector_number,
            miner_id: envelope.miner_id,
            partition_index: envelope.partition_index,
            lengths: envelope.lengths.clone(),
        }
        .encode_to_vec()
    }

    pub(super) fn from_row(key: JobKey, row: &[u8]) -> Result<Self, String> {
        let row = JobRow::decode(row).map_err(|e| format!("job {}: {e}", key.0))?;
        let wrong = |field: &str, text: &str| format!("job {}: unknown {field} {text:?}", key.0);
        Ok(Self {
            key,
            identity: identity(key, row.request.as_deref(), &row.payload)?,
            circuit: row.circuit.parse().map_err(|_| wrong("circuit", &row.circuit))?,
            priority: by_label(&Priority::ALL, Priority::label, &row.priority)
                .ok_or_else(|| wrong("priority", &row.priority))?,
            label: row.label,
            partitions: row.partitions.max(1) as usize,
            partition_bytes: row.partition_bytes,
            params_bytes: row.params_bytes,
            accepted_unix_ms: row.accepted_unix_ms,
            envelope: Envelope {
                sector_size: row.sector_size,
                registered_proof: row.registered_proof,
                sector_number: row.sector_number,
                miner_id: row.miner_id,
                partition_index: row.partition_index,
                lengths: row.lengths,
            },
        })
    }
}

impl StoredOutcome {
    pub(super) fn to_row(&self) -> Vec<u8> {
        let Outcome { kind, status, proof, error, timings, devices, .. } = &self.outcome;
        OutcomeRow {
            request: self.identity.request.map(Vec::from),
            payload: self.identity.payload.to_vec(),
            kind: kind.prefix().to_owned(),
            status: status.label().to_owned(),
            proof: proof.to_vec(),
            error: error.clone(),
            queue_wait_us: micros(timings.queue_wait),
            params_load_us: micros(timings.params_load),
            synthesis_us: micros(timings.synthesis),
            compute_us: micros(timings.compute),
            total_us: micros(timings.total),
            devices: devices.clone(),
            ended_unix_ms: self.ended_unix_ms,
        }
        .encode_to_vec()
    }

    pub(super) fn from_row(key: JobKey, row: &[u8]) -> Result<Self, String> {
        let row = OutcomeRow::decode(row).map_err(|e| format!("job {}: {e}", key.0))?;
        let wrong = |field: &str, text: &str| format!("job {}: unknown {field} {text:?}", key.0);
        let kind = by_label(&CircuitKind::ALL, CircuitKind::prefix, &row.kind);
        let status = by_label(&JobStatus::ALL, JobStatus::label, &row.status);
        let outcome = Outcome {
            key,
            kind: kind.ok_or_else(|| wrong("kind", &row.kind))?,
            status: status.ok_or_else(|| wrong("status", &row.status))?,
            proof: row.proof.into(),
            error: row.error,
            timings: JobTimings {
                queue_wait: Duration::from_micros(row.queue_wait_us),
                params_load: Duration::from_micros(row.params_load_us),
                synthesis: Duration::from_micros(row.synthesis_us),
                compute: Duration::from_micros(row.compute_us),
                total: Duration::from_micros(row.total_us),
            },
            devices: row.devices,
        };
        let identity = identity(key, row.request.as_deref(), &row.payload)?;
        Ok(Self { identity, outcome, ended_unix_ms: row.ended_unix_ms })
    }
}

/// Milliseconds since 1970; a clock that stands before that counts as 1970.
pub(super) fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A partition's proof from its row.
pub(super) fn partition_proof(job: JobKey, row: &[u8]) -> Result<PartitionProof, String> {
    let wrong = |_| format!("job {}: a partition's proof has {} bytes, not {PROOF_BYTES}", job.0, row.len());
    row.try_into().map_err(wrong)
}

#[derive(Clone, PartialEq, Message)]
struct JobRow {
    #[prost(bytes = "vec", optional, tag = "1")]
    request: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    payload: Vec<u8>,
    #[prost(string, tag = "3")]
    label: String,
    #[prost(string, tag = "4")]
    circuit: String,
    #[prost(string, tag = "5")]
    priority: String,
    #[prost(uint64, tag = "6")]
    partitions: u64,
    #[prost(uint64, tag = "7")]
    partition_bytes: u64,
    #[prost(uint64, tag = "8")]
    accepted_unix_ms: u64,
    #[prost(uint64, tag = "9")]
    sector_size: u64,
    #[prost(uint64, tag = "10")]
    registered_proof: u64,
    #[prost(uint64, tag = "11")]
    sector_number: u64,
    #[prost(uint64, tag = "12")]
    miner_id: u64,
    #[prost(uint32, tag = "13")]
    partition_index: u32,
    #[prost(uint64, repeated, tag = "14")]
    lengths: Vec<u64>,
    #[prost(uint64, tag = "15")]
    params_bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
struct OutcomeRow {
    #[prost(bytes = "vec", optional, tag = "1")]
    request: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    payload: Vec<u8>,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(string, tag = "4")]
    status: String,
    #[prost(bytes = "vec", tag = "5")]
    proof: Vec<u8>,
    #[prost(string, tag = "6")]
    error: String,
    #[prost(uint64, tag = "7")]
    queue_wait_us: u64,
    #[prost(uint64, tag = "8")]
    params_load_us: u64,
    #[prost(uint64, tag = "9")]
    synthesis_us: u64,
    #[prost(uint64, tag = "10")]
    compute_us: u64,
    #[prost(uint64, tag = "11")]
    total_us: u64,
    #[prost(string, repeated, tag = "12")]
    devices: Vec<String>,
    #[prost(uint64, tag = "13")]
    ended_unix_ms: u64,
}

fn identity(key: JobKey, request: Option<&[u8]>, payload: &[u8]) -> Result<Identity, String> {
    let digest = |bytes: &[u8]| {
        let wrong = |_| format!("job {}: a digest has {} bytes, not 32", key.0, bytes.len());
        <[u8; 32]>::try_from(bytes).map_err(wrong)
    };
    Ok(Identity { request: request.map(digest).transpose()?, payload: digest(payload)? })
}

fn by_label<T: Copy>(all: &[T], label: fn(T) -> &'static str, text: &str) -> Option<T> {
    all.iter().copied().find(|value| label(*value) == text)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(of: &[u8]) -> Bytes {
        Bytes::copy_from_slice(of)
    }

    fn request(parts: &[Vec<u8>]) -> ProofRequest {
        let part = |i: usize| parts.get(i).map(|part| bytes(part)).unwrap_or_default();
        ProofRequest {
            sector_number: 7,
            miner_id: u64::MAX,
            randomness: part(0),
            vanilla_proof: part(1),
            comm_r_old: part(2),
            comm_r_new: part(3),
            comm_d_new: part(4),
            vanilla_proofs: (5..parts.len()).map(part).collect(),
            ..ProofRequest::new(CircuitKind::Porep)
        }
    }

    proptest! {
        #[test]
        fn jobs_and_their_requests_read_back(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..9),
            name in "[a-z]{0,3}",
        ) {
            let request = request(&parts);
            let job = StoredJob {
                key: JobKey(3),
                identity: Identity::of(&name, &request),
                label: name,
                circuit: "porep-32g".parse().expect("a circuit"),
                priority: Priority::High,
                partitions: 10,
                partition_bytes: 1 << 40,
                params_bytes: 1 << 36,
                accepted_unix_ms: 99,
                envelope: Envelope::of(&request),
            };
            prop_assert_eq!(StoredJob::from_row(JobKey(3), &job.to_row()), Ok(job.clone()));
            prop_assert_eq!(StoredJob::new(&job.kept(), &request), job.clone());
            let payload: Vec<u8> = payload_parts(&request).into_iter().flatten().copied().collect();
            prop_assert_eq!(payload.len() as u64, job.envelope.payload_bytes());
            prop_assert_eq!(job.envelope.open(CircuitKind::Porep, &bytes(&payload)), Some(request));
            let longer = [payload.as_slice(), &[0]].concat();
            prop_assert_eq!(job.envelope.open(CircuitKind::Porep, &bytes(&longer)), None);
            if !payload.is_empty() {
                prop_assert_eq!(job.envelope.open(CircuitKind::Porep, &bytes(&payload[1..])), None);
            }
        }

        #[test]
        fn any_bytes_are_a_row_or_an_error(row in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(job) = StoredJob::from_row(JobKey(1), &row) {
                prop_assert_eq!(StoredJob::from_row(JobKey(1), &job.to_row()), Ok(job));
            }
            prop_assert!(StoredOutcome::from_row(JobKey(1), &row).is_err());
        }
    }

    #[test]
    fn outcomes_read_back() {
        for status in JobStatus::ALL {
            let outcome = StoredOutcome {
                identity: Identity::of("", &request(&[])),
                outcome: Outcome {
                    key: JobKey(u64::MAX),
                    kind: CircuitKind::WindowPost,
                    status,
                    proof: bytes(&[1; 1920]),
                    error: "ä".to_owned(),
                    timings: JobTimings { compute: Duration::from_micros(5), ..JobTimings::default() },
                    devices: vec!["cpu".to_owned(), "GPU-1".to_owned()],
                },
                ended_unix_ms: 12,
            };
            assert_eq!(StoredOutcome::from_row(JobKey(u64::MAX), &outcome.to_row()), Ok(outcome));
        }
    }

    #[test]
    fn a_partition_proof_has_its_length() {
        assert_eq!(partition_proof(JobKey(1), &[3; 192]), Ok([3; 192]));
        assert!(partition_proof(JobKey(1), &[3; 191]).unwrap_err().contains("191 bytes"));
    }
}
