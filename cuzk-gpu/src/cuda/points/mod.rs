//! Points from the bytes of a parameter file to the form that kernels take, on the device.
//!
//! * [`convert`]: conversion and checks of chunks of a list;
//! * [`checks`], [`benches`]: what `gpu-check` and `gpu-bench` run.

pub mod benches;
pub mod checks;
pub mod convert;
#[cfg(test)]
mod emulation;
mod samples;

pub use self::convert::{BadPoint, Checks, Converter, PointFault};
