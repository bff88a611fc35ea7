//! Eight-lane AVX-512 IFMA arithmetic.
//!
//! Everything here carries the AVX-512 target features and is entered through the checked border of the parent module
//! ([`crate::arith::backend::Backend`]). From bottom to top: [`lane`] (instructions), [`modulus`] (constants), [`mont`] (the
//! Montgomery product, written once for both fields), [`fq`], [`fq2`], [`fr`]; [`point_field`] (what curves need of a
//! field), [`batch`] (batched affine addition), [`tree`] (many sums at once), [`rows`] (tables), [`digits`], [`reduce`],
//! [`msm`], [`select`], [`fixed`]; [`ntt`] (transforms over Fr).

pub mod batch;
pub mod digits;
pub mod fixed;
pub mod fq;
pub mod fq2;
pub mod fr;
pub mod lane;
pub mod modulus;
pub mod mont;
pub mod msm;
pub mod ntt;
pub mod point_field;
pub mod reduce;
pub mod rows;
pub mod select;
pub mod tree;

pub use fq::Fq;
pub use fq2::Fq2;
pub use fr::Fr;

#[cfg(test)]
mod field_tests;
