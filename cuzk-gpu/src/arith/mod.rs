//! CPU arithmetic for Groth16 over BLS12-381.

pub mod backend;
pub mod curve;
pub mod fixed_base;
pub mod fr_vec;
mod ifma;
mod memory;
mod parallel;
mod portable;
pub mod table;

#[cfg(test)]
mod quotient_tests;
#[cfg(test)]
mod table_tests;
