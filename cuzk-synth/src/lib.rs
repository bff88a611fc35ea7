//! placeholder
pub mod circuit;
