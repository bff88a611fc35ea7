//! The commands about GPU kernels.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cuzk_gpu::cuda::kernels::{Arch, arch::RELEASED};

/// The commands about GPU kernels.
#[derive(Debug, Subcommand)]
pub enum KernelsCommand {
    /// Compile all kernels for given architectures. Needs NVRTC and no GPU; CUZK_NVRTC names the library or its folder.
    Build(KernelsBuildArgs),
}

/// Options of `kernels build`.
#[derive(Args, Debug)]
pub struct KernelsBuildArgs {
    /// Architectures, such as sm_80,sm_90; all that are supported if absent.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = RELEASED)]
    pub arch: Vec<Arch>,
    /// Directory to write to; made if absent. A daemon takes kernels from it if CUZK_KERNELS names it.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
