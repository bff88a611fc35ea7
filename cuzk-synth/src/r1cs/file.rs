//! The file of a recorded constraint system: little-endian, mapped as it is.
//!
//! ```text
//! 0     magic "cuzkR1CS"
//! 8     version, u64
//! 16    number of public inputs, u64
//! 24    number of auxiliary variables, u64
//! 32    13 sections, each offset and length in bytes, u64: coefficients (canonical); starts, columns, values of A, B
//!       and C; bitmaps of the densities (A aux, B inputs, B aux)
//! 240   BLAKE2b-256 over bytes 0..240 and the BLAKE2b-256 of each section, in order
//! 272   name of the circuit, zero-padded to byte 512
//! 512   the sections, each at a multiple of 64
//! ```
//!
//! The file is ours: written under a temporary name, renamed when complete, never written again. Whoever truncates it
//! under a running daemon does so in the daemon's own cache folder.

use std::{
    fs::File,
    io::{self, Write},
    ops::Range,
    path::Path,
    sync::Arc,
};

use blake2b_simd::{Hash, Params, State};
use blstrs::Scalar;
use ff::PrimeField;
use memmap2::Mmap;
use rayon::prelude::*;

use super::{Matrix, R1cs, Section};
use crate::{assignment::Density, bitmap::Bitmap};

const MAGIC: &[u8; 8] = b"cuzkR1CS";
/// Version of the format, and of what is recorded.
pub(super) const VERSION: u64 = 1;
const SECTIONS: usize = 13;
const TABLE: usize = 32;
const DIGEST: usize = TABLE + 16 * SECTIONS;
const NAME: usize = DIGEST + 32;
const HEADER: usize = 512;

/// A file that is not a constraint system, or not the one asked for.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system's word.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It was never one, or is of another version or circuit.
    #[error("{0}")]
    Other(&'static str),
    /// It was one.
    #[error("its digest is wrong: the file is corrupt")]
    Corrupt,
}

impl R1cs {
    /// Writes the system to `path`, atomically.
    pub fn save(&self, circuit: &str, path: &Path) -> io::Result<()> {
        let coefficients: Vec<[u8; 32]> = self.coefficients.iter().map(Scalar::to_repr).collect();
        let density = [&self.density.a_aux, &self.density.b_inputs, &self.density.b_aux];
        let words = density.map(|bitmap| Section::from(bitmap.words().to_vec()));
        let mut sections: Vec<&[u8]> = vec![coefficients.as_flattened()];
        for matrix in [&self.a, &self.b, &self.c] {
            sections.extend([matrix.starts.as_bytes(), matrix.columns.as_bytes(), matrix.values.as_bytes()]);
        }
        sections.extend(words.iter().map(Section::as_bytes));

        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        let mut put = |at: usize, value: u64| header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(8, VERSION);
        put(16, self.num_inputs as u64);
        put(24, self.num_aux as u64);
        let mut offset = HEADER;
        for (i, section) in sections.iter().enumerate() {
            put(TABLE + 16 * i, offset as u64);
            put(TABLE + 16 * i + 8, section.len() as u64);
            offset = (offset + section.len()).next_multiple_of(64);
        }
        let digest = digest(&header, &sections);
        header[DIGEST..NAME].copy_from_slice(digest.as_bytes());
        let name = circuit.as_bytes();
        header[NAME..NAME + name.len()].copy_from_slice(name);

        let folder = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::NamedTempFile::new_in(folder)?;
        let mut out = io::BufWriter::with_capacity(1 << 20, &file);
        out.write_all(&header)?;
        let mut written = HEADER;
        for section in sections {
            out.write_all(section)?;
            written += section.len();
            let padding = written.next_multiple_of(64) - written;
            out.write_all(&[0; 64][..padding])?;
            written += padding;
        }
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// Maps the system of a circuit from `path`, and checks its digest: every byte is read once. Parallel on the current
    /// rayon pool.
    pub fn open(circuit: &str, path: &Path) -> Result<Self, FileError> {
        let file = File::open(path)?;
        // SAFETY: see the module: nobody writes to the file once it has its name.
        let map = Arc::new(unsafe { Mmap::map(&file)? });
        let header = map.get(..HEADER).ok_or(FileError::Other("too short for a constraint system"))?;
        if &header[..8] != MAGIC {
            return Err(FileError::Other("not a constraint system"));
        }
        let get = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        if get(8) != VERSION {
            return Err(FileError::Other("a constraint system of another version"));
        }
        if header[NAME..].strip_prefix(circuit.as_bytes()).is_none_or(|rest| rest[0] != 0) {
            return Err(FileError::Other("the constraint system of another circuit"));
        }
        let range = |i: usize| -> Option<Range<usize>> {
            let (offset, length) = (get(TABLE + 16 * i) as usize, get(TABLE + 16 * i + 8) as usize);
            Some(offset..offset.checked_add(length)?)
        };
        let parts: Option<Vec<&[u8]>> = (0..SECTIONS).map(|i| map.get(range(i)?)).collect();
        let parts = parts.ok_or(FileError::Other("truncated"))?;
        if digest(header, &parts).as_bytes() != &header[DIGEST..NAME] {
            return Err(FileError::Corrupt);
        }
        Self::from_parts(&map, get(16) as usize, get(24) as usize, range, parts[0]).ok_or(FileError::Corrupt)
    }

    fn from_parts(
        map: &Arc<Mmap>,
        num_inputs: usize,
        num_aux: usize,
        range: impl Fn(usize) -> Option<Range<usize>>,
        coefficients: &[u8],
    ) -> Option<Self> {
        let coefficients: Option<Vec<Scalar>> =
            coefficients.chunks(32).map(|bytes| Scalar::from_repr_vartime(bytes.try_into().ok()?)).collect();
        let matrix = |first: usize| -> Option<Matrix> {
            Some(Matrix {
                starts: Section::mapped(map.clone(), range(first)?)?,
                columns: Section::mapped(map.clone(), range(first + 1)?)?,
                values: Section::mapped(map.clone(), range(first + 2)?)?,
            })
        };
        let bitmap = |i: usize, len: usize| -> Option<Bitmap> {
            let words = Section::<u64>::mapped(map.clone(), range(i)?)?;
            Bitmap::from_words(words.to_vec(), len)
        };
        Some(Self {
            num_inputs,
            num_aux,
            a: matrix(1)?,
            b: matrix(4)?,
            c: matrix(7)?,
            coefficients: coefficients?.into(),
            density: Density {
                a_aux: bitmap(10, num_aux)?,
                b_inputs: bitmap(11, num_inputs)?,
                b_aux: bitmap(12, num_aux)?,
            },
        })
    }
}

fn digest(header: &[u8], sections: &[&[u8]]) -> Hash {
    let mut params = Params::new();
    params.hash_length(32);
    let hashes: Vec<Hash> = sections.par_iter().map(|section| params.hash(section)).collect();
    let mut state: State = params.to_state();
    state.update(&header[..DIGEST]);
    for hash in hashes {
        state.update(hash.as_bytes());
    }
    state.finalize()
}
