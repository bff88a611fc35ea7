//! NVIDIA devices through the CUDA driver, which is loaded while the program runs: the same program works on machines
//! without one.
//!
//! * [`driver`]: is there a driver, which devices does it show, which of them can be used;
//! * [`gpu`]: one device, its context, and the kernels loaded into it;
//! * [`stream`]: streams and events; [`memory`]: device and pinned buffers; [`arena`]: one allocation, many buffers;
//!   [`pieces`]: bytes for places in one; `conveyor`: parts of what is too large, copied while others are worked on;
//! * [`launch`]: functions and their launches;
//! * [`fr`]: scalars as kernels take them; [`ntt`]: transforms and the quotient; [`spmv`]: A·w and B·w;
//! * [`kernels`]: kernel sources, their compilation and the files that it leaves;
//! * [`field`]: fields and curves, checked and measured;
//! * [`harness`]: checks and benches that run on a device;
//! * [`msm`]: multi-scalar multiplication; [`points`]: points of parameter files to the form of kernels;
//! * [`plan`]: where everything lives on a device; [`load`]: parameters from their file to there;
//! * [`prove`]: all of it together, as a backend of proofs;
//! * [`error`]: what can go wrong.
//!
//! Rules: every call is checked; nothing here synchronizes with a whole device after start-up (waits are on streams and
//! events); memory is allocated at start-up, not on the way of a proof.

pub mod arena;
mod conveyor;
pub mod driver;
#[cfg(test)]
mod emulation;
pub mod error;
pub mod field;
pub mod fr;
pub mod gpu;
pub mod harness;
pub mod kernels;
pub mod launch;
pub mod load;
pub mod memory;
pub mod msm;
pub mod ntt;
pub mod pieces;
pub mod plan;
pub mod points;
pub mod prove;
pub mod spmv;
pub mod stream;

pub use self::{
    arena::{Arena, Layout, Region},
    driver::Driver,
    error::CudaError,
    gpu::Gpu,
    launch::{Args, Function, Grid},
    memory::{DeviceBuffer, DeviceSlice, PinnedBuffer, Plain},
    stream::{Event, Stream},
};
