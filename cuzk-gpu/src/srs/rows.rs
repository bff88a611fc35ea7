//! Parameters converted once for an arithmetic and kept in a file of ours, so that a start takes no time and most points
//! no memory: 1.5 GB for 2 KiB, of which a third is kept and the rest mapped, query by query while a proof needs them.
//!
//! ```text
//! 0     magic "cuzkROWS", version, arithmetic (1 IFMA, 2 portable), number of points of h, l, a, b_g1, b_g2: u64 each
//! 64    digest of the parameter file that it was made from, 32 hexadecimal digits
//! 4096  the verifying key as in parameter files, from here to the next multiple of 4096
//! ...   h, l, a, b_g1, b_g2, each at a multiple of 4096, as they are in memory
//! ```
//!
//! Whether the file is still as it was written is known from its inode and change time ([`crate::params::Verdicts`]):
//! otherwise it is made again.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use memmap2::Mmap;
use tempfile::NamedTempFile;

use super::Srs;
use crate::{
    arith::{Backend, Curve, G1, G2, Table},
    params::Digest,
};

const MAGIC: &[u8; 8] = b"cuzkROWS";
const VERSION: u64 = 1;
const PAGE: u64 = 4096;

/// The largest `h` that is kept in memory, where it lies on huge pages: a 2 KiB circuit's has half of it.
const KEPT_BYTES: usize = 1 << 30;

/// A file of rows in the making.
pub(super) struct RowsWriter {
    file: NamedTempFile,
    header: Vec<u8>,
}

impl RowsWriter {
    /// Begins a file in the folder of `path`, with the verifying key.
    pub(super) fn create(
        path: &Path,
        arithmetic: Backend,
        source: Digest,
        lengths: [usize; 5],
        vk: &VerifyingKey<Bls12>,
    ) -> io::Result<Self> {
        let mut header = MAGIC.to_vec();
        let numbers = [VERSION, code(arithmetic)].into_iter().chain(lengths.map(|n| n as u64));
        header.extend(numbers.flat_map(u64::to_le_bytes));
        header.extend_from_slice(source.to_string().as_bytes());
        let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        // The header comes last: a file without it is none.
        file.seek(SeekFrom::Start(PAGE))?;
        let mut key = Vec::new();
        vk.write(&mut key)?;
        file.write_all(&key)?;
        Ok(Self { file, header })
    }

    /// Writes the next list.
    pub(super) fn list<C: Curve>(&mut self, table: &Table<C>) -> io::Result<()> {
        let at = self.file.stream_position()?.next_multiple_of(PAGE);
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(table.as_bytes())
    }

    /// Gives the complete file its name.
    pub(super) fn finish(mut self, path: &Path) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.header)?;
        self.file.as_file().sync_all()?;
        self.file.persist(path)?;
        Ok(())
    }
}

/// Opens the rows of the parameter file with digest `source` for an arithmetic. `None` if the file is not that.
pub(super) fn open(path: &Path, arithmetic: Backend, source: Digest) -> io::Result<Option<Srs>> {
    let mut file = File::open(path)?;
    let mut header = [0; 96];
    file.read_exact(&mut header)?;
    let number = |i: usize| u64::from_le_bytes(header[8 * i..8 * i + 8].try_into().expect("8 bytes"));
    let expected = &header[..8] == MAGIC
        && number(1) == VERSION
        && number(2) == code(arithmetic)
        && header[64..96] == *source.to_string().as_bytes();
    if !expected {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(PAGE))?;
    let vk = VerifyingKey::read(&mut io::BufReader::new(&file))?;
    let mut key = Vec::new();
    vk.write(&mut key)?;
    let file_bytes = file.metadata()?.len();
    // SAFETY: a file of ours, which nobody writes to once it has its name: a newer one takes its place whole.
    let map = Arc::new(unsafe { Mmap::map(&file)? });
    let mut end = PAGE + key.len() as u64;
    let mut next = |i: usize, point_bytes: usize| {
        let (offset, points) = (end.next_multiple_of(PAGE), number(3 + i));
        end = offset + points * point_bytes as u64;
        offset as usize..end as usize
    };
    let g1 = [0, 1, 2, 3].map(|i| next(i, Table::<G1>::point_bytes(arithmetic)));
    let b_g2 = next(4, Table::<G2>::point_bytes(arithmetic));
    if end != file_bytes {
        return Ok(None);
    }
    // SAFETY: the lists are there as they were in memory, and the file stays as it is.
    let [h, l, a, b_g1] = g1.map(|bytes| unsafe { Table::mapped(arithmetic, map.clone(), bytes) });
    // SAFETY: as above.
    let b_g2 = unsafe { Table::mapped(arithmetic, map.clone(), b_g2) };
    // The MSM of h reads its points at random, again and again; the others are gone through once a proof.
    let h = if h.as_bytes().len() <= KEPT_BYTES { h.into_memory() } else { h };
    Ok(Some(Srs::new(vk, [h, l, a, b_g1], b_g2)))
}

fn code(arithmetic: Backend) -> u64 {
    match arithmetic {
        Backend::Ifma => 1,
        Backend::Portable => 2,
    }
}
