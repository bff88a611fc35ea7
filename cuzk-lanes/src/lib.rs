//! Field arithmetic eight elements at a time, with AVX-512 IFMA: what the witness (Poseidon) and the CPU prover (transforms,
//! sums of points) have in common.
//!
//! From bottom to top: [`primes`], [`lane`] (instructions), [`modulus`] (constants), [`mont`] (the Montgomery product,
//! written once for both fields), [`fr`]. [`backend`] says whether a machine has the instructions.
//!
//! Everything but the last carries the AVX-512 target features and is entered through that checked border
//! ([`backend::Backend::checked`]). Every `unsafe fn` here, and every one marked with target features, has one condition in
//! common, which is not repeated at each: the machine has the AVX-512 features. Further conditions are stated.
//!
//! For x86-64 only.

// The common condition is the paragraph above.
#![allow(clippy::missing_safety_doc)]

pub mod backend;
pub mod fr;
pub mod lane;
pub mod modulus;
pub mod mont;
pub mod primes;

pub use backend::Backend;
pub use fr::Fr;
