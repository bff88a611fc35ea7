//! The store on a disk: what was accepted survives a crash, and what was proven is not proven again.
//!
//! * `record`: what is kept of a job
//! * `recover`: what it means at the next start: which jobs go on, which are lost, what is rubbish (pure)
//! * `database`: the rows, in one file; `disk`: the folder, its lock, its permissions
//! * `writer`: the one thread that changes the rows; submissions that come together share a sync
//! * `error`, `status`: what operators and clients are told
//!
//! The order of writing is what keeps jobs whole. A job comes in by: payload to a temporary file, sync, rename, sync of
//! the folder, row, sync, and only then the client hears of it. It leaves by: row to the finished ones, sync, payload
//! removed. Whatever is on the disk without a row belongs to nobody and is removed at the next start. Ends and
//! partitions' proofs are written behind: a crash before that costs the work, never the job.

mod database;
mod disk;
mod error;
mod record;
mod recover;
#[cfg(test)]
mod simulated;
mod status;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use database::{Change, Database, FILE, Fault, Meta, SCHEMA};
use disk::{Disk, Folder, SPOOL};
pub use error::OpenError;
use record::{StoredJob, StoredOutcome, unix_ms};
use recover::{Plan, Resumed, payload_name, temporary_name};
use status::Shown;
use tokio::sync::oneshot;
use writer::{Order, Writer};

use crate::{
    core::{
        identity::Identity,
        job::{JobKey, Outcome},
    },
    proving::ProofRequest,
    store::{JobStore, KeptJob, KeptOutcome, Recovered, StoreError, StoreEvent, StoreStatus, Unfinished},
};

/// A store on disk. When it is dropped, it writes what is left to be written.
#[derive(Debug)]
pub struct Store {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    shown: Arc<Shown>,
    /// The unfinished jobs.
    jobs: Mutex<HashMap<JobKey, StoredJob>>,
    /// What was found, until somebody asks for it.
    found: Mutex<Option<Recovered>>,
    /// `None` only while it is dropped.
    orders: Option<mpsc::Sender<Order>>,
    writer: Option<JoinHandle<()>>,
}

/// How to open a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The folder, made if it is not there. No other process may work in it.
    pub folder: PathBuf,
    /// Whether a damaged store is put aside under another name, and an empty one begun.
    pub move_damaged_aside: bool,
}

impl Store {
    /// Opens the store in a folder, puts it in order, and finds out what was in it.
    ///
    /// # Errors
    /// If the folder cannot be used or is in use, or what is in it is damaged or from a later version.
    pub fn open(options: &StoreOptions) -> Result<Self, OpenError> {
        let folder = Folder::claim(&options.folder)?;
        let now_unix_ms = unix_ms(SystemTime::now());
        // Either alone would do as long as the clock is right or the generator good; neither is trusted alone.
        let new_id = format!("{now_unix_ms:x}-{:016x}", rand::random::<u64>());
        Self::open_on(Arc::new(folder), options, &new_id, now_unix_ms)
    }

    fn open_on(disk: Arc<dyn Disk>, options: &StoreOptions, new_id: &str, now_unix_ms: u64) -> Result<Self, OpenError> {
        let opened = match open_rows(&*disk, new_id, now_unix_ms) {
            Err(Fault::Damaged(reason)) if options.move_damaged_aside => {
                move_aside(&*disk, now_unix_ms).map_err(Fault::Io).and_then(|names| {
                    tracing::error!("the job store was damaged: {reason}; it is now in {names}, and its jobs are lost");
                    open_rows(&*disk, new_id, now_unix_ms)
                })
            }
            opened => opened,
        };
        let folder = options.folder.clone();
        let failed = |doing: &str, error: std::io::Error| OpenError::Folder {
            folder: options.folder.clone(),
            doing: doing.to_owned(),
            reason: error.to_string(),
        };
        let (database, meta, plan) = opened.map_err(|fault| match fault {
            Fault::Io(error) => failed("open it", error),
            Fault::Newer(found) => OpenError::Newer { folder: folder.clone(), found, known: SCHEMA },
            Fault::Damaged(reason) => OpenError::Damaged { folder: folder.clone(), reason },
        })?;

        let shown = Arc::new(Shown::default());
        shown.found(plan.resumed.len(), plan.lost.len());
        let jobs = plan.resumed.iter().map(|resumed| (resumed.job.key, resumed.job.clone())).collect();
        let found = Mutex::new(Some(recovered(meta, plan, now_unix_ms)));
        let (sender, orders) = mpsc::channel();
        let writer = Writer {
            disk: disk.clone(),
            folder: folder.clone(),
            database,
            orders,
            shown: shown.clone(),
            pending: Vec::new(),
        };
        let writer = thread::Builder::new().name("cuzk-commit".to_owned()).spawn(move || writer.run());
        let writer = Some(writer.map_err(|error| failed("start its thread", error))?);
        Ok(Self { disk, folder, shown, jobs: Mutex::new(jobs), found, orders: Some(sender), writer })
    }

    /// Writes a payload under its name. The name is not synced yet.
    fn spool(&self, job: JobKey, request: &ProofRequest) -> Result<(), StoreError> {
        let (temporary, payload) = (spooled(&temporary_name(job)), spooled(&payload_name(job)));
        let parts: Vec<&[u8]> = record::payload_parts(request).into_iter().map(AsRef::as_ref).collect();
        let written = self.disk.create_synced(&temporary, &parts);
        written.and_then(|()| self.disk.rename(&temporary, &payload)).map_err(|error| {
            // What cannot be removed now is at the next start.
            let _ = self.disk.remove(&temporary);
            let error = StoreError::io("writing a payload", &error).in_folder(&self.folder);
            self.shown.failed(&error);
            error
        })
    }

    /// The change of the rows that an event means. `None` for a job that is not kept.
    fn change(&self, event: &StoreEvent) -> Option<Change> {
        match event {
            StoreEvent::Proved(job, partition, proof) => {
                self.jobs().contains_key(job).then_some(Change::Proved(*job, *partition as u32, *proof))
            }
            StoreEvent::Ended(outcome) => {
                let identity = self.jobs().remove(&outcome.key)?.identity;
                let ended_unix_ms = unix_ms(SystemTime::now());
                let ended = StoredOutcome { identity, outcome: Outcome::clone(outcome), ended_unix_ms };
                Some(Change::Ended(outcome.key, ended.to_row()))
            }
            StoreEvent::Forgotten(job) => Some(Change::Forgotten(*job)),
        }
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // If the writer has died, whoever waits for an answer gets none, and knows.
            let _ = orders.send(order);
        }
    }

    fn answer(&self, answer: oneshot::Receiver<Result<(), StoreError>>) -> Result<(), StoreError> {
        let lost = || StoreError::broken("the thread that writes has died".to_owned()).in_folder(&self.folder);
        answer.blocking_recv().unwrap_or_else(|_| Err(lost()))
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<JobKey, StoredJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobStore for Store {
    fn recover(&self) -> Result<Recovered, StoreError> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.ok_or_else(|| StoreError::broken("it was recovered before".to_owned()).in_folder(&self.folder))
    }

    fn request(&self, job: JobKey) -> Result<ProofRequest, StoreError> {
        let fault = |reason: String| StoreError::broken(reason).in_folder(&self.folder);
        let job = self.jobs().get(&job).cloned().ok_or_else(|| fault(format!("job {} is not in it", job.0)))?;
        let name = payload_name(job.key);
        let bytes = self.disk.read(&spooled(&name)).map_err(|e| fault(format!("reading the payload {name}: {e}")))?;
        let request = job.envelope.open(job.circuit.kind, &bytes.into());
        request
            .filter(|request| Identity::of("", request).payload == job.identity.payload)
            .ok_or_else(|| fault(format!("the payload {name} is damaged: submit the job again")))
    }

    fn accept(&self, job: &KeptJob, request: &ProofRequest) -> Result<(), StoreError> {
        let stored = StoredJob::new(job, request);
        self.spool(job.key, request)?;
        self.shown.spooled(stored.envelope.payload_bytes());
        let (done, safe) = oneshot::channel();
        self.order(Order::Accept(job.key, stored.to_row(), done));
        match self.answer(safe) {
            Ok(()) => {
                self.jobs().insert(job.key, stored);
                Ok(())
            }
            Err(error) => {
                let _ = self.disk.remove(&spooled(&payload_name(job.key)));
                Err(error)
            }
        }
    }

    fn record(&self, events: &[StoreEvent]) -> Result<(), StoreError> {
        for change in events.iter().filter_map(|event| self.change(event)) {
            self.order(Order::Later(change));
        }
        let (done, safe) = oneshot::channel();
        self.order(Order::Flush(done));
        self.answer(safe)
    }

    fn status(&self) -> StoreStatus {
        let jobs = self.jobs();
        let payload_bytes = jobs.values().map(|job| job.envelope.payload_bytes()).sum();
        StoreStatus { jobs: jobs.len(), payload_bytes, ..self.shown.status() }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(writer) = self.writer.take() {
            // A panic there was reported when it happened.
            let _ = writer.join();
        }
    }
}

fn spooled(name: &str) -> String {
    format!("{SPOOL}/{name}")
}

fn recovered(meta: Meta, plan: Plan, now_unix_ms: u64) -> Recovered {
    let unfinished =
        plan.resumed.into_iter().map(|Resumed { job, proofs }| Unfinished { job: job.kept(), proofs }).collect();
    let finished = plan.finished.into_iter().map(|ended| KeptOutcome {
        identity: ended.identity,
        outcome: Arc::new(ended.outcome),
        age: Duration::from_millis(now_unix_ms.saturating_sub(ended.ended_unix_ms)),
    });
    Recovered { ids: meta.id, next_key: meta.last_job + 1, unfinished, finished: finished.collect() }
}

/// Opens the database, decides what its rows mean, and puts the folder in order. The database is `None` if it must be
/// opened again before use.
fn open_rows(disk: &dyn Disk, new_id: &str, now_unix_ms: u64) -> Result<(Option<Database>, Meta, Plan), Fault> {
    let mut database = Database::open(disk, new_id)?;
    let meta = database.meta()?;
    let files = disk.list(SPOOL).map_err(Fault::Io)?;
    let plan = recover::plan(database.rows()?, &files, now_unix_ms);

    let lost = plan.lost.iter().map(|lost| Change::Ended(lost.outcome.key, lost.to_row()));
    let stale = plan.stale_partitions.iter().map(|(job, index)| Change::Stale(*job, *index));
    let changes: Vec<Change> = lost.chain(stale).collect();
    if !changes.is_empty() {
        database.commit(&changes).map_err(database::fault)?;
    }
    for name in &plan.stale_files {
        if let Err(error) = disk.remove(&spooled(name)) {
            tracing::warn!("the job store cannot remove {SPOOL}/{name}: {error}");
        }
    }
    let file_bytes = disk.list("").map_err(Fault::Io)?.iter().find(|(name, _)| name == FILE).map_or(0, |(_, n)| *n);
    let database = match database.compact(file_bytes) {
        Ok(()) => Some(database),
        Err(error) => {
            tracing::warn!("the job store cannot be compacted: {error}");
            None
        }
    };
    Ok((database, meta, plan))
}

/// Gives a damaged database and its payloads other names. Returns these.
fn move_aside(disk: &dyn Disk, now_unix_ms: u64) -> std::io::Result<String> {
    let (file, spool) = (format!("{FILE}.damaged-{now_unix_ms}"), format!("{SPOOL}.damaged-{now_unix_ms}"));
    if disk.list("")?.iter().any(|(name, _)| name == FILE) {
        disk.rename(FILE, &file)?;
    }
    disk.rename(SPOOL, &spool)?;
    disk.make_folder(SPOOL)?;
    disk.sync_names("")?;
    Ok(format!("{file} and {spool}"))
}
