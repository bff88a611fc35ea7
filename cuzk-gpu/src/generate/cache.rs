//! Development parameters in the user's cache folder, made once for each circuit, seed and derivation.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use blake2b_simd::Params;
use cuzk_synth::circuit::CircuitId;

use super::{DERIVATION, GenerateError, Progress, generate};
use crate::params::{Files, Sidecar};

/// The folder for a circuit and a seed under `cache`, the user's cache folder.
pub fn development_folder(cache: &Path, circuit: CircuitId, seed: &str) -> PathBuf {
    // Seeds are any text; their hash is a file name.
    let seed = Params::new().hash_length(8).hash(seed.as_bytes()).to_hex();
    cache.join("cuzk/dev-params").join(format!("v{DERIVATION}-{circuit}-{seed}"))
}

/// Makes the parameters of a circuit in `dir` unless they are there already. Of several processes that want them at
/// once, one makes them and the others wait. Tells whether they were made now.
pub fn ensure(
    circuit: CircuitId,
    seed: &str,
    dir: &Path,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<bool, GenerateError> {
    let io = |error: io::Error| GenerateError::Io { path: dir.display().to_string(), error };
    fs::create_dir_all(dir).map_err(io)?;
    let lock = File::create(dir.join(".lock")).map_err(io)?;
    // Released when the file is closed, also if this process is killed.
    lock.lock().map_err(io)?;
    let files = Files::of(circuit, dir)?;
    if is_complete(&files, circuit, seed).map_err(io)? {
        return Ok(false);
    }
    generate(circuit, seed, dir, progress)?;
    Ok(true)
}

fn is_complete(files: &Files, circuit: CircuitId, seed: &str) -> io::Result<bool> {
    if !files.params.try_exists()? || !files.vk.try_exists()? {
        return Ok(false);
    }
    Ok(Sidecar::read(&files.sidecar)?.is_some_and(|sidecar| {
        sidecar.circuit == circuit.to_string() && sidecar.seed == seed && sidecar.derivation == DERIVATION
    }))
}
