//! A·w and B·w on a device, from the compiled constraint system and the compact witness.
//!
//! * [`witness`]: the compact witness in the form in which columns look it up;
//! * [`matrix`]: a constraint matrix in device memory;
//! * [`streamed`]: one in host memory, of which some rows at a time come to the device;
//! * [`product`]: their product, as planes of mostly small values;
//! * [`synthetic`]: systems of any size with the statistics of a PoRep's, for checks and benches;
//! * [`checks`], [`benches`]: what `gpu-check` and `gpu-bench` run.

pub mod benches;
pub mod checks;
pub mod matrix;
pub mod product;
pub mod streamed;
pub mod synthetic;
pub mod witness;

pub use self::{matrix::DeviceMatrix, product::Spmv, streamed::StreamedMatrix, witness::WitnessRegion};
