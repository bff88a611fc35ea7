//! Parameter files from the network: what is missing comes from the mirrors that the operator names, and takes its place
//! only with the digest that the network has published for it.
//!
//! * [`wanted`]: which files, with digest and size; [`mirror`]: where they are asked for
//! * [`answer`]: what a mirror's answer means (pure); [`course`]: which mirror is asked next, and when (pure)
//! * [`part`]: the unfinished file on disk; [`http`]: requests; [`transfer`]: one file from the first request to its place
//!
//! Nothing that a mirror says is believed: a file counts by its digest, so a mirror can waste time, and no more.

pub mod answer;
pub mod course;
pub mod http;
pub mod mirror;
pub mod part;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod wanted;
