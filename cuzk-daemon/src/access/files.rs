//! Reading files that must be private. What is checked is the file that is read, not one that had its name before.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privacy {
    /// Anybody.
    Public,
    /// Its owner and group.
    NotOthers,
    /// Its owner, who is root or the daemon's own user.
    OwnerOnly,
}

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{key}: cannot read {}: {source}", path.display())]
    Unreadable {
        /// The configuration key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others may read it.
    #[error("{key}: {} has mode {mode:04o}, so that others can reach what is in it: chmod {wanted:04o} {}", path.display(), path.display())]
    Open {
        /// The configuration key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they may be.
        wanted: u32,
    },
    /// It is another user's.
    #[error("{key}: {} belongs to user {uid}, who could change it: chown it to root or to the daemon's user", path.display())]
    Foreign {
        /// The configuration key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
}

/// Reads a file that `key` names.
pub(super) fn read_private(key: &'static str, path: &Path, privacy: Privacy) -> Result<String, FileError> {
    let unreadable = |source| FileError::Unreadable { key, path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let (mode, uid) = (metadata.mode() & 0o7777, metadata.uid());
    if let Some(wanted) = too_open(privacy, mode) {
        return Err(FileError::Open { key, path: path.to_owned(), mode, wanted });
    }
    if privacy == Privacy::OwnerOnly && uid != 0 && uid != nix::unistd::geteuid().as_raw() {
        return Err(FileError::Foreign { key, path: path.to_owned(), uid });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// The mode to set, if this one lets too many in.
fn too_open(privacy: Privacy, mode: u32) -> Option<u32> {
    match privacy {
        Privacy::NotOthers if mode & 0o007 != 0 => Some(mode & 0o770),
        Privacy::OwnerOnly if mode & 0o077 != 0 => Some(mode & 0o700),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_let_others_in() {
        assert_eq!(too_open(Privacy::Public, 0o644), None);
        assert_eq!(too_open(Privacy::NotOthers, 0o640), None);
        assert_eq!(too_open(Privacy::NotOthers, 0o644), Some(0o640));
        assert_eq!(too_open(Privacy::NotOthers, 0o602), Some(0o600));
        assert_eq!(too_open(Privacy::OwnerOnly, 0o600), None);
        assert_eq!(too_open(Privacy::OwnerOnly, 0o400), None);
        assert_eq!(too_open(Privacy::OwnerOnly, 0o640), Some(0o600));
    }
}
