//! The kernels' fields and curves: what they must compute, shown by blst; how fast they do it; and, in tests, the same
//! headers compiled for the host and the error bounds of the hybrid form.

mod bench;
#[cfg(test)]
mod bounds;
mod check;
mod fr_limbs;
mod fr_ops;
mod limbs;
#[cfg(test)]
mod mirror;
mod ops;
mod points;
mod reference;

pub use self::{bench::BENCHES, check::CHECKS, points::BENCHES as POINT_BENCHES, points::CHECKS as POINT_CHECKS};
