//! The store on a disk that dies between any two of its steps, that is full, and that is damaged.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cuzk_synth::circuit::CircuitKind;

use super::{
    OpenError, Opened, Store, StoreErrorKind, StoreOptions,
    database::FILE,
    disk::{Disk, SPOOL},
    record::{Envelope, StoredJob},
    recover::payload_name,
    simulated::Simulated,
};
use crate::{
    core::{
        identity::Identity,
        job::{JobKey, JobStatus, JobTimings, Outcome, Priority},
    },
    proving::ProofRequest,
};

fn options() -> StoreOptions {
    StoreOptions { folder: "/store".into(), move_damaged_aside: false }
}

fn open(disk: &Simulated) -> Result<Opened, OpenError> {
    Store::open_on(Arc::new(disk.clone()), &options(), "id", 5)
}

/// The payload of a job says which job it is of.
fn request(key: u64) -> ProofRequest {
    let mut request = ProofRequest::new(CircuitKind::Porep);
    request.vanilla_proof = Bytes::from(vec![key as u8; 100 + key as usize]);
    request.comm_r_new = Bytes::from_static(b"r");
    request
}

fn job(key: u64) -> StoredJob {
    let request = request(key);
    StoredJob {
        key: JobKey(key),
        identity: Identity::of(&key.to_string(), &request),
        label: key.to_string(),
        circuit: "porep-32g".parse().expect("a circuit"),
        priority: Priority::Normal,
        partitions: 10,
        partition_bytes: 1,
        accepted_unix_ms: 1,
        envelope: Envelope::of(&request),
    }
}

fn outcome(key: u64) -> Outcome {
    Outcome {
        key: JobKey(key),
        kind: CircuitKind::Porep,
        status: JobStatus::Completed,
        proof: Bytes::from(vec![key as u8; 1920]),
        error: String::new(),
        timings: JobTimings::default(),
        devices: Vec::new(),
    }
}

fn accept(store: &Store, key: u64) -> bool {
    store.accept(&job(key), &request(key)).is_ok()
}

fn end(store: &Store, key: u64) {
    store.end(job(key).identity, &outcome(key), 7);
}

fn flush(store: &Store) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.flush()).is_ok()
}

/// What clients were told.
#[derive(Clone, Debug, Default)]
struct Told {
    accepted: BTreeSet<u64>,
    ended: BTreeSet<u64>,
    partitions: BTreeSet<(u64, usize)>,
}

/// Some jobs come, some end; the power may fail at any step.
fn live(disk: &Simulated) -> Told {
    let mut told = Told::default();
    let Ok(Opened { store, .. }) = open(disk) else { return told };
    for key in 1..=4 {
        if accept(&store, key) {
            told.accepted.insert(key);
        }
    }
    for partition in [3, 9] {
        store.keep_partition(JobKey(2), partition, [partition as u8; 192]);
        if flush(&store) {
            told.partitions.insert((2, partition));
        }
    }
    for key in [1, 3] {
        end(&store, key);
        if flush(&store) {
            told.ended.insert(key);
        }
        if accept(&store, 4 + key) {
            told.accepted.insert(4 + key);
        }
    }
    told
}

/// What is on the disk is what clients were told, or more of what they asked for.
fn check(told: &Told, disk: &Simulated) {
    let Opened { store, id, last_job, resumed, finished } = open(disk).expect("no crash damages a store");
    assert_eq!(id, "id");
    let resumed_keys: BTreeSet<u64> = resumed.iter().map(|r| r.job.key.0).collect();
    let finished_keys: BTreeSet<u64> = finished.iter().map(|f| f.outcome.key.0).collect();
    assert!(resumed_keys.is_disjoint(&finished_keys));
    for key in &told.accepted {
        assert!(resumed_keys.contains(key) || finished_keys.contains(key), "job {key} is lost");
        assert!(last_job >= *key, "the number {key} would be given away twice");
    }
    for key in &told.ended {
        assert!(finished_keys.contains(key), "the end of job {key} is lost");
    }
    for resumed in &resumed {
        let key = resumed.job.key.0;
        assert_eq!(resumed.job, job(key));
        assert_eq!(store.request(&resumed.job), Ok(request(key)));
        for (index, proof) in resumed.proofs.iter().enumerate() {
            assert!(!told.partitions.contains(&(key, index)) || proof.is_some(), "partition {index} of {key} is lost");
            assert!(proof.is_none_or(|proof| proof == [index as u8; 192]));
        }
    }
    for finished in &finished {
        let key = finished.outcome.key.0;
        assert_eq!((&finished.outcome, finished.identity), (&outcome(key), job(key).identity), "no job was lost");
    }
    let spooled: Vec<String> = disk.list(SPOOL).expect("readable").into_iter().map(|(name, _)| name).collect();
    assert_eq!(spooled, resumed.iter().map(|r| payload_name(r.job.key)).collect::<Vec<_>>());
    assert!(accept(&store, last_job + 1), "a new job comes in");
}

#[test]
fn no_crash_between_any_two_steps_loses_an_accepted_job() {
    let healthy = Simulated::default();
    let told = live(&healthy);
    assert_eq!(told.accepted.len(), 6);
    let steps = healthy.steps();
    check(&told, &healthy.after_kill());
    for step in 0..steps {
        let disk = Simulated::dying_at(step);
        let told = live(&disk);
        check(&told, &disk.after_kill());
        for seed in 0..4 {
            let found = disk.after_power_failure(seed);
            println!("the power fails at step {step} of {steps}, seed {seed}");
            // It fails again while the store is put in order.
            for again in [0, 1, 2, 4, 8] {
                let second = found.after_kill();
                second.die_in(again);
                drop(open(&second));
                check(&told, &second.after_power_failure(seed + 100));
            }
            check(&told, &found);
        }
    }
}

#[test]
fn a_full_disk_refuses_jobs_and_catches_up_when_there_is_room() {
    for (kind, expected) in [
        (io::ErrorKind::StorageFull, StoreErrorKind::Full),
        (io::ErrorKind::QuotaExceeded, StoreErrorKind::Full),
        (io::ErrorKind::ReadOnlyFilesystem, StoreErrorKind::Unwritable),
    ] {
        let disk = Simulated::default();
        let store = open(&disk).expect("empty").store;
        assert!(accept(&store, 1) && accept(&store, 2));
        disk.refuse(Some(kind));
        let error = store.accept(&job(3), &request(3)).expect_err("no room");
        assert_eq!(error.kind, expected, "{error}");
        end(&store, 1);
        assert!(!flush(&store));
        let status = store.status();
        assert_eq!((status.pending, status.payloads), (1, 2));
        assert!(status.errors >= 2 && status.trouble.is_some(), "{status:?}");

        disk.refuse(None);
        assert!(accept(&store, 4), "the first job after it gets in");
        assert!(flush(&store));
        let status = store.status();
        assert_eq!((status.pending, status.payloads, status.trouble), (0, 2, None));
        drop(store);
        let Opened { resumed, finished, .. } = open(&disk.after_power_failure(1)).expect("whole");
        assert_eq!(resumed.iter().map(|r| r.job.key.0).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(finished.iter().map(|f| f.outcome.key.0).collect::<Vec<_>>(), [1]);
    }
}

/// The commit fails after the payload was written: nothing of the refused job comes back at the next start.
#[test]
fn a_job_that_was_refused_does_not_come_back() {
    let disk = Simulated::default();
    let store = open(&disk).expect("empty").store;
    for refused_after in 0..20 {
        let key = 10 + refused_after as u64;
        disk.die_in(refused_after);
        let accepted = accept(&store, key);
        disk.die_in(usize::MAX / 2);
        if accepted {
            end(&store, key);
        }
        assert!(flush(&store), "the disk is well again");
        let found = open(&disk.after_kill()).expect("whole").resumed;
        assert!(found.is_empty(), "refused after {refused_after} steps: {found:?}");
    }
}

#[test]
fn withdrawn_and_forgotten_jobs_are_gone() {
    let disk = Simulated::default();
    let store = open(&disk).expect("empty").store;
    assert!(accept(&store, 1) && accept(&store, 2) && accept(&store, 3));
    store.withdraw(JobKey(1));
    store.keep_partition(JobKey(2), 0, [0; 192]);
    end(&store, 2);
    end(&store, 3);
    store.forget(JobKey(2));
    assert!(flush(&store));
    drop(store);
    let Opened { resumed, finished, last_job, .. } = open(&disk.after_power_failure(1)).expect("whole");
    assert!(resumed.is_empty());
    assert_eq!(finished.iter().map(|f| f.outcome.key.0).collect::<Vec<_>>(), [3]);
    assert_eq!(last_job, 3);
}

#[test]
fn a_damaged_payload_fails_its_job_alone() {
    let disk = Simulated::default();
    let store = open(&disk).expect("empty").store;
    assert!(accept(&store, 1) && accept(&store, 2) && accept(&store, 3));
    disk.tamper(&format!("{SPOOL}/{}", payload_name(JobKey(1))), |bytes| bytes[50] ^= 1);
    assert!(store.request(&job(1)).expect_err("damaged").contains("is not what was submitted"));
    assert_eq!(store.request(&job(2)), Ok(request(2)));
    disk.tamper(&format!("{SPOOL}/{}", payload_name(JobKey(3))), |bytes| bytes.truncate(9));
    drop(store);
    // The length is looked at at the start, the digest when the job is taken up.
    let Opened { resumed, finished, store, .. } = open(&disk.after_kill()).expect("whole");
    assert_eq!(resumed.iter().map(|r| r.job.key.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(finished[0].outcome.status, JobStatus::Failed);
    assert!(finished[0].outcome.error.contains("has 9 bytes instead of 104"), "{:?}", finished[0].outcome.error);
    assert_eq!((store.status().resumed, store.status().lost), (2, 1));
}

#[test]
fn every_kind_of_damage_is_noticed() {
    let disk = Simulated::default();
    let store = open(&disk).expect("empty").store;
    (1..=20).for_each(|key| assert!(accept(&store, key)));
    drop(store);
    let damaged = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let damaged = disk.after_kill();
        damaged.tamper(FILE, change);
        let error = open(&damaged).expect_err(what);
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error}");
        assert!(error.to_string().contains("store.if_damaged"), "{error}");
    };
    damaged("empty", &|bytes| bytes.clear());
    damaged("cut short", &|bytes| bytes.truncate(bytes.len() / 2));
    damaged("zeros", &|bytes| bytes.fill(0));
    damaged("no database", &|bytes| bytes[..9].copy_from_slice(b"plain txt"));
    // A byte in each page, which some row is in, or nothing.
    let pages = disk.read(FILE).expect("readable").len() / 4096;
    let mut noticed = 0;
    for page in 1..pages {
        let damaged = disk.after_kill();
        damaged.tamper(FILE, |bytes| bytes[page * 4096 + 100] ^= 0x10);
        match open(&damaged) {
            Err(OpenError::Damaged { .. }) => noticed += 1,
            Err(other) => panic!("page {page}: {other}"),
            Ok(opened) => assert_eq!(opened.resumed.len(), 20, "page {page}"),
        }
    }
    assert!(noticed > 0);

    let missing = disk.after_kill();
    missing.remove(FILE).expect("there");
    let error = open(&missing).expect_err("payloads without rows");
    assert!(error.to_string().contains("missing, but there are 20 payloads"), "{error}");
}

fn on_disk(folder: &Path, move_damaged_aside: bool) -> Result<Opened, OpenError> {
    Store::open(&StoreOptions { folder: folder.to_owned(), move_damaged_aside }, "id", 5)
}

#[test]
fn a_real_folder_keeps_jobs_and_a_damaged_one_is_put_aside_only_if_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let opened = on_disk(folder.path(), false).expect("empty");
    assert!(accept(&opened.store, 1));
    let error = on_disk(folder.path(), true).expect_err("one store a folder");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(opened);
    assert_eq!(on_disk(folder.path(), false).expect("whole").resumed.len(), 1);

    std::fs::write(folder.path().join(FILE), b"no database").expect("writable");
    let error = on_disk(folder.path(), false).expect_err("damaged");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let opened = on_disk(folder.path(), true).expect("begun anew");
    assert!(opened.resumed.is_empty() && accept(&opened.store, 1));
    assert_eq!(std::fs::read(folder.path().join("jobs.redb.damaged-5")).expect("kept"), b"no database");
    let kept = folder.path().join("spool.damaged-5").join(payload_name(JobKey(1)));
    assert_eq!(std::fs::metadata(kept).expect("kept").len(), 102);
}

#[test]
fn a_later_schema_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    drop(on_disk(folder.path(), false).expect("empty"));
    let database = redb::Database::open(folder.path().join(FILE)).expect("whole");
    let write = database.begin_write().expect("writable");
    let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
    write.open_table(table).expect("there").insert("schema", [2, 0, 0, 0].as_slice()).expect("writable");
    write.commit().expect("writable");
    drop(database);
    let error = on_disk(folder.path(), true).expect_err("from the future");
    assert_eq!(error, OpenError::Newer { folder: folder.path().to_owned(), found: 2, known: 1 });
}

#[test]
fn submissions_that_come_together_share_their_syncs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = on_disk(folder.path(), false).expect("empty").store;
    // While the first is being synced the others arrive: fewer commits than jobs, unless the disk is idle each time.
    let mut key = 0;
    let begun = Instant::now();
    while store.status().commits.count() >= key && begun.elapsed() < Duration::from_secs(60) {
        std::thread::scope(|scope| {
            for key in key + 1..=key + 32 {
                let store = &store;
                scope.spawn(move || assert!(accept(store, key)));
            }
        });
        key += 32;
    }
    assert!(store.status().commits.count() < key);
}
