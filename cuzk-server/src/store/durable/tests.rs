//! The store on a disk that dies between any two of its steps, that is full, and that is damaged.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use bytes::Bytes;
use cuzk_synth::circuit::CircuitKind;

use super::{
    OpenError, Store, StoreOptions,
    database::FILE,
    disk::{Disk, SPOOL},
    recover::payload_name,
    simulated::Simulated,
};
use crate::{
    core::{
        NewJob,
        identity::Identity,
        job::{JobKey, JobStatus, JobTimings, Outcome, Priority},
    },
    proving::ProofRequest,
    store::{JobStore, KeptJob, Recovered, StoreErrorKind, StoreEvent, StoreStatus},
};

fn options() -> StoreOptions {
    StoreOptions { folder: "/store".into(), move_damaged_aside: false }
}

/// Opens a store, and looks what is in it.
fn open(disk: &Simulated) -> Result<(Store, Recovered), OpenError> {
    let store = Store::open_on(Arc::new(disk.clone()), &options(), "id", 5)?;
    let recovered = store.recover().expect("asked once");
    Ok((store, recovered))
}

fn empty(disk: &Simulated) -> Store {
    open(disk).expect("an empty disk").0
}

fn unfinished(recovered: &Recovered) -> Vec<u64> {
    recovered.unfinished.iter().map(|u| u.job.key.0).collect()
}

fn finished(recovered: &Recovered) -> Vec<u64> {
    recovered.finished.iter().map(|f| f.outcome.key.0).collect()
}

/// The payload of a job says which job it is of.
fn request(key: u64) -> ProofRequest {
    let mut request = ProofRequest::new(CircuitKind::Porep);
    request.vanilla_proof = Bytes::from(vec![key as u8; 100 + key as usize]);
    request.comm_r_new = Bytes::from_static(b"r");
    request
}

fn job(key: u64) -> KeptJob {
    let request = request(key);
    let new = NewJob {
        identity: Identity::of(&key.to_string(), &request),
        label: key.to_string(),
        circuit: "porep-32g".parse().expect("a circuit"),
        priority: Priority::Normal,
        payload_bytes: request.payload_bytes(),
        partitions: 10,
        partition_bytes: 1,
        params_bytes: 1,
    };
    KeptJob { key: JobKey(key), new, accepted: UNIX_EPOCH + Duration::from_millis(1) }
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

/// Whether the end is on the disk.
fn end(store: &Store, key: u64) -> bool {
    store.record(&[StoreEvent::Ended(Arc::new(outcome(key)))]).is_ok()
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
    let Ok((store, _)) = open(disk) else { return told };
    for key in 1..=4 {
        if accept(&store, key) {
            told.accepted.insert(key);
        }
    }
    for partition in [3, 9] {
        let proved = StoreEvent::Proved(JobKey(2), partition, [partition as u8; 192]);
        if told.accepted.contains(&2) && store.record(&[proved]).is_ok() {
            told.partitions.insert((2, partition));
        }
    }
    for key in [1, 3] {
        if told.accepted.contains(&key) && end(&store, key) {
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
    let (store, found) = open(disk).expect("no crash damages a store");
    assert_eq!(found.ids, "id");
    let (unfinished, finished) = (unfinished(&found), finished(&found));
    for key in &told.accepted {
        let times = unfinished.iter().chain(&finished).filter(|found| *found == key).count();
        assert_eq!(times, 1, "job {key} is lost, or there twice");
        assert!(found.next_key > *key, "the number {key} would be given away twice");
    }
    for key in &told.ended {
        assert!(finished.contains(key), "the end of job {key} is lost");
    }
    for resumed in &found.unfinished {
        let key = resumed.job.key;
        assert_eq!(format!("{:?}", resumed.job), format!("{:?}", job(key.0)));
        assert_eq!(store.request(key), Ok(request(key.0)));
        let proven: BTreeSet<_> = resumed.proofs.iter().map(|(index, _)| (key.0, *index)).collect();
        assert!(told.partitions.iter().filter(|(job, _)| *job == key.0).all(|told| proven.contains(told)));
        assert!(resumed.proofs.iter().all(|(index, proof)| *proof == [*index as u8; 192]));
    }
    for ended in &found.finished {
        let key = ended.outcome.key.0;
        assert_eq!((&*ended.outcome, ended.identity), (&outcome(key), job(key).new.identity), "no job failed");
    }
    let spooled: Vec<String> = disk.list(SPOOL).expect("readable").into_iter().map(|(name, _)| name).collect();
    assert_eq!(spooled, unfinished.iter().map(|key| payload_name(JobKey(*key))).collect::<Vec<_>>());
    assert!(accept(&store, found.next_key), "a new job comes in");
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
        (io::ErrorKind::ReadOnlyFilesystem, StoreErrorKind::Broken),
    ] {
        let disk = Simulated::default();
        let store = empty(&disk);
        assert!(accept(&store, 1) && accept(&store, 2));
        disk.refuse(Some(kind));
        let error = store.accept(&job(3), &request(3)).expect_err("no room");
        assert_eq!(error.kind, expected, "{error}");
        assert!(!end(&store, 1));
        let status = store.status();
        assert_eq!((status.pending, status.jobs), (1, 1));
        assert!(status.errors >= 2 && status.trouble.is_some(), "{status:?}");

        disk.refuse(None);
        assert!(accept(&store, 4), "the first job after it gets in");
        let status = store.status();
        assert_eq!((status.pending, status.jobs, status.trouble), (0, 2, None));
        drop(store);
        let (_, found) = open(&disk.after_power_failure(1)).expect("whole");
        assert_eq!((unfinished(&found), finished(&found)), (vec![2, 4], vec![1]));
    }
}

/// The commit fails after the payload was written: nothing of the refused job comes back at the next start.
#[test]
fn a_job_that_was_refused_does_not_come_back() {
    let disk = Simulated::default();
    let store = empty(&disk);
    for refused_after in 0..20 {
        let key = 10 + refused_after as u64;
        disk.die_in(refused_after);
        let accepted = accept(&store, key);
        disk.die_in(usize::MAX / 2);
        assert!(!accepted || end(&store, key), "the disk is well again");
        assert_eq!(store.record(&[]), Ok(()));
        let (_, found) = open(&disk.after_kill()).expect("whole");
        assert!(unfinished(&found).is_empty(), "refused after {refused_after} steps");
    }
}

#[test]
fn ended_and_forgotten_jobs_leave_nothing_behind() {
    let disk = Simulated::default();
    let store = empty(&disk);
    assert!(accept(&store, 1) && accept(&store, 2));
    assert_eq!(store.record(&[StoreEvent::Proved(JobKey(1), 0, [0; 192])]), Ok(()));
    assert!(end(&store, 1) && end(&store, 2));
    // Late, for a job that is no more.
    let late = [StoreEvent::Proved(JobKey(1), 1, [1; 192]), StoreEvent::Forgotten(JobKey(1))];
    assert_eq!(store.record(&late), Ok(()));
    drop(store);
    let (store, found) = open(&disk.after_power_failure(1)).expect("whole");
    assert_eq!((unfinished(&found), finished(&found), found.next_key), (vec![], vec![2], 3));
    assert_eq!(store.status(), StoreStatus::default(), "no stale row was to be removed");
}

#[test]
fn a_damaged_payload_fails_its_job_alone() {
    let disk = Simulated::default();
    let store = empty(&disk);
    assert!(accept(&store, 1) && accept(&store, 2) && accept(&store, 3));
    let payload = |key: u64| format!("{SPOOL}/{}", payload_name(JobKey(key)));
    disk.tamper(&payload(1), |bytes| bytes[50] ^= 1);
    let error = store.request(JobKey(1)).expect_err("damaged").to_string();
    assert!(error.contains("/store: the payload 0000000000000001.payload is damaged"), "{error}");
    assert_eq!(store.request(JobKey(2)), Ok(request(2)));
    disk.tamper(&payload(3), |bytes| bytes.truncate(9));
    drop(store);
    // The length is looked at at the start, the digest when the job is taken up.
    let (store, found) = open(&disk.after_kill()).expect("whole");
    assert_eq!((unfinished(&found), finished(&found)), (vec![1, 2], vec![3]));
    let lost = &found.finished[0].outcome;
    assert_eq!(lost.status, JobStatus::Failed);
    assert!(lost.error.contains("has 9 bytes instead of 104"), "{}", lost.error);
    assert_eq!((store.status().resumed, store.status().lost), (2, 1));
}

#[test]
fn every_kind_of_damage_is_noticed() {
    let disk = Simulated::default();
    let store = empty(&disk);
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
            Ok((_, found)) => assert_eq!(found.unfinished.len(), 20, "page {page}"),
        }
    }
    assert!(noticed > 0);

    let missing = disk.after_kill();
    missing.remove(FILE).expect("there");
    let error = open(&missing).expect_err("payloads without rows");
    assert!(error.to_string().contains("missing, but there are 20 payloads"), "{error}");
}

fn on_disk(folder: &Path, move_damaged_aside: bool) -> Result<Store, OpenError> {
    Store::open(&StoreOptions { folder: folder.to_owned(), move_damaged_aside })
}

#[test]
fn a_real_folder_keeps_jobs_and_a_damaged_one_is_put_aside_only_if_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = on_disk(folder.path(), false).expect("empty");
    assert!(accept(&store, 1));
    let error = on_disk(folder.path(), true).expect_err("one store a folder");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    let ids = store.recover().expect("asked once").ids;
    drop(store);
    let found = on_disk(folder.path(), false).expect("whole").recover().expect("asked once");
    assert_eq!((unfinished(&found), &found.ids), (vec![1], &ids));

    std::fs::write(folder.path().join(FILE), b"no database").expect("writable");
    let error = on_disk(folder.path(), false).expect_err("damaged");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let store = on_disk(folder.path(), true).expect("begun anew");
    let found = store.recover().expect("asked once");
    assert!(unfinished(&found).is_empty());
    assert_ne!(found.ids, ids, "ids of the lost jobs are unknown, not those of others");
    assert!(accept(&store, 1));
    let kept = |begin: &str| {
        let names = std::fs::read_dir(folder.path()).expect("readable").flatten();
        let mut found = names.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains(begin));
        found.next().unwrap_or_else(|| panic!("no {begin}"))
    };
    assert_eq!(std::fs::read(kept("jobs.redb.damaged-")).expect("kept"), b"no database");
    let payload = kept("spool.damaged-").join(payload_name(JobKey(1)));
    assert_eq!(std::fs::metadata(payload).expect("kept").len(), 102);
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
    let store = on_disk(folder.path(), false).expect("empty");
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
