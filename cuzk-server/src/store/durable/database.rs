//! The rows of jobs in an embedded database. Every commit is synced: 1 fsync.

use std::io;

use redb::{ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};

use super::{
    disk::{Disk, SPOOL},
    record::{StoredJob, StoredOutcome, partition_proof},
    recover::{Rows, is_payload, worth_compacting},
};
use crate::{core::job::JobKey, proving::PartitionProof};

/// The newest schema that this build reads, and the one it writes. Fields may be added to rows without a new one; a new
/// one is for what an older build would misread.
pub(super) const SCHEMA: u32 = 1;
/// The database's file.
pub(super) const FILE: &str = "jobs.redb";

const NEW_FILE: &str = "jobs.redb.new";
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const JOBS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
const PARTITIONS: TableDefinition<'_, (u64, u32), &[u8]> = TableDefinition::new("partitions");
const FINISHED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("finished");
const SCHEMA_KEY: &str = "schema";
const ID_KEY: &str = "id";
const LAST_KEY: &str = "last job";
/// Rows are read once, at the start.
const CACHE_BYTES: usize = 8 << 20;

/// An open database.
#[derive(Debug)]
pub(super) struct Database(redb::Database);

/// What is known of the whole store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    /// Made up when the store was made; in every job id.
    pub(super) id: String,
    /// The highest job number ever given away.
    pub(super) last_job: u64,
}

/// One change of the rows.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A job was accepted.
    Accepted(JobKey, Vec<u8>),
    /// One of its partitions was proven and verified.
    Proved(JobKey, u32, PartitionProof),
    /// It ended.
    Ended(JobKey, Vec<u8>),
    /// It was accepted, and then no job after all.
    Withdrawn(JobKey),
    /// Its end need not be known any more.
    Forgotten(JobKey),
    /// A partition's row that belongs to no job.
    Stale(JobKey, u32),
}

/// Why a database cannot be opened.
#[derive(Debug)]
pub(super) enum Fault {
    /// The disk does not do it.
    Io(io::Error),
    /// A later version made it.
    Newer(u32),
    /// It is not what was written.
    Damaged(String),
}

impl Database {
    /// Opens the database again, after a commit that failed.
    pub(super) fn reopen(disk: &dyn Disk) -> Result<Self, Fault> {
        Self::open_file(disk, FILE)
    }

    /// Opens the database; makes it if there is neither one nor anything that one should know of. All checksums are
    /// verified, whatever the last process left behind is rolled back to its last commit.
    pub(super) fn open(disk: &dyn Disk, new_id: &str) -> Result<Self, Fault> {
        let files = disk.list("").map_err(Fault::Io)?;
        match files.iter().find(|(name, _)| name == FILE) {
            // A new one gets its name when it is complete.
            Some((_, 0)) => return Err(Fault::Damaged(format!("{FILE} is empty"))),
            Some(_) => {}
            None => {
                let payloads = disk.list(SPOOL).map_err(Fault::Io)?.iter().filter(|(name, _)| is_payload(name)).count();
                if payloads > 0 {
                    return Err(Fault::Damaged(format!("{FILE} is missing, but there are {payloads} payloads")));
                }
                Self::make(disk, &files, new_id)?;
            }
        }
        let database = Self::open_file(disk, FILE)?;
        let schema = database.meta_value(SCHEMA_KEY)?.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        match schema {
            Some(SCHEMA) => Ok(database),
            Some(found) if found > SCHEMA => Err(Fault::Newer(found)),
            _ => Err(Fault::Damaged(format!("{FILE} has no schema version"))),
        }
    }

    /// What is known of the whole store.
    pub(super) fn meta(&self) -> Result<Meta, Fault> {
        let id = self.meta_value(ID_KEY)?.and_then(|bytes| String::from_utf8(bytes).ok());
        let last = self.meta_value(LAST_KEY)?.and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        match (id, last) {
            (Some(id), Some(last_job)) => Ok(Meta { id, last_job }),
            _ => Err(Fault::Damaged(format!("{FILE} has no identity"))),
        }
    }

    /// All rows.
    pub(super) fn rows(&self) -> Result<Rows, Fault> {
        let mut rows = Rows::default();
        let read = self.0.begin_read().map_err(fault)?;
        for row in read.open_table(JOBS).map_err(fault)?.iter().map_err(fault)? {
            let (key, row) = row.map_err(fault)?;
            let key = JobKey(key.value());
            rows.jobs.insert(key, StoredJob::from_row(key, row.value()).map_err(Fault::Damaged)?);
        }
        for row in read.open_table(PARTITIONS).map_err(fault)?.iter().map_err(fault)? {
            let (key, proof) = row.map_err(fault)?;
            let (job, index) = key.value();
            let proof = partition_proof(JobKey(job), proof.value()).map_err(Fault::Damaged)?;
            rows.partitions.insert((JobKey(job), index), proof);
        }
        for row in read.open_table(FINISHED).map_err(fault)?.iter().map_err(fault)? {
            let (key, row) = row.map_err(fault)?;
            let key = JobKey(key.value());
            rows.finished.insert(key, StoredOutcome::from_row(key, row.value()).map_err(Fault::Damaged)?);
        }
        Ok(rows)
    }

    /// Makes all changes, or none, and syncs them.
    pub(super) fn commit<'a>(&self, changes: impl IntoIterator<Item = &'a Change>) -> Result<(), redb::Error> {
        let write = self.0.begin_write()?;
        {
            let mut meta = write.open_table(META)?;
            let mut jobs = write.open_table(JOBS)?;
            let mut partitions = write.open_table(PARTITIONS)?;
            let mut finished = write.open_table(FINISHED)?;
            for change in changes {
                match change {
                    Change::Accepted(JobKey(key), row) => {
                        jobs.insert(key, row.as_slice())?;
                        let last = meta.get(LAST_KEY)?.and_then(|last| last.value().try_into().ok());
                        let last = last.map_or(0, u64::from_le_bytes).max(*key);
                        meta.insert(LAST_KEY, last.to_le_bytes().as_slice())?;
                    }
                    Change::Proved(JobKey(key), index, proof) => {
                        partitions.insert((*key, *index), proof.as_slice())?;
                    }
                    Change::Ended(JobKey(key), row) => {
                        jobs.remove(key)?;
                        partitions.retain_in((*key, 0)..=(*key, u32::MAX), |_, _| false)?;
                        finished.insert(key, row.as_slice())?;
                    }
                    Change::Withdrawn(JobKey(key)) => {
                        jobs.remove(key)?;
                    }
                    Change::Forgotten(JobKey(key)) => {
                        finished.remove(key)?;
                    }
                    Change::Stale(JobKey(key), index) => {
                        partitions.remove((*key, *index))?;
                    }
                }
            }
        }
        Ok(write.commit()?)
    }

    /// Rewrites the file if that makes it much smaller.
    pub(super) fn compact(&mut self, file_bytes: u64) -> Result<(), redb::Error> {
        let write = self.0.begin_write()?;
        let stats = write.stats()?;
        write.abort()?;
        if worth_compacting(file_bytes, stats.allocated_pages() * stats.page_size() as u64) {
            self.0.compact()?;
        }
        Ok(())
    }

    /// A new database gets its name when it is complete, so that one that is not is never mistaken for a damaged one.
    fn make(disk: &dyn Disk, files: &[(String, u64)], new_id: &str) -> Result<(), Fault> {
        if files.iter().any(|(name, _)| name == NEW_FILE) {
            disk.remove(NEW_FILE).map_err(Fault::Io)?;
        }
        let new = Self::open_file(disk, NEW_FILE)?;
        let begin = || -> Result<(), redb::Error> {
            let write = new.0.begin_write()?;
            {
                let mut meta = write.open_table(META)?;
                meta.insert(SCHEMA_KEY, SCHEMA.to_le_bytes().as_slice())?;
                meta.insert(ID_KEY, new_id.as_bytes())?;
                meta.insert(LAST_KEY, 0_u64.to_le_bytes().as_slice())?;
                write.open_table(JOBS)?;
                write.open_table(PARTITIONS)?;
                write.open_table(FINISHED)?;
            }
            Ok(write.commit()?)
        };
        begin().map_err(fault)?;
        new.0.close().map_err(fault)?;
        disk.rename(NEW_FILE, FILE).and_then(|()| disk.sync_names("")).map_err(Fault::Io)
    }

    fn open_file(disk: &dyn Disk, name: &str) -> Result<Self, Fault> {
        let backend = Backend(disk.open_database(name).map_err(Fault::Io)?);
        let mut builder = redb::Builder::new();
        builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
        builder.create_with_backend(backend).map(Self).map_err(fault)
    }

    fn meta_value(&self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        let read = self.0.begin_read().map_err(fault)?;
        let table = match read.open_table(META) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table.map_err(fault)?,
        };
        Ok(table.get(key).map_err(fault)?.map(|value| value.value().to_vec()))
    }
}

pub(super) fn fault(error: impl Into<redb::Error>) -> Fault {
    match error.into() {
        // A file that is no database, and one that was cut short.
        redb::Error::Io(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            Fault::Damaged(format!("{FILE}: {error}"))
        }
        redb::Error::Io(error) => Fault::Io(error),
        other => Fault::Damaged(format!("{FILE}: {other}")),
    }
}

/// A backend of either disk. Locks are not passed on: the folder has one of its own.
#[derive(Debug)]
struct Backend(Box<dyn StorageBackend>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}
