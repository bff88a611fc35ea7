//! Why the store cannot be opened, and why it cannot take something while it runs.

use std::{fmt, io, path::PathBuf};

/// Why a daemon does not start on a store. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process works in the folder.
    #[error(
        "the job store {} is in use by another daemon{}; stop it, or give this one another store.path",
        folder.display(), pid.as_deref().map_or(String::new(), |pid| format!(" (process {pid})"))
    )]
    Locked {
        /// The store's folder.
        folder: PathBuf,
        /// The process that holds it, if it wrote its number down.
        pid: Option<String>,
    },
    /// The folder cannot be used.
    #[error("the job store {}: cannot {doing}: {reason}; give the daemon's user a folder of its own in store.path", folder.display())]
    Folder {
        /// The store's folder.
        folder: PathBuf,
        /// What was tried.
        doing: String,
        /// What came of it.
        reason: String,
    },
    /// Others may change what is in the folder.
    #[error(
        "the job store {} may be changed by other users (mode {mode:04o}): they could swap jobs and proofs; \
         chmod 0700 it",
        folder.display()
    )]
    Exposed {
        /// The store's folder.
        folder: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A later version of this program wrote it.
    #[error(
        "the job store {} has schema {found}, this build reads up to {known}: start the newer version of the daemon, \
         or give this one another store.path",
        folder.display()
    )]
    Newer {
        /// The store's folder.
        folder: PathBuf,
        /// The schema found.
        found: u32,
        /// The newest schema this build reads.
        known: u32,
    },
    /// What is in the folder is not what was written there.
    #[error(
        "the job store {} is damaged: {reason}; nothing was changed. Restore the folder from a copy, or set \
         store.if_damaged = \"move_aside\" to keep the damaged files under other names and begin with an empty store: \
         the jobs in it are then lost and must be submitted again",
        folder.display()
    )]
    Damaged {
        /// The store's folder.
        folder: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Why the store did not take something. It stays usable, and tries anew with the next job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Whether room must be made on the disk.
    pub kind: StoreErrorKind,
    /// What was tried, where, and what came of it.
    pub reason: String,
}

/// Who has to do what about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// There is no room: it comes with time, or by an operator's hand.
    Full,
    /// The disk cannot be written: an operator must look at it.
    Unwritable,
}

impl StoreError {
    pub(super) fn io(doing: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreErrorKind::Full
            }
            _ => StoreErrorKind::Unwritable,
        };
        Self { kind, reason: format!("{doing}: {error}") }
    }

    pub(super) fn database(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => Self::io("writing the database", &error),
            other => Self { kind: StoreErrorKind::Unwritable, reason: format!("writing the database: {other}") },
        }
    }

    pub(super) fn closed() -> Self {
        Self { kind: StoreErrorKind::Unwritable, reason: "the store is closed".to_owned() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.kind {
            StoreErrorKind::Full => "make room on its disk",
            StoreErrorKind::Unwritable => "look at its disk",
        };
        write!(f, "the job store takes no jobs: {}; {remedy}", self.reason)
    }
}

impl std::error::Error for StoreError {}
