//! What a store holds after a restart, decided from the rows and files found: no disk, no clock.

use std::collections::BTreeMap;

use super::record::{StoredJob, StoredOutcome};
use crate::{
    core::job::{JobKey, JobStatus, JobTimings, Outcome},
    proving::PartitionProof,
};

/// Everything in the database.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) jobs: BTreeMap<JobKey, StoredJob>,
    pub(super) partitions: BTreeMap<(JobKey, u32), PartitionProof>,
    pub(super) finished: BTreeMap<JobKey, StoredOutcome>,
}

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Unfinished jobs with all that is needed to go on, by key.
    pub(super) resumed: Vec<Resumed>,
    /// Jobs that cannot go on: their rows become these outcomes.
    pub(super) lost: Vec<StoredOutcome>,
    /// Ended jobs, those in `lost` included, by the time of their end.
    pub(super) finished: Vec<StoredOutcome>,
    /// Rows of partitions that belong to no job, or are to be proven again.
    pub(super) stale_partitions: Vec<(JobKey, u32)>,
    /// Payload files that belong to no job, and half-written ones.
    pub(super) stale_files: Vec<String>,
}

/// An unfinished job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resumed {
    /// What was accepted.
    pub(super) job: StoredJob,
    /// The verified proofs of its partitions, as far as there are any.
    pub(super) proofs: Vec<(usize, PartitionProof)>,
}

/// Sorts what was found. A payload file's name and length are looked at here, its bytes when the job is taken up.
pub(super) fn plan(rows: Rows, files: &[(String, u64)], now_unix_ms: u64) -> Plan {
    let Rows { jobs, partitions, mut finished } = rows;
    let lengths: BTreeMap<&str, u64> = files.iter().map(|(name, length)| (name.as_str(), *length)).collect();
    let mut plan = Plan::default();
    let mut resumed: BTreeMap<JobKey, Resumed> = BTreeMap::new();
    for (key, job) in jobs {
        let expected = job.envelope.payload_bytes();
        let fault = match lengths.get(payload_name(key).as_str()) {
            Some(found) if *found == expected => None,
            Some(found) => Some(format!("has {found} bytes instead of {expected}")),
            None => Some("is missing".to_owned()),
        };
        match fault {
            None => {
                resumed.insert(key, Resumed { job, proofs: Vec::new() });
            }
            Some(fault) => {
                let lost = lost(&job, &fault, now_unix_ms);
                finished.insert(key, lost.clone());
                plan.lost.push(lost);
            }
        }
    }
    for ((key, index), proof) in partitions {
        match resumed.get_mut(&key).filter(|resumed| (index as usize) < resumed.job.partitions) {
            Some(resumed) => resumed.proofs.push((index as usize, proof)),
            None => plan.stale_partitions.push((key, index)),
        }
    }
    for (key, resumed) in &mut resumed {
        // The proof as a whole is made and checked when the last partition comes in, so one must come.
        if resumed.proofs.len() == resumed.job.partitions
            && let Some((index, _)) = resumed.proofs.pop()
        {
            plan.stale_partitions.push((*key, index as u32));
        }
    }
    plan.stale_files = files
        .iter()
        .map(|(name, _)| name)
        .filter(|name| is_ours(name) && !payload_key(name).is_some_and(|key| resumed.contains_key(&key)))
        .cloned()
        .collect();
    plan.resumed = resumed.into_values().collect();
    plan.finished = finished.into_values().collect();
    plan.finished.sort_by_key(|ended| (ended.ended_unix_ms, ended.outcome.key));
    plan
}

/// The name of a job's payload file. Made of our own number: what clients call their jobs names no file.
pub(super) fn payload_name(key: JobKey) -> String {
    format!("{:016x}.{PAYLOAD}", key.0)
}

/// The name of the same file while it is being written.
pub(super) fn temporary_name(key: JobKey) -> String {
    format!("{:016x}.{TEMPORARY}", key.0)
}

/// Whether a file of the spool is a whole payload.
pub(super) fn is_payload(name: &str) -> bool {
    payload_key(name).is_some()
}

/// Whether rewriting the database is worth the time: most of a file of some size is empty.
pub(super) fn worth_compacting(file_bytes: u64, used_bytes: u64) -> bool {
    file_bytes > COMPACT_ABOVE && used_bytes < file_bytes / 4
}

const PAYLOAD: &str = "payload";
const TEMPORARY: &str = "tmp";
/// Smaller databases are read and repaired in milliseconds anyway.
const COMPACT_ABOVE: u64 = 16 << 20;

fn payload_key(name: &str) -> Option<JobKey> {
    let number = name.strip_suffix(PAYLOAD)?.strip_suffix('.')?;
    let key = JobKey(u64::from_str_radix(number, 16).ok()?);
    (payload_name(key) == name).then_some(key)
}

/// Whether the store may have written a file of that name: nothing else is ever removed.
fn is_ours(name: &str) -> bool {
    let payload = name.strip_suffix(TEMPORARY).map_or_else(|| name.to_owned(), |stem| format!("{stem}{PAYLOAD}"));
    payload_key(&payload).is_some()
}

fn lost(job: &StoredJob, fault: &str, now_unix_ms: u64) -> StoredOutcome {
    let outcome = Outcome {
        key: job.key,
        kind: job.circuit.kind,
        status: JobStatus::Failed,
        proof: bytes::Bytes::new(),
        error: format!("its payload in the job store {fault}: submit it again"),
        timings: JobTimings::default(),
        devices: Vec::new(),
    };
    StoredOutcome { identity: job.identity, outcome, ended_unix_ms: now_unix_ms }
}

#[cfg(test)]
mod tests {
    use cuzk_synth::circuit::CircuitKind;

    use super::*;
    use crate::{
        core::{identity::Identity, job::Priority},
        proving::ProofRequest,
        store::durable::record::Envelope,
    };

    fn job(key: u64, payload: &'static [u8], partitions: usize) -> StoredJob {
        let mut request = ProofRequest::new(CircuitKind::Porep);
        request.vanilla_proof = bytes::Bytes::from_static(payload);
        StoredJob {
            key: JobKey(key),
            identity: Identity::of("a", &request),
            label: "a".to_owned(),
            circuit: "porep-2k".parse().expect("a circuit"),
            priority: Priority::Normal,
            partitions,
            partition_bytes: 1,
            params_bytes: 1,
            accepted_unix_ms: 1,
            envelope: Envelope::of(&request),
        }
    }

    fn rows(jobs: impl IntoIterator<Item = StoredJob>) -> Rows {
        Rows { jobs: jobs.into_iter().map(|job| (job.key, job)).collect(), ..Rows::default() }
    }

    fn payload(key: u64, length: u64) -> (String, u64) {
        (payload_name(JobKey(key)), length)
    }

    #[test]
    fn whole_jobs_go_on_with_their_finished_partitions() {
        let mut rows = rows([job(1, b"abc", 3), job(2, b"abcd", 1)]);
        for at in [(1, 1), (1, 3), (9, 0)] {
            rows.partitions.insert((JobKey(at.0), at.1), [7; 192]);
        }
        let plan = plan(rows, &[payload(2, 4), payload(1, 3)], 5);
        assert_eq!(plan.resumed.iter().map(|r| r.job.key.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(plan.resumed[0].proofs, [(1, [7; 192])]);
        assert_eq!(plan.stale_partitions, [(JobKey(1), 3), (JobKey(9), 0)]);
        assert!(plan.stale_files.is_empty() && plan.finished.is_empty() && plan.lost.is_empty());
    }

    #[test]
    fn a_job_with_all_its_partitions_proves_the_last_one_again() {
        let mut rows = rows([job(1, b"abc", 2)]);
        rows.partitions.extend((0..2).map(|index| ((JobKey(1), index), [7; 192])));
        let plan = plan(rows, &[payload(1, 3)], 5);
        assert_eq!(plan.resumed[0].proofs, [(0, [7; 192])]);
        assert_eq!(plan.stale_partitions, [(JobKey(1), 1)]);
    }

    #[test]
    fn a_job_without_its_payload_fails_alone_and_says_why() {
        let plan =
            plan(rows([job(1, b"abc", 1), job(2, b"abc", 1), job(3, b"abc", 1)]), &[payload(1, 3), payload(2, 2)], 5);
        assert_eq!(plan.resumed.len(), 1);
        let errors: Vec<_> = plan.lost.iter().map(|lost| lost.outcome.error.as_str()).collect();
        assert!(errors[0].contains("has 2 bytes instead of 3") && errors[1].contains("is missing"), "{errors:?}");
        assert_eq!(plan.finished, plan.lost);
        assert_eq!(plan.stale_files, [payload_name(JobKey(2))]);
    }

    #[test]
    fn only_files_of_ours_that_no_job_needs_are_stale() {
        let names =
            ["0000000000000001.tmp", "0000000000000002.payload", "notes.txt", "2.payload", "lost+found", ".tmp"];
        let files: Vec<_> = names.iter().map(|name| ((*name).to_owned(), 3)).collect();
        let files = [files.as_slice(), &[payload(1, 3)]].concat();
        let plan = plan(rows([job(1, b"abc", 1)]), &files, 5);
        assert_eq!(plan.stale_files, [names[0], names[1]]);
        assert_eq!(plan.resumed.len(), 1);
    }

    #[test]
    fn finished_jobs_come_in_the_order_of_their_end() {
        let mut rows = rows([]);
        for (key, ended_unix_ms) in [(1, 30), (2, 10), (3, 20)] {
            let mut ended = lost(&job(key, b"", 1), "", 0);
            ended.ended_unix_ms = ended_unix_ms;
            rows.finished.insert(JobKey(key), ended);
        }
        let plan = plan(rows, &[], 99);
        assert_eq!(plan.finished.iter().map(|f| f.outcome.key.0).collect::<Vec<_>>(), [2, 3, 1]);
    }

    #[test]
    fn small_or_full_databases_are_left_alone() {
        assert!(!worth_compacting(COMPACT_ABOVE, 0));
        assert!(worth_compacting(COMPACT_ABOVE + 4, COMPACT_ABOVE / 4));
        assert!(!worth_compacting(1 << 30, 1 << 28));
    }
}
