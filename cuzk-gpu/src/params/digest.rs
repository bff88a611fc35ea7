//! Digests of files, and the memory of digests already computed: hashing 48 GB at every start is not acceptable.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use blake2b_simd::{Hash, State};
use serde::{Deserialize, Serialize};

/// The first 16 bytes of a file's BLAKE2b-512, as the network's parameter list has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Cuts a whole BLAKE2b-512.
    pub fn of_hash(hash: &Hash) -> Self {
        Self(hash.as_bytes()[..16].try_into().expect("64 bytes have 16"))
    }

    /// Reads a file to its end.
    pub fn of_file(mut file: &File) -> io::Result<Self> {
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.digest()),
                n => hasher.update(&buffer[..n]),
            };
        }
    }
}

/// The digest of bytes that come piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Hasher(State);

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> Digest {
        Digest::of_hash(&self.0.finalize())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = hex::FromHexError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(s, &mut bytes)?;
        Ok(Self(bytes))
    }
}

/// What tells one version of a file from the next without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    inode: u64,
    bytes: u64,
    mtime_ns: i64,
    /// Changes with every write too, and, unlike the modification time, nobody can set it back.
    ctime_ns: i64,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        // Nanoseconds since 1970 fit 64 bits until 2262.
        let ns = |seconds: i64, ns: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(ns);
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    version: Version,
    digest: String,
}

/// Digests computed before, kept in a file of ours and dropped when the file they are of changes.
pub struct Verdicts {
    path: Option<PathBuf>,
    entries: Mutex<BTreeMap<PathBuf, Entry>>,
}

impl Verdicts {
    /// Reads what was remembered in `path`; a file that is missing or damaged remembers nothing.
    pub fn load(path: PathBuf) -> Self {
        let entries = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path: Some(path), entries: Mutex::new(entries) }
    }

    /// Remembers within this process only.
    pub fn in_memory() -> Self {
        Self { path: None, entries: Mutex::default() }
    }

    /// The digest of a file, computed at most once for each version of it.
    pub fn digest(&self, path: &Path) -> io::Result<Digest> {
        let path = fs::canonicalize(path)?;
        let file = File::open(&path)?;
        let version = Version::of(&file.metadata()?);
        if let Some(digest) = self.remembered(&path, &version) {
            return Ok(digest);
        }
        let digest = Digest::of_file(&file)?;
        // A file that is being written has no digest worth remembering.
        if Version::of(&file.metadata()?) == version {
            self.remember(path, version, digest);
        }
        Ok(digest)
    }

    /// Whether a file is the version whose digest is remembered. Reads nothing of it.
    pub fn is_unchanged(&self, path: &Path) -> bool {
        let unchanged = || {
            let path = fs::canonicalize(path)?;
            let version = Version::of(&fs::metadata(&path)?);
            io::Result::Ok(self.remembered(&path, &version).is_some())
        };
        unchanged().unwrap_or(false)
    }

    /// Remembers the digest of a file that was just written.
    pub fn insert(&self, path: &Path, digest: Digest) -> io::Result<()> {
        let path = fs::canonicalize(path)?;
        let version = Version::of(&fs::metadata(&path)?);
        self.remember(path, version, digest);
        Ok(())
    }

    fn remembered(&self, path: &Path, version: &Version) -> Option<Digest> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(path)?;
        (entry.version == *version).then(|| entry.digest.parse().ok())?
    }

    fn remember(&self, path: PathBuf, version: Version, digest: Digest) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = digest.to_string();
        entries.insert(path, Entry { version, digest });
        let Some(path) = &self.path else { return };
        if let Err(error) = save(path, &entries) {
            tracing::warn!(path = %path.display(), %error, "cannot remember the digests of parameter files; they will be computed again at the next start");
        }
    }
}

fn save(path: &Path, entries: &BTreeMap<PathBuf, Entry>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&file, entries)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_remembered_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let memory = folder.path().join("memory/digests.json");
        let file = folder.path().join("file");
        fs::write(&file, b"abc").unwrap();
        let verdicts = Verdicts::load(memory.clone());
        let digest = verdicts.digest(&file).unwrap();
        // BLAKE2b-512("abc"), RFC 7693, appendix A.
        assert_eq!(digest.to_string(), "ba80a53f981c4d0d6a2797b69f12f6e9");

        // A later process believes what is remembered: here, a digest that is not the file's.
        let other: Digest = "00000000000000000000000000000000".parse().unwrap();
        verdicts.insert(&file, other).unwrap();
        assert_eq!(Verdicts::load(memory.clone()).digest(&file).unwrap(), other);

        fs::write(&file, b"abd").unwrap();
        let changed = Verdicts::load(memory.clone()).digest(&file).unwrap();
        assert_ne!(changed, digest);
        assert_ne!(changed, other);

        fs::write(&memory, b"{ damaged").unwrap();
        assert_eq!(Verdicts::load(memory).digest(&file).unwrap(), changed);
    }
}
