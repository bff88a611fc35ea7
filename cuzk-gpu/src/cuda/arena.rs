//! One allocation for all the buffers of a workspace: laid out by a pure plan, made once, then handed out in parts.

use std::{marker::PhantomData, mem::size_of, ops::Range};

use super::{
    error::CudaError,
    gpu::Gpu,
    memory::{DeviceBuffer, DeviceSlice, Plain},
};

/// Which buffers an arena will have, and where. Needs no device.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    bytes: usize,
}

/// A buffer's place in an arena made from the layout that gave it.
#[derive(Debug, PartialEq, Eq)]
pub struct Region<T> {
    offset: usize,
    len: usize,
    values: PhantomData<T>,
}

impl<T> Clone for Region<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Region<T> {}

/// The allocation.
#[derive(Debug)]
pub struct Arena {
    gpu: Gpu,
    buffer: DeviceBuffer<u8>,
}

/// Buffers begin at multiples of it, so that every access of a warp can be one of whole cache lines.
pub const ALIGNMENT: usize = 256;

impl Layout {
    /// Without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer of `len` values.
    pub fn add<T: Plain>(&mut self, len: usize) -> Region<T> {
        self.add_at(len, ALIGNMENT)
    }

    /// Adds a buffer of `len` values that begins at a multiple of `multiple` bytes.
    pub fn add_at<T: Plain>(&mut self, len: usize, multiple: usize) -> Region<T> {
        let offset = self.bytes.next_multiple_of(multiple);
        self.bytes = (offset + len * size_of::<T>()).next_multiple_of(ALIGNMENT);
        Region { offset, len, values: PhantomData }
    }

    /// The smallest layout into which either of two fits that are never in use at the same time. Regions of both stay
    /// good.
    pub fn overlay(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes) }
    }

    /// Bytes of the whole.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<T> Region<T> {
    /// Where it is in an arena, or in a copy of one.
    pub fn bytes(&self) -> Range<usize> {
        self.offset..self.offset + self.len * size_of::<T>()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Arena {
    /// Allocates what the layout asks for. `what` names it in errors.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`]: then a smaller plan is to be tried.
    pub fn new(gpu: &Gpu, layout: &Layout, what: &str) -> Result<Self, CudaError> {
        Ok(Self { gpu: gpu.clone(), buffer: DeviceBuffer::new(gpu, layout.bytes, what)? })
    }

    /// All of it.
    pub fn bytes(&self) -> DeviceSlice<'_, u8> {
        self.buffer.all()
    }

    /// A buffer.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the region is of a larger layout than the arena was made from.
    pub fn slice<T: Plain>(&self, region: Region<T>) -> Result<DeviceSlice<'_, T>, CudaError> {
        let end = region.bytes().end;
        match end <= self.buffer.len() {
            true => Ok(DeviceSlice::new_raw(&self.gpu, self.buffer.all().address() + region.offset as u64, region.len)),
            false => Err(self.gpu.misuse(format!("a region that ends at {end} of {}", self.buffer.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_apart() {
        let mut layout = Layout::new();
        let a = layout.add::<u8>(1);
        let b = layout.add::<[u32; 12]>(100);
        let empty = layout.add::<u64>(0);
        let c = layout.add::<u64>(3);
        assert_eq!([a.offset, b.offset, empty.offset, c.offset], [0, 256, 256 + 4864, 256 + 4864]);
        assert!(256 + 100 * 48 <= c.offset);
        assert!(empty.is_empty());
        assert_eq!((b.len(), layout.bytes()), (100, c.offset + 256));
        assert_eq!(layout.clone().overlay(Layout::new()).bytes(), layout.bytes());
        let points = layout.add_at::<u8>(5, 768);
        assert!(points.bytes().start.is_multiple_of(768) && points.bytes().start >= c.bytes().end);
        assert!(layout.bytes().is_multiple_of(ALIGNMENT));
    }
}
