//! The store's folder on a disk: the few operations that the store is made of, so that tests can put a disk behind them
//! that forgets what was not synced.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use redb::{StorageBackend, backends::FileBackend};

use super::error::OpenError;

/// The subfolder of the payload files.
pub(super) const SPOOL: &str = "spool";

/// A folder with one subfolder, [`SPOOL`]. Names are relative to the folder. What a call wrote may be lost in a power
/// failure until the file, and for a new or changed name its folder, are synced.
pub(super) trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Writes a new file, one part after the other, and syncs it; not its name.
    fn create_synced(&self, name: &str, parts: &[&[u8]]) -> io::Result<()>;

    /// Renames a file or folder, over another one if need be.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Syncs the names in the folder ("") or a subfolder.
    fn sync_names(&self, folder: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Reads a whole file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// The files in the folder ("") or a subfolder, with their lengths.
    fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>>;

    /// Makes a subfolder, if it is not there.
    fn make_folder(&self, name: &str) -> io::Result<()>;

    /// Opens a file for a database; makes it if it is not there.
    fn open_database(&self, name: &str) -> io::Result<Box<dyn StorageBackend>>;
}

/// A folder of the file system that no other process works in.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is not there, and takes it for this process.
    pub(super) fn claim(path: &Path) -> Result<Self, OpenError> {
        let failed = |doing: &str, error: io::Error| OpenError::Folder {
            folder: path.to_path_buf(),
            doing: doing.to_owned(),
            reason: error.to_string(),
        };
        let missing: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| failed("make it", e))?;
        for parent in missing.iter().filter_map(|made| made.parent()) {
            // Where a parent may not be opened, its file system has to keep the new name by itself.
            let _ = File::open(parent).and_then(|parent| parent.sync_all());
        }
        let mode = fs::metadata(path).map_err(|e| failed("look at it", e))?.permissions().mode() & 0o7777;
        // Readable by others is harmless: the files in it are not.
        if mode & 0o022 != 0 {
            return Err(OpenError::Exposed { folder: path.to_path_buf(), mode });
        }
        let lock_path = path.join("lock");
        let mut options = private();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(&lock_path).map_err(|e| failed("open its lock file", e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Only for the message.
                let _ = lock.read_to_string(&mut pid);
                let pid = Some(pid.trim().to_owned()).filter(|pid| !pid.is_empty());
                return Err(OpenError::Locked { folder: path.to_path_buf(), pid });
            }
            Err(TryLockError::Error(e)) => return Err(failed("lock it", e)),
        }
        let note = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        note.map_err(|e| failed("write its lock file", e))?;
        let folder = Self { path: path.to_path_buf(), _lock: lock };
        folder.make_folder(SPOOL).map_err(|e| failed("make its spool folder", e))?;
        Ok(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Disk for Folder {
    fn create_synced(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mut file = private().write(true).create_new(true).open(self.at(name))?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        File::open(self.at(folder))?.sync_all()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.at(name))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.at(folder))? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push((name, metadata.len()));
            }
        }
        Ok(files)
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(self.at(name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn open_database(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let file = private().read(true).write(true).create(true).truncate(false).open(self.at(name))?;
        Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
    }
}

/// New files are for the daemon's user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_for_the_owner_alone() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a/b");
        let folder = Folder::claim(&path).expect("free");
        folder.create_synced("spool/1", &[b"ab", b"c"]).expect("room");
        folder.open_database("db").expect("room");
        assert_eq!([mode(&path), mode(&path.join(SPOOL))], [0o700; 2]);
        assert_eq!(["lock", "spool/1", "db"].map(|name| mode(&path.join(name))), [0o600; 3]);
        assert_eq!(folder.list(SPOOL).expect("readable"), [("1".to_owned(), 3)]);
        assert_eq!(folder.read("spool/1").expect("readable"), b"abc");
        folder.create_synced("spool/1", &[]).expect_err("no file is written over");
    }

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let first = Folder::claim(dir.path()).expect("free");
        let error = Folder::claim(dir.path()).expect_err("taken");
        let pid = Some(std::process::id().to_string());
        assert_eq!(error, OpenError::Locked { folder: dir.path().to_path_buf(), pid });
        drop(first);
        Folder::claim(dir.path()).expect("free again");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).expect("ours");
        let error = Folder::claim(dir.path()).expect_err("exposed");
        assert!(error.to_string().contains("mode 0770"), "{error}");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        Folder::claim(dir.path()).expect("reading is allowed");
    }

    #[test]
    fn what_is_no_folder_is_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("file");
        fs::write(&file, b"").expect("room");
        let error = Folder::claim(&file).expect_err("no folder").to_string();
        assert!(error.contains("file: cannot make it") && error.contains("store.path"), "{error}");
    }
}
