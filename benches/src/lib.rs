#![doc = include_str!("../README.md")]

pub mod baseline;
pub mod cli;
mod compare;
mod peers;
pub mod rooms;
pub mod run;
mod upstream;

// Brings the allocator of the daemon, for peers too.
use cuzk_daemon as _;
