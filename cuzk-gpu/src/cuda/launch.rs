//! Kernels as functions, their arguments, and launches.

use std::{ffi::c_void, fmt, ptr};

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUresult};

use super::{
    error::CudaError,
    gpu::Gpu,
    memory::{DeviceSlice, Plain},
    stream::Stream,
};

/// A kernel, loaded into a device.
#[derive(Clone)]
pub struct Function {
    gpu: Gpu,
    handle: CUfunction,
    name: String,
    /// Bytes of each parameter, as compiled.
    parameters: Vec<usize>,
}

// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// How many blocks of how many threads, and bytes of dynamic shared memory a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks in x, y, z.
    pub blocks: [u32; 3],
    /// Threads of a block in x.
    pub threads: u32,
    /// Bytes of dynamic shared memory a block.
    pub shared: u32,
}

/// Arguments of a launch, in the order of the kernel's parameters.
#[derive(Clone, Debug, Default)]
pub struct Args {
    bytes: Vec<u64>,
    /// Where each begins in `bytes`, and its size.
    places: Vec<(usize, usize)>,
}

impl Grid {
    /// `blocks` blocks of `threads` threads in one dimension.
    pub fn new(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads, shared: 0 }
    }

    /// As many blocks as are needed for one thread an item. At least one.
    pub fn cover(items: usize, threads: u32) -> Self {
        let blocks = items.div_ceil(threads as usize).max(1);
        // A grid of more than 2^31 - 1 blocks is refused by the launch.
        Self::new(u32::try_from(blocks).unwrap_or(u32::MAX), threads)
    }

    /// With dynamic shared memory.
    pub fn with_shared(self, bytes: u32) -> Self {
        Self { shared: bytes, ..self }
    }
}

impl Args {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the address of device memory.
    pub fn slice<T: Plain>(self, slice: DeviceSlice<'_, T>) -> Self {
        self.value(slice.address())
    }

    /// Adds a value.
    pub fn value<T: Plain>(mut self, value: T) -> Self {
        let place = self.bytes.len();
        self.bytes.resize(place + size_of::<T>().div_ceil(8), 0);
        // SAFETY: the words from `place` on have room for a `T`, which is plain.
        unsafe { self.bytes.as_mut_ptr().add(place).cast::<T>().write_unaligned(value) };
        self.places.push((place, size_of::<T>()));
        self
    }
}

impl Function {
    pub(super) fn new(gpu: Gpu, handle: CUfunction, name: &str) -> Result<Self, CudaError> {
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is loaded, and the pointers are to live integers.
            match unsafe { sys::cuFuncGetParamInfo(handle, parameters.len(), &mut offset, &mut size) } {
                // That is how the end of the list is told.
                CUresult::CUDA_ERROR_INVALID_VALUE => break,
                result => gpu.check(result, "cuFuncGetParamInfo", || format!("kernel {name}"))?,
            }
            parameters.push(size);
        }
        Ok(Self { gpu, handle, name: name.to_owned(), parameters })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Registers a thread.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn registers(&self) -> Result<u32, CudaError> {
        self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of local memory a thread: its stack, and registers that did not fit.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn local_bytes(&self) -> Result<u32, CudaError> {
        self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// Allows blocks to ask for up to `bytes` bytes of dynamic shared memory (48 KiB if this is not called).
    ///
    /// # Errors
    /// The device has not so much, or what else the driver reports.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), CudaError> {
        self.gpu.bind()?;
        let limit = self.gpu.info().shared_per_block;
        let (true, Ok(value)) = (bytes <= limit, i32::try_from(bytes)) else {
            let what = format!("kernel {}: {bytes} bytes of shared memory a block, there are {limit}", self.name);
            return Err(self.gpu.misuse(what));
        };
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        let result = unsafe { sys::cuFuncSetAttribute(self.handle, attribute, value) };
        self.gpu.check(result, "cuFuncSetAttribute", || format!("kernel {}, {bytes} bytes shared", self.name))
    }

    /// How many blocks of this shape one multiprocessor runs at the same time.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn blocks_per_sm(&self, threads: u32, shared: u32) -> Result<u32, CudaError> {
        self.gpu.bind()?;
        let mut blocks = 0;
        // SAFETY: the function is loaded, and the pointer is to a live integer.
        let result = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.handle,
                threads.cast_signed(),
                shared as usize,
            )
        };
        self.gpu.check(result, "cuOccupancyMaxActiveBlocksPerMultiprocessor", || {
            format!("kernel {}, {threads} threads, {shared} bytes shared", self.name)
        })?;
        Ok(blocks.unsigned_abs())
    }

    /// Queues a launch.
    ///
    /// # Safety
    /// The arguments must be what the kernel takes (their number and sizes are checked here), device memory among them
    /// must have the extent that the kernel reads and writes, and must stay until the stream is done with it.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if number or sizes of the arguments are wrong, or what the driver reports.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, args: &Args) -> Result<(), CudaError> {
        self.gpu.bind()?;
        if !args.places.iter().map(|(_, size)| size).eq(&self.parameters) {
            let sizes: Vec<_> = args.places.iter().map(|(_, size)| size).collect();
            return Err(self.gpu.misuse(format!(
                "kernel {} takes arguments of {:?} bytes, not {sizes:?}",
                self.name, self.parameters
            )));
        }
        let mut pointers: Vec<*mut c_void> = Vec::with_capacity(args.places.len());
        pointers.extend(args.places.iter().map(|(place, _)| (&raw const args.bytes[*place]).cast_mut().cast()));
        let [x, y, z] = grid.blocks;
        // SAFETY: the driver copies the arguments, whose number and sizes are right; the rest is the caller's promise.
        let result = unsafe {
            sys::cuLaunchKernel(
                self.handle,
                x,
                y,
                z,
                grid.threads,
                1,
                1,
                grid.shared,
                stream.handle(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.gpu.check(result, "cuLaunchKernel", || format!("kernel {}, {grid:?}", self.name))
    }

    fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, CudaError> {
        let mut value = 0;
        // SAFETY: the function is loaded, and the pointer is to a live integer.
        let result = unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.handle) };
        self.gpu.check(result, "cuFuncGetAttribute", || format!("kernel {}, {attribute:?}", self.name))?;
        Ok(value.unsigned_abs())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} of {})", self.name, self.gpu.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_all_items() {
        assert_eq!(Grid::cover(0, 128).blocks, [1, 1, 1]);
        assert_eq!(Grid::cover(128, 128).blocks, [1, 1, 1]);
        assert_eq!(Grid::cover(129, 128).blocks, [2, 1, 1]);
    }

    #[test]
    fn arguments_keep_order_size_and_value() {
        let args = Args::new().value(7u32).value([1u32, 2, 3]).value(9u64);
        assert_eq!(args.places, [(0, 4), (1, 12), (3, 8)]);
        assert_eq!(args.bytes, [7, 1 | 2 << 32, 3, 9]);
    }
}
