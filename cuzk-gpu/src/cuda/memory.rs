//! Buffers: on the device, and in host memory that the device reaches directly.

use std::{
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, size_of},
    ops::{Bound, Deref, DerefMut, RangeBounds},
    ptr, slice,
};

use cudarc::driver::sys::{self, CUdeviceptr, CUresult};

use super::{error::CudaError, gpu::Gpu, stream::Stream};

/// Values that are the same bytes on both sides.
///
/// # Safety
/// Every bit pattern is a value, and there is no padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        // SAFETY: a number.
        unsafe impl Plain for $ty {}
    )*};
}
plain!(u8, u16, u32, u64, i32, i64, f32, f64);
// SAFETY: arrays have no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Device memory for values of `T`, freed when dropped. Fresh memory holds anything.
pub struct DeviceBuffer<T> {
    gpu: Gpu,
    address: CUdeviceptr,
    len: usize,
    values: PhantomData<T>,
}

/// A part of some device memory. As with cells, everybody who has one may write: kernels do, in the order of their stream.
#[derive(Clone, Copy)]
pub struct DeviceSlice<'a, T> {
    gpu: &'a Gpu,
    address: CUdeviceptr,
    len: usize,
    values: PhantomData<&'a T>,
}

/// Host memory for values of `T` that the device copies from and to by itself, while the CPU does something else.
pub struct PinnedBuffer<T> {
    gpu: Gpu,
    values: ptr::NonNull<T>,
    len: usize,
}

// SAFETY: the memory is owned; `T` is plain.
unsafe impl<T: Plain> Send for PinnedBuffer<T> {}
// SAFETY: as above; writing needs a unique reference.
unsafe impl<T: Plain> Sync for PinnedBuffer<T> {}

impl<T: Plain> DeviceBuffer<T> {
    /// Allocates `len` values. `what` names them in errors. Not for the way of a proof: allocation synchronizes.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(gpu: &Gpu, len: usize, what: &str) -> Result<Self, CudaError> {
        gpu.bind()?;
        let bytes = bytes_of::<T>(gpu, len, what)?;
        let mut address = 0;
        // SAFETY: the context is current, and the pointer is to a live address. The driver refuses empty allocations.
        match unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(CudaError::OutOfMemory { device: gpu.label().to_owned(), what: what.to_owned(), bytes });
            }
            result => gpu.check(result, "cuMemAlloc", || format!("{what}, {bytes} bytes"))?,
        }
        Ok(Self { gpu: gpu.clone(), address, len, values: PhantomData })
    }

    /// Allocates and fills a buffer.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_host(stream: &Stream, values: &[T], what: &str) -> Result<Self, CudaError> {
        let buffer = Self::new(stream.gpu(), values.len(), what)?;
        buffer.all().upload(stream, values)?;
        Ok(buffer)
    }

    /// All of it.
    pub fn all(&self) -> DeviceSlice<'_, T> {
        DeviceSlice { gpu: &self.gpu, address: self.address, len: self.len, values: PhantomData }
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

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: the buffer is owned, and the driver frees it after the work that is queued.
        self.gpu.release("cuMemFree", || unsafe { sys::cuMemFree_v2(self.address) });
    }
}

impl<'a, T: Plain> DeviceSlice<'a, T> {
    /// Where it begins, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the range is not inside.
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<Self, CudaError> {
        let begin = match range.start_bound() {
            Bound::Included(i) => *i,
            Bound::Excluded(i) => i + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(i) => i + 1,
            Bound::Excluded(i) => *i,
            Bound::Unbounded => self.len,
        };
        match begin <= end && end <= self.len {
            true => Ok(Self { address: self.address + (begin * size_of::<T>()) as u64, len: end - begin, ..*self }),
            false => Err(self.gpu.misuse(format!("range {begin}..{end} of a slice of {}", self.len))),
        }
    }

    /// The same memory as values of another type.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if it is not aligned for them or not a whole number of them.
    pub fn cast<U: Plain>(&self) -> Result<DeviceSlice<'a, U>, CudaError> {
        let bytes = self.len * size_of::<T>();
        match bytes.is_multiple_of(size_of::<U>()) && self.address.is_multiple_of(align_of::<U>() as u64) {
            true => Ok(DeviceSlice {
                gpu: self.gpu,
                address: self.address,
                len: bytes / size_of::<U>(),
                values: PhantomData,
            }),
            false => Err(self.gpu.misuse(format!("{bytes} bytes as values of {} bytes", size_of::<U>()))),
        }
    }

    /// Copies from host memory and waits until it is done, and all work queued before.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the lengths differ, or what the driver reports.
    pub fn upload(&self, stream: &Stream, values: &[T]) -> Result<(), CudaError> {
        // SAFETY: `values` is borrowed until the copy is done.
        unsafe { self.upload_async(stream, values)? };
        stream.wait()
    }

    /// Copies to host memory, and waits until it is done, and all work queued before.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the lengths differ, or what the driver reports.
    pub fn download(&self, stream: &Stream, values: &mut [T]) -> Result<(), CudaError> {
        // SAFETY: `values` is borrowed until the copy is done.
        unsafe { self.download_async(stream, values)? };
        stream.wait()
    }

    /// As [`Self::download`], into new host memory.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, CudaError> {
        let mut values = Vec::with_capacity(self.len);
        // SAFETY: the capacity is there, the copy fills all of it, and every bit pattern is a value of a plain type.
        unsafe {
            let spare = slice::from_raw_parts_mut(values.as_mut_ptr(), self.len);
            self.download_async(stream, spare)?;
            stream.wait()?;
            values.set_len(self.len);
        }
        Ok(values)
    }

    /// Queues a copy from host memory. It overlaps other work only if that memory is pinned.
    ///
    /// # Safety
    /// `values` must stay as it is until the stream has done the copy.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the lengths differ, or what the driver reports.
    pub unsafe fn upload_async(&self, stream: &Stream, values: &[T]) -> Result<(), CudaError> {
        let bytes = self.same_len(stream, values.len())?;
        // SAFETY: both sides have `bytes` bytes; the caller keeps the host's.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, values.as_ptr().cast(), bytes, stream.handle()) };
        self.gpu.check(result, "cuMemcpyHtoDAsync", || format!("{bytes} bytes"))
    }

    /// Queues a copy to host memory. It overlaps other work only if that memory is pinned.
    ///
    /// # Safety
    /// `values` must stay, and be neither read nor written, until the stream has done the copy.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the lengths differ, or what the driver reports.
    pub unsafe fn download_async(&self, stream: &Stream, values: &mut [T]) -> Result<(), CudaError> {
        let bytes = self.same_len(stream, values.len())?;
        // SAFETY: both sides have `bytes` bytes; the caller keeps the host's.
        let result =
            unsafe { sys::cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), self.address, bytes, stream.handle()) };
        self.gpu.check(result, "cuMemcpyDtoHAsync", || format!("{bytes} bytes"))
    }

    /// Queues a copy from other device memory.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the lengths differ, or what the driver reports.
    pub fn copy_from(&self, stream: &Stream, from: DeviceSlice<'_, T>) -> Result<(), CudaError> {
        let bytes = self.same_len(stream, from.len)?;
        // SAFETY: both sides have `bytes` bytes; freeing them waits for queued work.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(self.address, from.address, bytes, stream.handle()) };
        self.gpu.check(result, "cuMemcpyDtoDAsync", || format!("{bytes} bytes"))
    }

    /// Queues setting every byte to `byte`: zeros, or a poison under which a forgotten write shows.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn fill_bytes(&self, stream: &Stream, byte: u8) -> Result<(), CudaError> {
        self.gpu.bind()?;
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the slice has `bytes` bytes.
        let result = unsafe { sys::cuMemsetD8Async(self.address, byte, bytes, stream.handle()) };
        self.gpu.check(result, "cuMemsetD8Async", || format!("{bytes} bytes"))
    }

    pub(super) fn new_raw(gpu: &'a Gpu, address: CUdeviceptr, len: usize) -> Self {
        Self { gpu, address, len, values: PhantomData }
    }

    fn same_len(&self, stream: &Stream, len: usize) -> Result<usize, CudaError> {
        stream.gpu().bind()?;
        match len == self.len {
            true => Ok(len * size_of::<T>()),
            false => Err(self.gpu.misuse(format!("a copy between {len} and {} values", self.len))),
        }
    }
}

impl<T: Plain> PinnedBuffer<T> {
    /// Allocates `len` values, all bytes zero. `what` names them in errors. Not for the way of a proof.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(gpu: &Gpu, len: usize, what: &str) -> Result<Self, CudaError> {
        gpu.bind()?;
        let bytes = bytes_of::<T>(gpu, len, what)?;
        let mut values = ptr::null_mut();
        // Portable: other devices' contexts copy from it as fast.
        // SAFETY: the context is current, and the pointer is to a live address.
        let result = unsafe { sys::cuMemHostAlloc(&mut values, bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let values = match (result, ptr::NonNull::new(values.cast::<T>())) {
            (CUresult::CUDA_SUCCESS, Some(values)) => values,
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY | CUresult::CUDA_SUCCESS, _) => {
                let what = format!("pinned host memory, {what}");
                return Err(CudaError::OutOfMemory { device: gpu.label().to_owned(), what, bytes });
            }
            (result, _) => {
                gpu.check(result, "cuMemHostAlloc", || format!("{what}, {bytes} bytes"))?;
                unreachable!("success was matched above")
            }
        };
        // SAFETY: the allocation has `bytes` bytes.
        unsafe { ptr::write_bytes(values.as_ptr().cast::<u8>(), 0, bytes) };
        Ok(Self { gpu: gpu.clone(), values, len })
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the allocation holds `len` initialized values.
        unsafe { slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the reference is unique.
        unsafe { slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let values = ManuallyDrop::new(self.values);
        // SAFETY: the memory is owned and not used afterwards.
        self.gpu.release("cuMemFreeHost", || unsafe { sys::cuMemFreeHost(values.as_ptr().cast()) });
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} values at {:#x} of {})", self.len, self.address, self.gpu.label())
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlice({} values at {:#x} of {})", self.len, self.address, self.gpu.label())
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} values of {})", self.len, self.gpu.label())
    }
}

fn bytes_of<T>(gpu: &Gpu, len: usize, what: &str) -> Result<usize, CudaError> {
    len.checked_mul(size_of::<T>()).ok_or_else(|| gpu.misuse(format!("{what}: {len} values are too many")))
}
