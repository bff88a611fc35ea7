//! Constraint systems in the user's cache folder, recorded on first use.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{FileError, R1cs, RecordError, file::VERSION};
use crate::{circuit::CircuitId, error::InputError, porep};

/// Why there is no constraint system.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// No such circuit.
    #[error(transparent)]
    Circuit(#[from] InputError),
    /// The circuit cannot be recorded.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// The cache folder cannot be used.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
}

/// The file of a circuit's constraint system under `cache`, the user's cache folder. Its name changes with the format
/// and with the version of this crate, which fixes those of the upstream circuits.
pub fn cache_path(cache: &Path, circuit: CircuitId) -> PathBuf {
    let name = format!("{circuit}-v{VERSION}-{}.r1cs", env!("CARGO_PKG_VERSION"));
    cache.join("cuzk/circuits").join(name)
}

/// Opens the constraint system of a circuit, or records it and writes it to `path` first. A file that is damaged or
/// another's is replaced. Of several processes that want it at once, one records it. `recording` is called before that.
pub fn open_or_record(circuit: CircuitId, path: &Path, recording: impl FnOnce()) -> Result<R1cs, CacheError> {
    let io = |error: io::Error| CacheError::Io { path: path.to_owned(), error };
    let name = circuit.to_string();
    match R1cs::open(&name, path) {
        Ok(r1cs) => return Ok(r1cs),
        Err(FileError::Io(error)) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        Err(_) => {}
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(io)?;
    let lock = File::create(path.with_extension("lock")).map_err(io)?;
    // Released when the file is closed, also if this process is killed.
    lock.lock().map_err(io)?;
    if let Ok(r1cs) = R1cs::open(&name, path) {
        return Ok(r1cs);
    }
    recording();
    let r1cs = porep::record(circuit)??;
    r1cs.save(&name, path).map_err(io)?;
    // The mapped file takes the place of the recorded system, whose memory is given back.
    drop(r1cs);
    R1cs::open(&name, path).map_err(|error| io(io::Error::other(error)))
}
