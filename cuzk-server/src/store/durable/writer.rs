//! The one thread that changes the database. What arrives while a commit is being synced shares the next one.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    database::{Change, Database, Fault},
    disk::{Disk, SPOOL},
    recover::payload_name,
    status::Shown,
};
use crate::{core::job::JobKey, store::StoreError};

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Keep a job whose payload is in its file, and say when it is safe.
    Accept(JobKey, Vec<u8>, oneshot::Sender<Result<(), StoreError>>),
    /// Make a change that nobody waits for. Tried until it succeeds.
    Later(Change),
    /// Say when everything ordered before is safe, or why it is not.
    Flush(oneshot::Sender<Result<(), StoreError>>),
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    /// Where the disk is, for messages.
    pub(super) folder: PathBuf,
    /// `None` after a commit failed: the database refuses everything then, until it is opened again.
    pub(super) database: Option<Database>,
    pub(super) orders: Receiver<Order>,
    pub(super) shown: Arc<Shown>,
    /// Changes that nobody waits for and that are not made yet, in order.
    pub(super) pending: Vec<Change>,
}

/// A batch is cut here, so that those at its front do not wait for ever.
const MAX_BATCH: usize = 1024;
/// How often changes that failed are tried again when nothing else is to be done.
const RETRY_EVERY: Duration = Duration::from_secs(5);

impl Writer {
    /// Works until all senders are gone.
    pub(super) fn run(mut self) {
        loop {
            let first = if self.pending.is_empty() {
                self.orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.orders.recv_timeout(RETRY_EVERY)
            };
            let (batch, ends) = match first {
                Ok(first) => (std::iter::once(first).chain(self.orders.try_iter().take(MAX_BATCH)).collect(), false),
                Err(RecvTimeoutError::Timeout) => (Vec::new(), false),
                Err(RecvTimeoutError::Disconnected) => (Vec::new(), true),
            };
            self.carry_out(batch);
            if ends {
                return;
            }
        }
    }

    fn carry_out(&mut self, batch: Vec<Order>) {
        let (mut accepts, mut waiting, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        for order in batch {
            match order {
                Order::Accept(key, row, done) => {
                    accepts.push(Change::Accepted(key, row));
                    waiting.push((key, done));
                }
                Order::Later(change) => self.pending.push(change),
                Order::Flush(done) => flushes.push(done),
            }
        }
        let mut result = Ok(());
        if !accepts.is_empty() {
            // The payloads' names, before the rows that count on them.
            let named = self.disk.sync_names(SPOOL);
            result = named.map_err(|e| StoreError::io("syncing the spool folder", &e).in_folder(&self.folder));
        }
        if result.is_err() {
            accepts.clear();
        }
        let committed = self.commit(&accepts).map_err(|error| error.in_folder(&self.folder));
        let result = result.and(committed.clone());
        if let Err(error) = &result {
            self.shown.failed(error);
        }
        if committed.is_ok() {
            let made = std::mem::take(&mut self.pending);
            made.iter().for_each(|change| self.clean_up(change));
        } else {
            // The commit may have reached the disk after all, though its clients are told that it did not.
            self.pending.extend(accepts.iter().filter_map(|change| match change {
                Change::Accepted(key, _) => Some(Change::Withdrawn(*key)),
                _ => None,
            }));
        }
        self.shown.set_pending(self.pending.len());
        for (_, done) in waiting {
            // Who submitted it may have gone: then the job goes on without.
            let _ = done.send(result.clone());
        }
        for done in flushes {
            let _ = done.send(committed.clone());
        }
    }

    /// Makes all pending changes and those accepts in one commit.
    fn commit(&mut self, accepts: &[Change]) -> Result<(), StoreError> {
        if accepts.is_empty() && self.pending.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let database = match self.database.take() {
            Some(database) => database,
            None => Database::reopen(&*self.disk).map_err(unopened)?,
        };
        database.commit(self.pending.iter().chain(accepts)).map_err(StoreError::database)?;
        self.database = Some(database);
        self.shown.committed(begun.elapsed());
        Ok(())
    }

    /// Removes the payload that nobody needs any more. One that stays is removed at the next start.
    fn clean_up(&self, change: &Change) {
        if let Change::Ended(key, _) | Change::Withdrawn(key) = change {
            let _ = self.disk.remove(&format!("{SPOOL}/{}", payload_name(*key)));
        }
    }
}

fn unopened(fault: Fault) -> StoreError {
    let doing = "opening the database again";
    match fault {
        Fault::Io(error) => StoreError::io(doing, &error),
        Fault::Newer(schema) => StoreError::broken(format!("{doing}: it has schema {schema}")),
        Fault::Damaged(reason) => StoreError::broken(format!("{doing}: {reason}")),
    }
}
