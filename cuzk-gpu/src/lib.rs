//! From a witness to a proof: proving parameters and their files, the Groth16 phases, the devices that run them.
//!
//! * [`srs`]: proving parameters in memory, and the file format they share with the upstream library;
//! * [`params`]: which parameter files there are, whether they may be used, and their verdicts;
//! * [`generate`]: development parameters;
//! * [`prover`]: the seam between the phases of a proof and whatever computes them;
//! * [`device`]: one lock a device, held around the kernel phase only, and the timings;
//! * [`cpu`]: the backend that needs no device;
//! * [`arith`]: the arithmetic it stands on;
//! * [`cuda`]: NVIDIA devices, their kernels, and the programs that check and measure them.

pub mod arith;
pub mod cpu;
pub mod cuda;
pub mod device;
pub mod generate;
pub mod params;
pub mod prover;
pub mod srs;
pub mod timing;
pub mod turns;

#[cfg(test)]
mod toy;
