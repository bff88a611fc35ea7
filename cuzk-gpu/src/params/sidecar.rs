//! The file that says that parameters are for development: whoever knows their seed can forge proofs.

use std::{fs, io, path::Path};

use cuzk_synth::circuit::CircuitId;
use serde::{Deserialize, Serialize};

use super::Digest;

/// What development parameters say of themselves, as JSON beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// A sentence for people.
    pub warning: String,
    /// The circuit they are for.
    pub circuit: String,
    /// What they were derived from.
    pub seed: String,
    /// Version of the derivation.
    pub derivation: u32,
    /// Digest of the `.params` file.
    pub params_digest: String,
    /// Digest of the `.vk` file.
    pub vk_digest: String,
}

impl Sidecar {
    /// Describes parameters just made.
    pub fn new(circuit: CircuitId, seed: &str, derivation: u32, params: Digest, vk: Digest) -> Self {
        Self {
            warning: "INSECURE: development parameters. Whoever knows the seed can forge proofs; \
                      no network accepts proofs made with them."
                .to_owned(),
            circuit: circuit.to_string(),
            seed: seed.to_owned(),
            derivation,
            params_digest: params.to_string(),
            vk_digest: vk.to_string(),
        }
    }

    /// Reads it; `None` if there is none.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it, atomically.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&file, self)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}
