//! The same operations on blst's scalar code, for machines without AVX-512 IFMA.
//!
//! Work is split over rayon's current pool; within a piece the single-threaded blst functions run (blst's own thread
//! pool would compete with ours).

pub(crate) mod fixed;
pub(crate) mod msm;
pub(crate) mod ntt;
pub(crate) mod select;
