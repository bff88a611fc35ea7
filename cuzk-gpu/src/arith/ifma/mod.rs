//! Eight-lane AVX-512 IFMA arithmetic.
//!
//! Everything here carries the AVX-512 target features and is entered through the checked border of the parent module
//! ([`crate::arith::backend::Backend`]). From bottom to top: [`lane`] (instructions), [`modulus`] (constants), [`mont`] (the
//! Montgomery product, written once for both fields), [`fq`], [`fq2`], [`fr`]; [`point_field`] (what curves need of a
//! field), [`batch`] (batched affine addition), [`chunk`] and
//! [`tree`] (many sums at once), [`rows`] (tables), [`digits`], [`reduce`],
//! [`msm`], [`select`], [`fixed`]; [`ntt`] (transforms over Fr).
//!
//! Every `unsafe fn` of this module, and every one marked with target features, has one condition in common, which is not
//! repeated at each: the machine has the AVX-512 features. Further conditions are stated.

// The common condition is the paragraph above.
#![allow(clippy::missing_safety_doc)]
#![allow(unreachable_pub, reason = "some of these types are in the interface of the public, but sealed, trait `Curve`")]

pub mod batch;
pub mod chunk;
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
