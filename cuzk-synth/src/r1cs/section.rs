//! An array that is either in memory or a part of a mapped file.

use std::{fmt, marker::PhantomData, ops::Deref, ops::Range, sync::Arc};

use blstrs::Scalar;
use memmap2::Mmap;

/// Plain data: any bytes are a value, and there is no padding.
///
/// # Safety
/// So it must be.
pub unsafe trait Plain: Copy + Send + Sync + PartialEq + fmt::Debug + 'static {}

// SAFETY: integers.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: transparent over four u64. That a value is reduced is checked when a file is opened.
unsafe impl Plain for Scalar {}

/// A read-only array of plain data.
#[derive(Clone)]
pub struct Section<T>(Store<T>);

#[derive(Clone)]
enum Store<T> {
    Memory(Arc<[T]>),
    File { map: Arc<Mmap>, bytes: Range<usize>, of: PhantomData<T> },
}

impl<T: Plain> Section<T> {
    /// The part of a file. `None` if the range is not within the file, not whole or not aligned.
    pub(super) fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        let part = map.get(bytes.clone())?;
        let whole = part.len().is_multiple_of(size_of::<T>());
        let aligned = part.as_ptr().cast::<T>().is_aligned();
        (whole && aligned).then_some(Self(Store::File { map, bytes, of: PhantomData }))
    }

    /// The array as bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        let values: &[T] = self;
        // SAFETY: plain data has no padding.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
    }
}

impl<T: Plain> Deref for Section<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Store::Memory(values) => values,
            Store::File { map, bytes, .. } => {
                let part = &map[bytes.clone()];
                // SAFETY: `mapped` found it whole and aligned, and any bytes are a value.
                unsafe { std::slice::from_raw_parts(part.as_ptr().cast(), part.len() / size_of::<T>()) }
            }
        }
    }
}

impl<T> From<Vec<T>> for Section<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Store::Memory(values.into()))
    }
}

impl<T: Plain> PartialEq for Section<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Plain> Eq for Section<T> {}

impl<T: Plain> fmt::Debug for Section<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
