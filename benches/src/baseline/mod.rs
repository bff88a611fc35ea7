//! What was measured, what was recorded, and whether the one is slower than the other. Nothing here measures anything,
//! so that all of it is tested on made-up machines.
//!
//! * [`stats`]: from samples to a ratio with its spread
//! * [`verdict`]: the rule that tells a slow-down from noise
//! * [`file`]: what `baseline.json` says
//! * [`lines`]: measurements from elsewhere, such as a GPU host
//! * [`compare`]: measurements against a class of the file
//! * [`trend`]: the history of a baseline, as text and as a picture

pub mod compare;
pub mod file;
pub mod lines;
pub mod stats;
pub mod trend;
pub mod verdict;

#[cfg(test)]
mod simulation;
