//! The job store on disk, beside jobs in memory. What a submission waits for is mostly the disk's sync, so these are in the
//! full set only: no calibration follows a disk.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::{Instant, SystemTime},
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use cuzk_server::{
    ProofRequest,
    core::{
        Interest, NewJob,
        identity::Identity,
        job::{JobKey, JobStatus, JobTimings, Outcome, Priority},
    },
    store::{
        JobStore, KeptJob, Recovered, StoreEvent,
        durable::{Store, StoreOptions},
    },
};
use cuzk_synth::circuit::CircuitKind;

use super::{CIRCUIT, Calibration, Candidates, Operation, Tier, engine::core};

pub(super) fn add(operations: &mut Vec<Operation>) {
    let memory = Calibration::Memory;
    let mut row = |what, size: &str, prepare: fn(&mut Candidates) -> Result<()>| {
        operations.push(Operation::new(["keeping", what], size, Tier::Full, memory, prepare));
    };
    row("submission", "1x40KiB", |c| submissions(c, 1, 1, 40 << 10));
    row("submissions", "64x40KiB", |c| submissions(c, 64, 8, 40 << 10));
    row("submissions", "8x52MB", |c| submissions(c, 8, 2, 52_000_000));
    row("restart", "1000+64x40KiB", |c| restart(c, 1000, 64));
}

/// Jobs of so many payload bytes, digested, queued, and with the store kept, from so many threads.
fn submissions(candidates: &mut Candidates, jobs: usize, threads: usize, bytes: usize) -> Result<()> {
    let requests: Arc<Vec<ProofRequest>> = Arc::new((0..jobs).map(|n| request(n, bytes)).collect());
    let work = move |store: Option<&Store>| {
        let core = Mutex::new(core(requests.len()));
        thread::scope(|scope| {
            for chunk in requests.chunks(requests.len().div_ceil(threads)) {
                let core = &core;
                scope.spawn(move || chunk.iter().for_each(|request| submit(core, store, request)));
            }
        });
        core.into_inner().map_or(0, |core| core.unfinished())
    };
    let in_memory = work.clone();
    let fresh = || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        (open(folder.path()), folder)
    };
    candidates.ours_with("cuzk", fresh, move |(store, _folder)| work(Some(&store)), move |done| *done == jobs)?;
    candidates.peer("memory", || Ok(move || in_memory(None)), move |done| *done == jobs)
}

/// From the opening of a store with so many jobs until all its unfinished ones are read back and checked.
fn restart(candidates: &mut Candidates, finished: usize, unfinished: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fill(folder.path(), finished, unfinished)?;
    let run = move || {
        let store = open(folder.path());
        let found = store.recover().expect("asked once");
        let read = found.unfinished.iter().filter(|job| store.request(job.job.key).is_ok()).count();
        (found.finished.len(), read)
    };
    candidates.ours("cuzk", run, move |found| *found == (finished, unfinished))
}

fn fill(folder: &Path, finished: usize, unfinished: usize) -> Result<()> {
    let store = open(folder);
    let Recovered { next_key, .. } = store.recover()?;
    for n in 0..finished + unfinished {
        let request = request(n, 40 << 10);
        let key = JobKey(next_key + n as u64);
        store.accept(&KeptJob { key, new: new_job(&request), accepted: SystemTime::now() }, &request)?;
        if n < finished {
            store.record(&[StoreEvent::Ended(Arc::new(outcome(key)))])?;
        }
    }
    ensure!(store.status().jobs == unfinished, "the store keeps what it was given");
    Ok(())
}

fn submit(core: &Mutex<cuzk_server::core::Core>, store: Option<&Store>, request: &ProofRequest) {
    let new = new_job(request);
    let queued = core.lock().map(|mut core| core.submit(new.clone(), Interest::Detached, Instant::now()));
    let key = queued.expect("no thread panics").expect("there is room").key;
    if let Some(store) = store {
        let kept = KeptJob { key, new, accepted: SystemTime::now() };
        store.accept(&kept, request).expect("the disk takes it");
    }
}

fn open(folder: &Path) -> Store {
    let options = StoreOptions { folder: folder.to_owned(), move_damaged_aside: false };
    Store::open(&options).expect("a folder of its own")
}

fn request(n: usize, bytes: usize) -> ProofRequest {
    let mut request = ProofRequest::new(CircuitKind::Porep);
    request.sector_number = n as u64;
    request.vanilla_proof = Bytes::from(vec![n as u8; bytes]);
    request
}

fn new_job(request: &ProofRequest) -> NewJob {
    NewJob {
        identity: Identity::of(&request.sector_number.to_string(), request),
        label: "bench".to_owned(),
        circuit: CIRCUIT,
        priority: Priority::Normal,
        payload_bytes: request.payload_bytes(),
        partitions: 10,
        partition_bytes: 400 << 20,
        params_bytes: 1 << 30,
    }
}

fn outcome(key: JobKey) -> Outcome {
    Outcome {
        key,
        kind: CircuitKind::Porep,
        status: JobStatus::Completed,
        proof: Bytes::from(vec![1; 1920]),
        error: String::new(),
        timings: JobTimings::default(),
        devices: vec!["cpu".to_owned()],
    }
}
