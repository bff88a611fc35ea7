//! CPU arithmetic for Groth16 over BLS12-381.
//!
//! Two backends with one interface, chosen at run time ([`backend`]): [`ifma`], eight lanes of AVX-512 IFMA, and
//! [`portable`], scalar code on any machine. Everything is parallel over rayon's current pool, and nothing is constant-time.
//!
//! - [`table`]: tables of points, multi-scalar multiplication, sums of selected points, in G1 and G2.
//! - [`fixed_base`]: many multiples of one point.
//! - [`fr_vec`]: vectors of scalars, and the quotient polynomial H.
//!
//! For x86-64 only.

pub mod curve;
pub mod fixed_base;
pub mod fr_vec;
mod ifma;
mod memory;
mod msm;
mod parallel;
mod portable;
mod storage;
pub mod table;

pub use curve::{Curve, G1, G2};
pub use cuzk_lanes::backend::{self, Backend};
pub(crate) use cuzk_lanes::primes;
pub use fixed_base::{fixed_base, fixed_base_g1, fixed_base_g2};
pub use fr_vec::{FrVec, quotient_h};
pub use table::{G1Table, G2Table, Table};

#[cfg(test)]
mod quotient_tests;
#[cfg(test)]
mod table_tests;
