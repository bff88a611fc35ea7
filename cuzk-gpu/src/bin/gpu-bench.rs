//! Measures the kernels on a device, beside its ceilings and our goals. Needs no toolkit.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuzk_gpu::cuda::harness::program::bench(std::env::args().skip(1))
}
