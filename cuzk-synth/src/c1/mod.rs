//! The C1 output of a sector: its layers of encoding, the data, and the checks that come before any proving.
//!
//! * [`envelope`]: bytes → the inner JSON, out of the node's envelope or bare;
//! * [`model`]: the inner JSON as data;
//! * [`shape`]: how many of everything a sector size asks for, and field elements in range;
//! * `hash`: the hashes of labels and trees;
//! * `openings`: the hashes that openings of the trees lead to;
//! * [`vanilla`]: the vanilla proofs themselves, so that a wrong node is named before a circuit is built on it.

pub mod envelope;
pub(crate) mod hash;
pub mod model;
mod openings;
pub mod shape;
pub mod vanilla;
