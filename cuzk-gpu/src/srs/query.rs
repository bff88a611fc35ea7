//! The points of one query, in memory or in a file from which they are read when they are needed.

use std::{fs::File, io, mem::MaybeUninit, os::fd::AsRawFd, sync::Arc};

use rayon::prelude::*;

use crate::arith::{Backend, Curve, Table};

/// Bytes that one thread reads at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// The points of a query in the form that an arithmetic works on.
pub struct Query<C: Curve> {
    len: usize,
    store: Store<C>,
}

enum Store<C: Curve> {
    Memory(Table<C>),
    File { file: Arc<File>, offset: u64 },
}

impl<C: Curve> Query<C> {
    /// Points that stay in memory.
    pub(crate) fn in_memory(arithmetic: Backend, points: &[C::Affine]) -> Self {
        Self { len: points.len(), store: Store::Memory(Table::with_backend(arithmetic, points)) }
    }

    /// Points at an offset of a file, in the form of the arithmetic that will ask for them.
    pub(super) fn in_file(file: Arc<File>, offset: u64, len: usize) -> Self {
        Self { len, store: Store::File { file, offset } }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the points take all the time.
    pub fn resident_bytes(&self) -> u64 {
        match &self.store {
            Store::Memory(table) => table.as_bytes().len() as u64,
            Store::File { .. } => 0,
        }
    }

    /// Lends the points. Those in a file are read into `scratch` (in parallel, from the system's page cache if they were
    /// read lately), which keeps its memory for the next query.
    pub fn table<'a>(&'a self, scratch: &'a mut Table<C>) -> io::Result<&'a Table<C>> {
        match &self.store {
            Store::Memory(table) => Ok(table),
            Store::File { file, offset } => {
                let read = |bytes: &mut [MaybeUninit<u8>]| {
                    bytes
                        .par_chunks_mut(CHUNK_BYTES)
                        .enumerate()
                        .try_for_each(|(i, chunk)| read_exact_at(file, chunk, offset + (i * CHUNK_BYTES) as u64))
                };
                // SAFETY: all chunks are read to their ends, or it fails.
                unsafe { scratch.refill(self.len, read)? };
                Ok(scratch)
            }
        }
    }
}

/// Reads into memory that need not be cleared first: half a gigabyte for the longest query of 2 KiB.
fn read_exact_at(file: &File, mut to: &mut [MaybeUninit<u8>], mut offset: u64) -> io::Result<()> {
    while !to.is_empty() {
        // SAFETY: the kernel writes at most as many bytes as there are places.
        let read = unsafe { libc::pread64(file.as_raw_fd(), to.as_mut_ptr().cast(), to.len(), offset as i64) };
        match read {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            1.. => {
                to = &mut to[read as usize..];
                offset += read as u64;
            }
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}
