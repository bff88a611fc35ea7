//! Groth16 partitions on a device: the kernels of the other modules, put together behind [`crate::prover::Backend`].
//!
//! A partition's witness goes, in its compact form, through a worker's own pinned buffer into that worker's own device
//! memory, while other partitions' kernels run. Under the device's lock it is expanded, multiplied with the matrices and
//! summed up with the points, all in one workspace that the key made at the start. What is left is for the CPU.
//!
//! * `staging`: the compact witness as bytes; `slots`: the workers' buffers and streams; `marks`: times of phases;
//! * [`key`]: a circuit on a device; `engine`: its matrices, points and workspace; `run`: the kernel phase;
//! * `rows`: A·w and B·w; `placed`: a query's points; `queries`: sums over the witness;
//! * `tail`: who sums up b_g2;
//! * [`backend`]: the seam; [`devices`]: all devices of the process; `circuit`: what is on them;
//! * `inputs`, [`checks`], [`limits`], [`benches`], [`large`]: for the harness.

pub mod backend;
pub mod benches;
pub mod checks;
mod circuit;
pub mod devices;
mod engine;
mod inputs;
pub mod key;
pub mod large;
pub mod limits;
mod marks;
mod placed;
mod queries;
mod rows;
mod run;
mod slots;
mod staging;
mod tail;

use super::conveyor;

pub use self::{
    backend::Cuda,
    circuit::Circuit,
    devices::{DeviceOptions, Devices},
    key::{DeviceKey, Source},
};
