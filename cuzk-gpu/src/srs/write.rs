//! Writing of parameter files, list by list, with their digest computed on the way.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use bellperson::groth16::VerifyingKey;
use blake2b_simd::State;
use blstrs::{Bls12, G1Affine, G2Affine};
use rayon::prelude::*;
use tempfile::NamedTempFile;

use crate::params::Digest;

/// Points serialized at a time.
const CHUNK_POINTS: usize = 1 << 15;

/// A file in the making, under a temporary name beside its final one.
pub struct Writer {
    file: BufWriter<NamedTempFile>,
    digest: State,
}

impl Writer {
    /// Begins a file in the folder of `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        let file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), digest: State::new() })
    }

    /// Writes the verifying key.
    pub fn verifying_key(&mut self, vk: &VerifyingKey<Bls12>) -> io::Result<()> {
        let mut bytes = Vec::new();
        vk.write(&mut bytes)?;
        self.put(&bytes)
    }

    /// Begins a list of `points` points; [`Writer::g1`] or [`Writer::g2`] must follow with that many in all.
    pub fn begin_list(&mut self, points: usize) -> io::Result<()> {
        let length = u32::try_from(points).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("a list of {points} points does not fit the format"))
        })?;
        self.put(&length.to_be_bytes())
    }

    /// Writes points of G1.
    pub fn g1(&mut self, points: &[G1Affine]) -> io::Result<()> {
        self.points(points, G1Affine::to_uncompressed)
    }

    /// Writes points of G2.
    pub fn g2(&mut self, points: &[G2Affine]) -> io::Result<()> {
        self.points(points, G2Affine::to_uncompressed)
    }

    fn points<P: Sync, const N: usize>(&mut self, points: &[P], to_bytes: fn(&P) -> [u8; N]) -> io::Result<()> {
        for chunk in points.chunks(CHUNK_POINTS) {
            let bytes: Vec<[u8; N]> = chunk.par_iter().with_min_len(256).map(to_bytes).collect();
            self.put(bytes.as_flattened())?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.file.write_all(bytes)
    }

    /// Digest of all that is written so far.
    pub fn digest(&self) -> Digest {
        Digest::of_hash(&self.digest.finalize())
    }

    /// Syncs the file and gives it its name, atomically: whoever looks sees the whole file or none. Returns its digest.
    pub fn finish(self, path: &Path) -> io::Result<Digest> {
        let digest = self.digest();
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        readable_by_all(file.as_file())?;
        file.persist(path).map_err(|e| e.error)?;
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(digest)
    }
}

/// Temporary files are private; parameters are not.
fn readable_by_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}
