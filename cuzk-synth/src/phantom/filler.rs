//! What stands where anything may stand.

use sha2::{Digest, Sha256};

use crate::c1::{hash::truncated, model::Node};

/// A pseudo-random function of the seed, with values below 2^254 as real nodes have them.
pub(super) struct Filler(Sha256);

/// What a value is for; each has values of its own.
#[derive(Clone, Copy)]
pub(super) enum What {
    Ticket,
    Seed,
    Data,
    Label,
    ColumnTree,
    ReplicaTree,
}

impl Filler {
    pub(super) fn new(seed: &str) -> Self {
        // Hashed first, so that a value takes one block whatever the length of the seed.
        Self(Sha256::new().chain_update(Sha256::digest(seed)))
    }

    /// The value for a layer of labels or a level of a tree, and a place in it.
    pub(super) fn node(&self, what: What, level: usize, index: u32) -> Node {
        let mut hasher = self.0.clone();
        hasher.update([what as u8, level as u8]);
        hasher.update(index.to_le_bytes());
        truncated(hasher)
    }
}
