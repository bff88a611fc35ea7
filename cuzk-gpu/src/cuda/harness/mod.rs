//! Checks and benches that run on a device: what `gpu-check` and `gpu-bench` are made of.
//!
//! A new kernel adds its checks and benches to a slice in its own module, and that slice to [`CHECKS`] or [`BENCHES`].

pub mod bench;
pub mod check;
pub mod device;
pub mod program;

use super::{field, load, msm, ntt, points, prove, spmv};

pub use self::{
    bench::{Bench, Goal, Measurement, time},
    check::Check,
};

/// Every check.
pub const CHECKS: &[&[Check]] = &[
    device::CHECKS,
    field::CHECKS,
    field::POINT_CHECKS,
    ntt::checks::CHECKS,
    spmv::checks::CHECKS,
    points::checks::CHECKS,
    load::checks::CHECKS,
    msm::checks::CHECKS,
    prove::checks::CHECKS,
    prove::limits::CHECKS,
    ntt::at_size::CHECKS,
    spmv::checks::AT_SIZE,
];

/// Every bench.
pub const BENCHES: &[&[Bench]] = &[
    device::BENCHES,
    field::BENCHES,
    field::POINT_BENCHES,
    ntt::benches::BENCHES,
    spmv::benches::BENCHES,
    points::benches::BENCHES,
    load::benches::BENCHES,
    msm::benches::BENCHES,
    prove::benches::BENCHES,
    prove::large::BENCHES,
    prove::limits::BENCHES,
];
