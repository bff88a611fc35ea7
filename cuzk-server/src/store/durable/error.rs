//! Why the store cannot be opened, and what its disk's errors mean.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::store::{StoreError, StoreErrorKind};

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
    #[error(
        "the job store {}: cannot {doing}: {reason}; see to its disk and permissions, or name another folder in \
         store.path",
        folder.display()
    )]
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
        "the job store {} is damaged: {reason}; nothing was removed. Restore the folder from a copy, or set \
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

impl StoreError {
    pub(super) fn io(doing: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreErrorKind::Full
            }
            _ => StoreErrorKind::Broken,
        };
        Self { kind, reason: format!("{doing}: {error}") }
    }

    pub(super) fn database(error: redb::Error) -> Self {
        let doing = "writing the database";
        match error {
            redb::Error::Io(error) => Self::io(doing, &error),
            other => Self::broken(format!("{doing}: {other}")),
        }
    }

    pub(super) fn broken(reason: String) -> Self {
        Self { kind: StoreErrorKind::Broken, reason }
    }

    /// Says whose disk it is.
    pub(super) fn in_folder(self, folder: &Path) -> Self {
        Self { reason: format!("{}: {}", folder.display(), self.reason), ..self }
    }
}
