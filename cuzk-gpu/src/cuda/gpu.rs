//! One device: its context, and the kernels loaded into it.

use std::{
    cell::Cell,
    collections::HashMap,
    ffi::CString,
    fmt, ptr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{self, CUcontext, CUmodule};

use super::{
    driver::DeviceInfo,
    error::{CudaError, check, log},
    kernels::Kernels,
    launch::Function,
};

/// A device in use. Clones are the same device; the context goes when the last one is gone.
#[derive(Clone)]
pub struct Gpu {
    inner: Arc<Inner>,
}

/// Tells whether a device is still in use, and does not keep it so.
#[derive(Clone)]
pub struct WeakGpu(Weak<Inner>);

struct Inner {
    info: DeviceInfo,
    label: String,
    context: CUcontext,
    /// Tells this context from others: a later one may be at the same address.
    number: u64,
    kernels: Kernels,
    modules: Mutex<HashMap<&'static str, Module>>,
}

struct Module(CUmodule);

// SAFETY: contexts and modules are handles that the driver lets any thread use.
unsafe impl Send for Inner {}
// SAFETY: as above; the map of modules is behind a mutex.
unsafe impl Sync for Inner {}

const NO_CONTEXT: u64 = 0;

thread_local! {
    /// Number of the context that this thread last made current, so that it need not be asked for before every call.
    static CURRENT: Cell<u64> = const { Cell::new(NO_CONTEXT) };
}

impl Gpu {
    /// Opens a device with a context of its own: not the primary one, of which a process has only one, and which nobody can
    /// replace once an error has made it useless. Kernels come from `kernels`, when first asked for.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn open(info: DeviceInfo, kernels: Kernels) -> Result<Self, CudaError> {
        let label = format!("{} {}", info.name, info.uuid);
        let mut device = 0;
        let mut context = ptr::null_mut();
        let what = || format!("opening {info}");
        // SAFETY: a `DeviceInfo` comes from an initialized driver, and both pointers are to live handles.
        unsafe {
            check(sys::cuDeviceGet(&mut device, info.ordinal), &label, "cuDeviceGet", what)?;
            // Waiting threads sleep: on a prover's machine the CPU always has something better to do.
            let flags = sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
            check(sys::cuCtxCreate_v2(&mut context, flags, device), &label, "cuCtxCreate", what)?;
        }
        static OPENED: AtomicU64 = AtomicU64::new(NO_CONTEXT);
        let number = 1 + OPENED.fetch_add(1, Ordering::Relaxed);
        // Making a context makes it current.
        CURRENT.set(number);
        Ok(Self { inner: Arc::new(Inner { info, label, context, number, kernels, modules: Mutex::default() }) })
    }

    /// Something that tells whether this device is still in use.
    pub fn downgrade(&self) -> WeakGpu {
        WeakGpu(Arc::downgrade(&self.inner))
    }

    /// What the driver says about the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Name and UUID, for messages.
    pub fn label(&self) -> &str {
        &self.inner.label
    }

    /// Bytes of device memory that nobody uses. To be asked at start-up only: the call takes the driver's own lock.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn free_memory(&self) -> Result<usize, CudaError> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current, and both pointers are to live integers.
        self.check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "cuMemGetInfo", || "at start".into())?;
        Ok(free)
    }

    /// The kernel `name` of a module (see [`super::kernels::list::MODULES`]), which is compiled or read and loaded when
    /// the first of its kernels is asked for.
    ///
    /// # Errors
    /// There is no such module or kernel, it cannot be compiled or read, or the driver does not load it.
    pub fn function(&self, module: &str, name: &str) -> Result<Function, CudaError> {
        self.bind()?;
        let handle = self.module(module)?;
        let c_name = CString::new(name)
            .map_err(|_| CudaError::Misuse { device: self.label().to_owned(), what: format!("kernel {name:?}") })?;
        let mut function = ptr::null_mut();
        // SAFETY: the context is current, the module is loaded in it, and the name ends with a zero.
        let result = unsafe { sys::cuModuleGetFunction(&mut function, handle, c_name.as_ptr()) };
        self.check(result, "cuModuleGetFunction", || format!("kernel {name} of module {module}"))?;
        Function::new(self.clone(), function, name)
    }

    fn module(&self, name: &str) -> Result<CUmodule, CudaError> {
        let source = super::kernels::list::module(name)?;
        // Held while compiling, so that a second thread waits for the module instead of making it again.
        let mut modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(source.name) {
            return Ok(module.0);
        }
        let image = self.inner.kernels.cubin(source, self.info().arch)?;
        let mut module = ptr::null_mut();
        // SAFETY: the context is current; `image` is a whole cubin, of checked digest, and lives over the call.
        let result = unsafe { sys::cuModuleLoadData(&mut module, image.as_ptr().cast()) };
        self.check(result, "cuModuleLoadData", || format!("module {name}, {} bytes", image.len()))?;
        modules.insert(source.name, Module(module));
        Ok(module)
    }

    /// Makes the device's context current in this thread.
    pub(super) fn bind(&self) -> Result<(), CudaError> {
        if CURRENT.get() == self.inner.number {
            return Ok(());
        }
        // SAFETY: the context is there while `inner` lives.
        let result = unsafe { sys::cuCtxSetCurrent(self.inner.context) };
        self.check(result, "cuCtxSetCurrent", || "in this thread".into())?;
        CURRENT.set(self.inner.number);
        Ok(())
    }

    pub(super) fn check(
        &self,
        result: sys::CUresult,
        call: &'static str,
        what: impl FnOnce() -> String,
    ) -> Result<(), CudaError> {
        check(result, self.label(), call, what)
    }

    pub(super) fn misuse(&self, what: String) -> CudaError {
        CudaError::Misuse { device: self.label().to_owned(), what }
    }

    /// Gives something back to the driver, from a destructor.
    pub(super) fn release(&self, call: &'static str, free: impl FnOnce() -> sys::CUresult) {
        match self.bind() {
            Ok(()) => log(free(), self.label(), call),
            Err(error) => tracing::error!("{error}"),
        }
    }
}

impl WeakGpu {
    /// Whether anybody has the device, or something on it: only when nobody does is its context gone.
    pub fn is_in_use(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for WeakGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakGpu({} users)", self.0.strong_count())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let modules = self.modules.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: buffers, streams and functions hold a clone of the device, so nothing of it is in use any more.
        unsafe {
            log(sys::cuCtxSetCurrent(self.context), &self.label, "cuCtxSetCurrent");
            for module in modules.values() {
                log(sys::cuModuleUnload(module.0), &self.label, "cuModuleUnload");
            }
            log(sys::cuCtxSetCurrent(ptr::null_mut()), &self.label, "cuCtxSetCurrent");
            CURRENT.set(NO_CONTEXT);
            log(sys::cuCtxDestroy_v2(self.context), &self.label, "cuCtxDestroy");
        }
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.info())
    }
}
