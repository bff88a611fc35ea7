//! Parameter files: where they are, whether they may be used, and development parameters beside the official ones.

mod digest;
mod library;
mod sidecar;

pub use digest::{Digest, Hasher, Verdicts};
pub use library::{Found, Library, ParamError, Provenance, official_cid, official_digest};
pub use sidecar::Sidecar;

use std::path::{Path, PathBuf};

use cuzk_synth::{circuit::CircuitId, error::InputError, porep};

/// The files of one circuit in a parameter folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The proving parameters, verifying key included.
    pub params: PathBuf,
    /// The verifying key alone, which verifiers read.
    pub vk: PathBuf,
    /// Where development parameters say that they are.
    pub sidecar: PathBuf,
}

impl Files {
    /// The names that the upstream library and the network's parameter list use, in folder `dir`.
    ///
    /// # Errors
    /// For circuits that are not built.
    pub fn of(circuit: CircuitId, dir: &Path) -> Result<Self, InputError> {
        let stem = porep::parameter_stem(circuit)?;
        let file = |extension| dir.join(format!("v28-{stem}.{extension}"));
        Ok(Self { params: file("params"), vk: file("vk"), sidecar: file("insecure-dev.json") })
    }
}
