//! Where the points of a table are: in memory, or in a file of ours that is mapped.

#![allow(unreachable_pub, reason = "in the interface of tables, through a module that is private")]

use std::{marker::PhantomData, ops::Deref, ops::Range, sync::Arc};

use memmap2::{Advice, Mmap, UncheckedAdvice};
use rayon::prelude::*;

use crate::arith::memory::huge_vec;
use crate::arith::msm::Points;

/// Elements copied by one thread at a time: about half a megabyte of points.
const COPY: usize = 1 << 12;

/// The rows of a table, and which of them stand for the identity.
pub struct Stored<R> {
    rows: Storage<R>,
    /// As [`Points::identities`].
    identities: Vec<u64>,
}

impl<R: Copy + Send + Sync> Stored<R> {
    /// Rows in memory; those of identities are meaningless.
    pub fn in_memory(rows: Vec<R>, identities: Vec<u64>) -> Self {
        Self { rows: Storage::Memory(rows), identities }
    }

    /// Rows in a part of a file, none the identity.
    ///
    /// # Safety
    /// As [`Storage::mapped`].
    pub unsafe fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Self {
        // SAFETY: the caller's.
        Self { rows: unsafe { Storage::mapped(map, bytes) }, identities: Vec::new() }
    }

    /// The same in memory.
    pub fn into_memory(self) -> Self {
        Self { rows: self.rows.into_memory(), ..self }
    }

    /// Where the rows are.
    pub fn storage(&self) -> &Storage<R> {
        &self.rows
    }

    /// For sums.
    pub fn points(&self) -> Points<'_, R> {
        Points { rows: &self.rows, identities: &self.identities }
    }

    /// The rows as they are in memory.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: rows are limbs and nothing else, without padding.
        unsafe { core::slice::from_raw_parts(self.rows.as_ptr().cast(), size_of_val(&self.rows[..])) }
    }
}

/// Elements that are limbs and nothing else: any bits make one.
pub enum Storage<T> {
    /// Memory of ours, on huge pages if it is large.
    Memory(Vec<T>),
    /// A part of a mapped file.
    Mapped(Mapped<T>),
}

/// Elements in a mapped file.
pub struct Mapped<T> {
    map: Arc<Mmap>,
    bytes: Range<usize>,
    of: PhantomData<T>,
}

impl<T: Copy + Send + Sync> Storage<T> {
    /// The elements in `bytes` of a file.
    ///
    /// # Safety
    /// Any bits make an element, and the file keeps its length and its contents as long as it is mapped.
    ///
    /// # Panics
    /// If the range is not inside the file, not aligned, or not whole elements.
    pub unsafe fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Self {
        let part = &map[bytes.clone()];
        assert!(part.as_ptr().cast::<T>().is_aligned() && part.len().is_multiple_of(size_of::<T>()), "whole elements");
        Self::Mapped(Mapped { map, bytes, of: PhantomData })
    }

    /// The same elements in memory: for what is read at random, which wants huge pages.
    pub fn into_memory(self) -> Self {
        let Self::Mapped(_) = &self else { return self };
        let elements = &self[..];
        let mut copy = huge_vec(elements.len());
        let places = &mut copy.spare_capacity_mut()[..elements.len()];
        places.par_chunks_mut(COPY).zip(elements.par_chunks(COPY)).for_each(|(to, from)| {
            for (to, from) in to.iter_mut().zip(from) {
                to.write(*from);
            }
        });
        // SAFETY: every place was written just now.
        unsafe { copy.set_len(elements.len()) };
        self.release();
        Self::Memory(copy)
    }

    /// Asks the system to read the elements from disk ahead, if they are in a file and not in its cache.
    pub fn will_need(&self) {
        if let Self::Mapped(Mapped { map, bytes, .. }) = self {
            // Only advice.
            let _ = map.advise_range(Advice::WillNeed, bytes.start, bytes.len());
        }
    }

    /// Takes mapped elements out of this process's memory until they are read again. They stay in the system's cache as
    /// long as nobody needs that more.
    pub fn release(&self) {
        if let Self::Mapped(Mapped { map, bytes, .. }) = self {
            // SAFETY: the mapping is of a file and nobody writes to it: pages come back with the same contents.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len()) };
        }
    }
}

impl<T> Deref for Storage<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(elements) => elements,
            Self::Mapped(Mapped { map, bytes, .. }) => {
                let part = &map[bytes.clone()];
                // SAFETY: `mapped` compared the range with the file and the alignment; its caller vouches for the bits.
                unsafe { core::slice::from_raw_parts(part.as_ptr().cast(), part.len() / size_of::<T>()) }
            }
        }
    }
}
