//! One folder of parameter files and the rules for using them.

use std::{
    io,
    path::{Path, PathBuf},
};

use cuzk_synth::{circuit::CircuitId, error::InputError};
use storage_proofs_core::parameter_cache::PARAMETERS;

use super::{Digest, Files, Sidecar, Verdicts};
use crate::{
    arith::backend::Backend,
    srs::{self, Srs, SrsError, Watch},
};

/// Where parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// From the network's trusted setup: the digests are the published ones.
    Official,
    /// Made here, insecure by nature.
    Development,
}

/// Parameter files that are there and may be used.
#[derive(Clone, Debug)]
pub struct Found {
    /// The circuit.
    pub circuit: CircuitId,
    /// Its files.
    pub files: Files,
    /// Bytes of the `.params` file.
    pub bytes: u64,
    /// What the files claim to be; [`Library::verify`] finds out whether they are.
    pub provenance: Provenance,
    params_digest: String,
    vk_digest: String,
}

/// Parameters that cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ParamError {
    /// No such circuit.
    #[error(transparent)]
    Circuit(#[from] InputError),
    /// A file is not there.
    #[error(
        "{circuit}: no file {} ([srs] param_cache, or FIL_PROOFS_PARAMETER_CACHE, names the folder). \
         Fetch it with `cuzk-daemon params fetch --circuit {circuit}` or, for tests only, run \
         `cuzk-daemon params generate --circuit {circuit} --out {}`",
        path.display(), folder.display()
    )]
    Missing {
        /// The circuit.
        circuit: CircuitId,
        /// The file.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// Development parameters, not allowed.
    #[error(
        "{circuit}: {} are development parameters, which prove nothing to anyone; \
         to use them all the same set [srs] allow_dev_params = true",
        path.display()
    )]
    Development {
        /// The circuit.
        circuit: CircuitId,
        /// The file.
        path: PathBuf,
    },
    /// The file is not what it should be.
    #[error(
        "{}: digest {found}, expected {expected} ({by}): the file is corrupt or another one; {remedy}",
        path.display()
    )]
    WrongDigest {
        /// The file.
        path: PathBuf,
        /// Who expects that.
        by: &'static str,
        /// How to come by the right one.
        remedy: String,
        /// The digest expected.
        expected: String,
        /// The digest found.
        found: Digest,
    },
    /// The two files do not belong together.
    #[error("{} and {} hold different verifying keys: fetch both again", params.display(), vk.display())]
    VkDiffers {
        /// The parameter file.
        params: PathBuf,
        /// The verifying key file.
        vk: PathBuf,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Srs(#[from] SrsError),
    /// The operating system's word.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
}

/// A parameter folder. A library writes nothing there: parameters are made by command only.
pub struct Library {
    folder: PathBuf,
    cache: Option<PathBuf>,
    allow_development: bool,
    verdicts: Verdicts,
}

/// The published digest of a parameter or verifying key file, by file name.
pub fn official_digest(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    Some(PARAMETERS.get(name)?.digest.as_str())
}

/// The content id under which the network publishes a parameter or verifying key file on IPFS, by file name.
pub fn official_cid(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    Some(PARAMETERS.get(name)?.cid.as_str())
}

impl Library {
    /// The parameters in `folder`.
    pub fn new(folder: PathBuf, allow_development: bool, verdicts: Verdicts) -> Self {
        Self { folder, cache: None, allow_development, verdicts }
    }

    /// Keeps converted parameters in this folder.
    pub fn with_cache(self, cache: PathBuf) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks whether the files of a circuit are there and may be used. Cheap: no file is read but a sidecar.
    pub fn find(&self, circuit: CircuitId) -> Result<Found, ParamError> {
        let files = Files::of(circuit, &self.folder)?;
        let missing = |path: &Path, error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                ParamError::Missing { circuit, path: path.to_owned(), folder: self.folder.clone() }
            }
            _ => ParamError::Io { path: path.to_owned(), error },
        };
        let bytes =
            |path: &Path| std::fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| missing(path, error));
        let params_bytes = bytes(&files.params)?;
        bytes(&files.vk)?;
        let sidecar =
            Sidecar::read(&files.sidecar).map_err(|error| ParamError::Io { path: files.sidecar.clone(), error })?;
        let (provenance, params_digest, vk_digest) = match sidecar {
            Some(_) if !self.allow_development => {
                return Err(ParamError::Development { circuit, path: files.params });
            }
            Some(sidecar) => (Provenance::Development, sidecar.params_digest, sidecar.vk_digest),
            None => {
                let official = |path| official_digest(path).unwrap_or("none published").to_owned();
                (Provenance::Official, official(&files.params), official(&files.vk))
            }
        };
        Ok(Found { circuit, files, bytes: params_bytes, provenance, params_digest, vk_digest })
    }

    /// Compares the digests of both files with those expected. Reads the files whole, once for each version of them.
    pub fn verify(&self, found: &Found) -> Result<(), ParamError> {
        let (by, remedy) = match found.provenance {
            Provenance::Official => (
                "as published by the network",
                format!("`cuzk-daemon params fetch --circuit {}` replaces it", found.circuit),
            ),
            Provenance::Development => {
                ("as noted when they were made", "delete the circuit's files and generate them again".to_owned())
            }
        };
        for (path, expected) in [(&found.files.params, &found.params_digest), (&found.files.vk, &found.vk_digest)] {
            let digest = self.verdicts.digest(path).map_err(|error| ParamError::Io { path: path.clone(), error })?;
            if digest.to_string() != *expected {
                return Err(ParamError::WrongDigest {
                    path: path.clone(),
                    by,
                    remedy,
                    expected: expected.clone(),
                    found: digest,
                });
            }
        }
        Ok(())
    }

    /// Verifies the files of a circuit and gets its parameters ready: seconds for 2 KiB, minutes for 32 GiB. With a cache
    /// folder they are converted into a file there the first time, and any later time takes a moment; without one they
    /// are read into memory. Parallel on the current rayon pool.
    pub fn load(&self, circuit: CircuitId, arithmetic: Backend) -> Result<Srs, ParamError> {
        self.load_watched(circuit, arithmetic, &Watch::nobody())
    }

    /// As [`Self::load`], with somebody who is told how much of the file has been read, and can stop that.
    pub fn load_watched(&self, circuit: CircuitId, arithmetic: Backend, watch: &Watch<'_>) -> Result<Srs, ParamError> {
        let found = self.find(circuit)?;
        // A truncated file or an error page is told as such, without hashing it first to call it corrupt.
        srs::check_layout(&found.files.params)?;
        let vk = srs::read_verifying_key(&found.files.vk)?;
        self.verify(&found)?;
        let srs = self.open(&found, arithmetic, watch)?;
        if srs.vk != vk {
            return Err(ParamError::VkDiffers { params: found.files.params, vk: found.files.vk });
        }
        Ok(srs)
    }

    fn open(&self, found: &Found, arithmetic: Backend, watch: &Watch<'_>) -> Result<Srs, ParamError> {
        let params = &found.files.params;
        let Some(cache) = &self.cache else {
            return Ok(srs::read_watched(params, arithmetic, watch)?);
        };
        let io = |error| ParamError::Io { path: cache.clone(), error };
        std::fs::create_dir_all(cache).map_err(io)?;
        let source = self.verdicts.digest(params).map_err(io)?;
        let rows = cache.join(format!("{}-{source}-{arithmetic:?}.rows", found.circuit).to_lowercase());
        let unchanged = self.verdicts.is_unchanged(&rows);
        let (srs, converted) = srs::open_or_convert(params, source, &rows, unchanged, arithmetic, watch)?;
        if converted {
            // What is remembered is the version of the file; nobody will ask for its digest.
            self.verdicts.insert(&rows, source).map_err(io)?;
        }
        Ok(srs)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CIRCUIT: CircuitId = CircuitId::porep(cuzk_synth::circuit::SectorSize::Kib2);

    struct Folder {
        dir: tempfile::TempDir,
        files: Files,
    }

    impl Folder {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let files = Files::of(CIRCUIT, dir.path()).unwrap();
            Self { dir, files }
        }

        fn library(&self, allow_development: bool) -> Library {
            let verdicts = Verdicts::in_memory();
            Library::new(self.dir.path().to_owned(), allow_development, verdicts)
        }

        fn write_pair(&self) {
            fs::write(&self.files.params, b"params").unwrap();
            fs::write(&self.files.vk, b"vk").unwrap();
        }
    }

    #[test]
    fn missing_files_are_named_with_the_remedy() {
        let folder = Folder::new();
        let error = folder.library(false).find(CIRCUIT).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ParamError::Missing { .. }));
        for part in [
            folder.files.params.to_str().unwrap(),
            "param_cache",
            "cuzk-daemon params fetch --circuit porep-2k",
            "params generate --circuit porep-2k",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        fs::write(&folder.files.params, b"params").unwrap();
        let error = folder.library(false).find(CIRCUIT).unwrap_err();
        assert!(error.to_string().contains(".vk"), "{error}");
    }

    #[test]
    fn files_of_the_published_name_must_have_the_published_digest() {
        let folder = Folder::new();
        folder.write_pair();
        let library = folder.library(true);
        let found = library.find(CIRCUIT).unwrap();
        assert_eq!(found.provenance, Provenance::Official);
        let error = library.verify(&found).unwrap_err();
        // The digest of the 2 KiB parameters in the network's list.
        assert!(error.to_string().contains("434fb1338ecfaf0f59256f30dde4968f"), "{error}");
        assert!(error.to_string().contains("params fetch --circuit porep-2k` replaces it"), "{error}");
    }

    #[test]
    fn development_parameters_need_leave_and_their_own_digests() {
        let folder = Folder::new();
        folder.write_pair();
        let digest = |path: &Path| Verdicts::in_memory().digest(path).unwrap();
        let (params, vk) = (digest(&folder.files.params), digest(&folder.files.vk));
        Sidecar::new(CIRCUIT, "seed", 1, params, vk).write(&folder.files.sidecar).unwrap();
        let error = folder.library(false).find(CIRCUIT).unwrap_err();
        assert!(error.to_string().contains("allow_dev_params = true"), "{error}");

        let library = folder.library(true);
        let found = library.find(CIRCUIT).unwrap();
        assert_eq!(found.provenance, Provenance::Development);
        library.verify(&found).unwrap();
        // Loading looks at the lengths first, and says so.
        assert!(matches!(library.load(CIRCUIT, Backend::current()), Err(ParamError::Srs(_))));

        fs::write(&folder.files.params, b"other!").unwrap();
        let error = library.verify(&found).unwrap_err();
        assert!(matches!(error, ParamError::WrongDigest { .. }), "{error}");
    }

    #[test]
    fn circuits_that_are_not_built_are_refused() {
        let circuit = "wpost-32g".parse().unwrap();
        let error = Folder::new().library(false).find(circuit).unwrap_err();
        assert!(matches!(error, ParamError::Circuit(InputError::Unimplemented(_))));
    }
}
