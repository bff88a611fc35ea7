//! What touches the machine: clocks, threads, child processes, git.
//!
//! * [`calibration`]: what every time is a multiple of
//! * [`sampler`]: rounds over benches, each sample between two calibrations
//! * [`counts`]: instruction counts
//! * [`machine`]: which class of machines this is
//! * [`git`]: commits, and the history of the baseline
//! * [`child`], [`whole`]: the 2 KiB proof beside bellperson, each in a process of its own

pub mod calibration;
pub mod child;
pub mod counts;
pub mod git;
pub mod machine;
pub mod sampler;
pub mod whole;
