//! Parameters from their file to where a plan wants them, at the rate of the disk or the page cache.
//!
//! ```text
//! file ──threads──▶ page-locked buffers ──▶ device, converted and checked there ──▶ device, or back to page-locked memory
//! ```
//!
//! * `chunks`: which bytes go where. Pure;
//! * `pump`: threads that read chunks into buffers, ahead of whoever takes them;
//! * [`run`]: the load;
//! * [`checks`], [`benches`]: what `gpu-check` and `gpu-bench` run.

pub mod benches;
pub mod checks;
mod chunks;
mod pump;
pub mod run;

pub use self::run::{Buffers, List, LoadError, load};
