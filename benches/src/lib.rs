//! Measurements beside bellperson: what both need, so that they get the same input.

pub mod child;
pub mod ratios;
pub mod upstream;
