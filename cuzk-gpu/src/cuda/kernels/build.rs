//! All modules for given architectures, compiled ahead of time: for images without NVRTC, and to see what kernels need.

use std::path::Path;

use rayon::prelude::*;

use super::{
    arch::Arch,
    list::{self, MODULES},
    nvrtc::{Compiled, Nvrtc},
    report::KernelReport,
    source::KernelModule,
    store,
};
use crate::cuda::error::CudaError;

/// A module, compiled for an architecture.
#[derive(Clone, Debug)]
pub struct Built {
    /// The module.
    pub module: &'static KernelModule,
    /// The architecture.
    pub arch: Arch,
    /// Code and reports.
    pub compiled: Compiled,
}

/// A kernel that spills more than its bound allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// Module and architecture.
    pub place: String,
    /// The kernel.
    pub kernel: KernelReport,
    /// What it may spill.
    pub bound: u32,
}

/// Compiles every module for every architecture, on the current rayon pool.
///
/// # Errors
/// The first module that does not compile.
pub fn compile_all(nvrtc: &Nvrtc, archs: &[Arch]) -> Result<Vec<Built>, CudaError> {
    let pairs: Vec<_> = MODULES.iter().flat_map(|module| archs.iter().map(move |arch| (module, *arch))).collect();
    pairs
        .into_par_iter()
        .map(|(module, arch)| nvrtc.compile(module, arch).map(|compiled| Built { module, arch, compiled }))
        .collect()
}

/// The kernels that spill too much.
pub fn spills(built: &[Built]) -> Vec<Spill> {
    let kernels = built.iter().flat_map(|b| b.compiled.kernels.iter().map(move |kernel| (b, kernel)));
    kernels
        .map(|(b, kernel)| Spill {
            place: format!("{} for {}", b.module.name, b.arch),
            kernel: kernel.clone(),
            bound: list::spill_bound(&kernel.name),
        })
        .filter(|spill| spill.kernel.spills > spill.bound)
        .collect()
}

/// Writes the code into a folder from which [`super::Kernels`] reads it. Makes the folder if need be.
///
/// # Errors
/// [`CudaError::File`].
pub fn write(built: &[Built], folder: &Path) -> Result<(), CudaError> {
    built.iter().try_for_each(|b| store::ship(folder, b.module, b.arch, &b.compiled.cubin).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels::{arch::RELEASED, nvrtc};

    /// Needs no device. Where there is no compiler it says so, unless one was named.
    #[test]
    fn every_module_compiles_and_none_spills() {
        let nvrtc = match Nvrtc::load() {
            Ok(nvrtc) => nvrtc,
            Err(error) if std::env::var_os(nvrtc::VARIABLE).is_none() => {
                return eprintln!("kernels are not compiled: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        let built = compile_all(&nvrtc, &RELEASED).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(built.len(), MODULES.len() * RELEASED.len());
        assert!(built.iter().all(|b| !b.compiled.kernels.is_empty() && b.compiled.cubin.starts_with(b"\x7fELF")));
        let spills = spills(&built);
        assert!(spills.is_empty(), "{spills:#?}");
    }
}
