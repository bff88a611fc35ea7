//! Multi-scalar multiplication on a device: sum of scalars times points of a base.
//!
//! Full scalars become signed digits, one a window; (bucket, point) pairs are sorted by bucket; each bucket is added up in
//! affine coordinates, many at once; buckets are reduced to a few hundred points, which the CPU folds. The ones of a
//! compact witness are listed, dealt to many segments and added up by the same kernel.
//!
//! * [`windows`], [`plan`], [`workspace`], [`reduction`]: what will be done and what it needs. Pure;
//! * [`run`]: a plan's work in a stream; [`kernels`]: its launches;
//! * [`fold`]: the last sums, on the CPU;
//! * [`checks`], [`benches`]: for the harness.

pub mod benches;
pub mod checks;
pub mod fold;
mod kernels;
pub mod plan;
pub mod reduction;
pub mod run;
pub mod windows;
pub mod workspace;

pub use self::{
    fold::DeviceCurve,
    plan::{Plan, Request, Size},
    run::{Base, Msm, Query, Scalars, Unfolded, Witness},
    windows::Windows,
};
