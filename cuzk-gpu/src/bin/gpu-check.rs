//! Runs every check of the kernels on a device: a line each, and the exit status. Needs no toolkit.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuzk_gpu::cuda::harness::program::check(std::env::args().skip(1))
}
