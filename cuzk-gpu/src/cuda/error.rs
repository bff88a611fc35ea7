//! What can go wrong between us and a device.

use std::{ffi::CStr, fmt, path::PathBuf, ptr, time::Duration};

use cudarc::driver::sys::{self, CUresult};

use super::kernels::Arch;
use crate::prover::{DeviceError, Fault, ProveError};

/// An error of the device layer. Each says where it happened and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver: {0} (install the driver, or prove on the CPU)")]
    NoDriver(String),
    /// The driver is older than the interface that is used.
    #[error("the NVIDIA driver offers CUDA {found}, CUDA {needed} or newer is needed: update the driver")]
    OldDriver {
        /// What it offers.
        found: Version,
        /// The oldest that will do.
        needed: Version,
    },
    /// The driver shows no device, or none of the names that were asked for.
    #[error("no CUDA device: {0}")]
    NoDevice(String),
    /// The device's architecture has no kernels.
    #[error("{device} has architecture {arch}, kernels need sm_80 or newer")]
    UnsupportedArch {
        /// The device.
        device: String,
        /// Its architecture.
        arch: Arch,
    },
    /// The device has not enough memory for an allocation.
    #[error("{device}: no memory for {what} ({bytes} bytes)")]
    OutOfMemory {
        /// The device.
        device: String,
        /// What was to be allocated.
        what: String,
        /// Its size.
        bytes: usize,
    },
    /// A call of the driver failed.
    #[error("{device}: {call} failed with {error} ({what})")]
    Call {
        /// The device, or the driver.
        device: String,
        /// The driver's function.
        call: &'static str,
        /// What it was called for, with sizes.
        what: String,
        /// The driver's name for the error.
        error: DriverCode,
    },
    /// A request that cannot be right, such as a range outside of a buffer: nothing was sent to the device.
    #[error("{device}: {what}")]
    Misuse {
        /// The device.
        device: String,
        /// What does not fit.
        what: String,
    },
    /// Queued work did not end in the time that its watchdog allows.
    #[error("{device}: queued work took more than {allowed:?}")]
    TooSlow {
        /// The device.
        device: String,
        /// The time allowed.
        allowed: Duration,
    },
    /// NVRTC cannot be found or used.
    #[error(
        "no NVRTC to compile kernels with: {0} (install it, e.g. `pip install nvidia-cuda-nvrtc`, and name the library \
         in CUZK_NVRTC, or ship kernels made by `cuzk-daemon kernels build` and name their folder in CUZK_KERNELS)"
    )]
    NoNvrtc(String),
    /// A kernel module does not compile.
    #[error("kernel module {module} does not compile for {arch}:\n{log}")]
    Compile {
        /// The module.
        module: String,
        /// The architecture.
        arch: Arch,
        /// The compiler's messages.
        log: String,
    },
    /// There is no kernel module of this name.
    #[error("there is no kernel module {0:?}")]
    NoModule(String),
    /// A file of compiled kernels cannot be read or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
}

/// A CUDA version as the driver counts: 1000 major + 10 minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// An error code of the driver, shown by the driver's own name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCode(pub CUresult);

impl fmt::Display for DriverCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = ptr::null();
        // SAFETY: a code exists only after a call of the driver, so the driver is loaded; `name` outlives the call, and
        // what it is set to is a constant string of the driver.
        let known = unsafe { sys::cuGetErrorName(self.0, &mut name) } == CUresult::CUDA_SUCCESS && !name.is_null();
        match known {
            // SAFETY: as above.
            true => f.write_str(&unsafe { CStr::from_ptr(name) }.to_string_lossy()),
            false => write!(f, "{:?}", self.0),
        }
    }
}

impl CudaError {
    /// Which kind of failure of a device it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::OutOfMemory { .. } => Fault::Memory,
            Self::Misuse { .. } => Fault::Unfit,
            Self::TooSlow { .. } => Fault::Watchdog,
            Self::Call { error, .. } => fault_of(error.0),
            Self::NoDriver(_) | Self::OldDriver { .. } | Self::NoDevice(_) | Self::UnsupportedArch { .. } => {
                Fault::Gone
            }
            Self::NoNvrtc(_) | Self::Compile { .. } | Self::NoModule(_) | Self::File { .. } => Fault::Launch,
        }
    }

    /// The same as an error of a device's proof.
    pub fn of_device(self, device: &str) -> ProveError {
        DeviceError { device: device.to_owned(), fault: self.fault(), what: self.to_string() }.into()
    }
}

/// The driver's codes, by what can still be done: after those of the second group every call of the context fails (CUDA
/// driver API, "cudaError_enum").
fn fault_of(code: CUresult) -> Fault {
    use CUresult::*;
    match code {
        CUDA_ERROR_OUT_OF_MEMORY => Fault::Memory,
        CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_LAUNCH_FAILED
        | CUDA_ERROR_LAUNCH_TIMEOUT
        | CUDA_ERROR_ASSERT
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_MISALIGNED_ADDRESS
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_CONTEXT_IS_DESTROYED
        | CUDA_ERROR_INVALID_CONTEXT
        | CUDA_ERROR_ECC_UNCORRECTABLE
        | CUDA_ERROR_UNKNOWN => Fault::Context,
        CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUDA_ERROR_NO_DEVICE
        | CUDA_ERROR_INVALID_DEVICE
        | CUDA_ERROR_NVLINK_UNCORRECTABLE
        | CUDA_ERROR_SYSTEM_NOT_READY
        | CUDA_ERROR_DEINITIALIZED
        | CUDA_ERROR_NOT_INITIALIZED => Fault::Gone,
        _ => Fault::Launch,
    }
}

/// Turns the result of a driver's call into an error that names device, call and purpose.
pub(super) fn check(
    result: CUresult,
    device: &str,
    call: &'static str,
    what: impl FnOnce() -> String,
) -> Result<(), CudaError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(CudaError::Call { device: device.to_owned(), call, what: what(), error: DriverCode(code) }),
    }
}

/// As [`check`], where nobody is left to return an error to: logs it.
pub(super) fn log(result: CUresult, device: &str, call: &'static str) {
    // At the end of the process the driver may go first, and has taken everything back.
    if result == CUresult::CUDA_ERROR_DEINITIALIZED {
        return;
    }
    if let Err(error) = check(result, device, call, || "while giving it back".to_owned()) {
        tracing::error!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(Version(12080).to_string(), "12.8");
        assert_eq!(Version(13000).to_string(), "13.0");
    }
}
