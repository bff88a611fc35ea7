//! The unfinished file: `NAME.part`, beside it a note of where its bytes are from, and the digest of what it has so far.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use cuzk_gpu::params::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Asked, Validator},
    wanted::Wanted,
};

/// A file that is being fetched. It lies in the folder where it will be used, so that the last step is a rename.
#[derive(Debug)]
pub struct Part {
    file: File,
    folder: PathBuf,
    name: String,
    /// The digest of the file that is wanted.
    wanted: Digest,
    bytes: u64,
    hasher: Hasher,
    note: Option<Note>,
    /// Answers that its bytes came in; those of an earlier process count as several.
    pieces: u32,
}

/// Where the bytes of a part are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    url: String,
    validator: Option<Validator>,
    total: Option<u64>,
    /// Of the whole file, so that a part of another version is not gone on with.
    digest: String,
}

/// The folder, for one process that fetches.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder; `None` if another process fetches into it.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = options().open(folder.join(".cuzk-fetch.lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Part {
    /// Opens the part of a file, and keeps what an earlier process left of it, which is read once for its digest; `reading`
    /// hears how many bytes of how many have been read.
    pub fn open(folder: &Path, wanted: &Wanted, reading: &dyn Fn(u64, u64)) -> io::Result<Self> {
        let mut part = Self {
            file: options().open(folder.join(format!("{}.part", wanted.name)))?,
            folder: folder.to_owned(),
            name: wanted.name.clone(),
            wanted: wanted.digest,
            bytes: 0,
            hasher: Hasher::default(),
            note: None,
            pieces: 0,
        };
        let metadata = part.file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let note = fs::read(part.note_path()).ok().and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
        let note = note.filter(|note| note.digest == wanted.digest.to_string());
        match note {
            Some(note) if (1..=*wanted.bytes.end()).contains(&metadata.len()) => {
                part.read_back(metadata.len(), reading)?;
                (part.note, part.pieces) = (Some(note), 2);
            }
            _ => part.discard()?,
        }
        Ok(part)
    }

    /// Bytes that are here.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of it came in one answer.
    pub fn in_one_piece(&self) -> bool {
        self.pieces <= 1
    }

    /// Whether it has as many bytes as an earlier answer said there are.
    pub fn is_complete(&self) -> bool {
        self.bytes > 0 && self.note.as_ref().and_then(|note| note.total) == Some(self.bytes)
    }

    /// What to ask at a URL. Versions are comparable only at the one that the bytes came from; elsewhere the digest of the
    /// whole has to tell.
    pub fn asked(&self, url: &str) -> Asked<'_> {
        let note = self.note.as_ref();
        Asked {
            from: self.bytes,
            total: note.and_then(|note| note.total),
            validator: note.filter(|note| note.url == url).and_then(|note| note.validator.as_ref()),
        }
    }

    /// Begins to take an answer: from the start, or behind what is here.
    pub fn begin(
        &mut self,
        url: &str,
        validator: Option<Validator>,
        total: Option<u64>,
        append: bool,
    ) -> io::Result<()> {
        if !append {
            self.discard()?;
        }
        self.pieces += 1;
        let note = Note { url: url.to_owned(), validator, total, digest: self.wanted.to_string() };
        let file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer_pretty(&file, &note)?;
        file.persist(self.note_path())?;
        self.note = Some(note);
        Ok(())
    }

    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Throws away what is here.
    pub fn discard(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.bytes, self.hasher, self.note, self.pieces) = (0, Hasher::default(), None, 0);
        remove(&self.note_path())
    }

    /// Whether it is the file that was wanted.
    pub fn is_right(&self) -> bool {
        self.digest() == self.wanted
    }

    /// The digest of what is here.
    pub fn digest(&self) -> Digest {
        self.hasher.digest()
    }

    /// Puts the file in its place, on the disk and not only in its cache.
    pub fn place(self) -> io::Result<PathBuf> {
        self.file.sync_all()?;
        let target = self.folder.join(&self.name);
        fs::rename(self.path(), &target)?;
        File::open(&self.folder)?.sync_all()?;
        remove(&self.note_path())?;
        Ok(target)
    }

    /// Leaves what is worth it to a later process. Returns how many bytes that are.
    pub fn leave(mut self) -> io::Result<u64> {
        if self.bytes == 0 {
            self.discard()?;
            remove(&self.path())?;
        }
        Ok(self.bytes)
    }

    fn read_back(&mut self, bytes: u64, reading: &dyn Fn(u64, u64)) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        loop {
            match self.file.read(&mut buffer)? {
                0 => return Ok(()),
                n => {
                    self.hasher.update(&buffer[..n]);
                    self.bytes += n as u64;
                    reading(self.bytes, bytes);
                }
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.part", self.name))
    }

    fn note_path(&self) -> PathBuf {
        self.folder.join(format!("{}.part.json", self.name))
    }
}

/// Never through a link: in a folder that others may write to, it could lead anywhere.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(libc::O_NOFOLLOW);
    options
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
