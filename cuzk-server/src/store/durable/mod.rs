//! Accepted jobs, kept on a disk: what was accepted survives a crash, and what was proven is not proven again.
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
    path::PathBuf,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use database::{Change, Database, FILE, Fault, Meta, SCHEMA};
use disk::{Disk, Folder, SPOOL};
pub use error::{OpenError, StoreError, StoreErrorKind};
pub use record::{Envelope, StoredJob, StoredOutcome};
pub use recover::Resumed;
use recover::{Plan, payload_name, temporary_name};
use status::Shown;
pub use status::StoreStatus;
use tokio::sync::oneshot;
use writer::{Order, Writer};

use crate::{
    core::{
        identity::Identity,
        job::{JobKey, Outcome},
    },
    proving::{PartitionProof, ProofRequest},
};

/// A store on disk. Clones share it; the last one that is dropped writes what is left to be written.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Arc<dyn Disk>,
    shown: Arc<Shown>,
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

/// A store and what was in it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Made up when the store was made; in every job id.
    pub id: String,
    /// The highest job number ever given away.
    pub last_job: u64,
    /// Unfinished jobs, in the order of their acceptance.
    pub resumed: Vec<Resumed>,
    /// Ended jobs, in the order of their end.
    pub finished: Vec<StoredOutcome>,
}

impl Store {
    /// Opens the store in a folder and finds out what was in it. `new_id` names the store if it is made now.
    ///
    /// # Errors
    /// If the folder cannot be used or is in use, or what is in it is damaged or from a later version.
    pub fn open(options: &StoreOptions, new_id: &str, now_unix_ms: u64) -> Result<Opened, OpenError> {
        let folder = Folder::claim(&options.folder)?;
        Self::open_on(Arc::new(folder), options, new_id, now_unix_ms)
    }

    fn open_on(
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        new_id: &str,
        now_unix_ms: u64,
    ) -> Result<Opened, OpenError> {
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
        let (database, meta, plan) = opened.map_err(|fault| match fault {
            Fault::Io(error) => OpenError::Folder { folder, doing: "open it".to_owned(), reason: error.to_string() },
            Fault::Newer(found) => OpenError::Newer { folder, found, known: SCHEMA },
            Fault::Damaged(reason) => OpenError::Damaged { folder, reason },
        })?;

        let shown = Arc::new(Shown::default());
        let payloads = plan.resumed.iter().map(|r| (r.job.key, r.job.envelope.payload_bytes()));
        shown.found(payloads, plan.lost.len());
        let (sender, orders) = mpsc::channel();
        let writer = Writer { disk: disk.clone(), database, orders, shown: shown.clone(), pending: Vec::new() };
        let writer = thread::Builder::new().name("cuzk-store".to_owned()).spawn(move || writer.run());
        let writer = writer.map_err(|error| OpenError::Folder {
            folder: options.folder.clone(),
            doing: "start its thread".to_owned(),
            reason: error.to_string(),
        })?;
        let store = Self(Arc::new(Inner { disk, shown, orders: Some(sender), writer: Some(writer) }));
        let Meta { id, last_job } = meta;
        Ok(Opened { store, id, last_job, resumed: plan.resumed, finished: plan.finished })
    }

    /// Keeps a job. When this returns, the job survives a crash. Blocking: waits for the disk.
    ///
    /// # Errors
    /// If the disk does not take it. Nothing of it is left then.
    pub fn accept(&self, job: &StoredJob, request: &ProofRequest) -> Result<(), StoreError> {
        let Inner { disk, shown, .. } = &*self.0;
        let temporary = format!("{SPOOL}/{}", temporary_name(job.key));
        let payload = format!("{SPOOL}/{}", payload_name(job.key));
        let parts: Vec<&[u8]> = record::payload_parts(request).into_iter().map(|part| part.as_ref()).collect();
        let spooled = disk.create_synced(&temporary, &parts).and_then(|()| disk.rename(&temporary, &payload));
        if let Err(error) = spooled {
            // What cannot be removed now is at the next start.
            let _ = disk.remove(&temporary);
            let error = StoreError::io("writing a payload", &error);
            shown.failed(&error);
            return Err(error);
        }
        shown.spooled(job.key, job.envelope.payload_bytes());
        let (done, safe) = oneshot::channel();
        self.order(Order::Accept(job.key, job.to_row(), done));
        safe.blocking_recv().unwrap_or(Err(StoreError::closed())).inspect_err(|_| {
            shown.unspooled(job.key);
            let _ = disk.remove(&payload);
        })
    }

    /// Takes back an acceptance that nobody was told of.
    pub fn withdraw(&self, job: JobKey) {
        self.order(Order::Later(Change::Withdrawn(job)));
    }

    /// Keeps the verified proof of one partition, behind the caller's back.
    pub fn keep_partition(&self, job: JobKey, partition: usize, proof: PartitionProof) {
        self.order(Order::Later(Change::Proved(job, partition as u32, proof)));
    }

    /// Keeps how a job ended, behind the caller's back, and lets go of its payload.
    pub fn end(&self, identity: Identity, outcome: &Outcome, now_unix_ms: u64) {
        let ended = StoredOutcome { identity, outcome: outcome.clone(), ended_unix_ms: now_unix_ms };
        self.order(Order::Later(Change::Ended(outcome.key, ended.to_row())));
    }

    /// Forgets how a job ended.
    pub fn forget(&self, job: JobKey) {
        self.order(Order::Later(Change::Forgotten(job)));
    }

    /// The request of a job, its payload read from the spool and checked against the digest it was submitted with.
    /// Blocking.
    ///
    /// # Errors
    /// Why not, fit to be the job's error.
    pub fn request(&self, job: &StoredJob) -> Result<ProofRequest, String> {
        let name = payload_name(job.key);
        let bytes = self.0.disk.read(&format!("{SPOOL}/{name}"));
        let bytes = bytes.map_err(|e| format!("its payload in the job store cannot be read ({name}: {e})"))?;
        let request = job.envelope.open(job.circuit.kind, &bytes.into());
        request.filter(|request| Identity::of("", request).payload == job.identity.payload).ok_or_else(|| {
            format!("its payload in the job store is not what was submitted ({name} is damaged): submit it again")
        })
    }

    /// Waits until everything written behind so far is on the disk.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let (done, safe) = oneshot::channel();
        self.order(Order::Flush(done));
        safe.await.unwrap_or(Err(StoreError::closed()))
    }

    /// What it tells of itself.
    pub fn status(&self) -> StoreStatus {
        self.0.shown.status()
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.0.orders {
            // If the writer has died, whoever waits for an answer gets none, and knows.
            let _ = orders.send(order);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(writer) = self.writer.take() {
            // A panic there was reported when it happened.
            let _ = writer.join();
        }
    }
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
        if let Err(error) = disk.remove(&format!("{SPOOL}/{name}")) {
            tracing::warn!("the job store cannot remove {SPOOL}/{name}: {error}");
        }
    }
    let file_bytes = disk.list("").map_err(Fault::Io)?.iter().find(|(name, _)| name == FILE).map_or(0, |(_, n)| *n);
    let compacted = database.compact(file_bytes);
    let database = match compacted {
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
