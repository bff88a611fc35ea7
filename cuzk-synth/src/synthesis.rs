//! What the synthesis of a partition leaves to its prover.

use crate::{planes::Rows, witness::CompactWitness};

/// A witness, and the constraints' factors if it was computed together with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synthesis {
    /// The values of the variables.
    pub witness: CompactWitness,
    /// A·w and B·w. Without them a prover multiplies the matrices with the witness.
    pub rows: Option<Rows>,
}

impl Synthesis {
    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.witness.bytes() + self.rows.as_ref().map_or(0, Rows::bytes)
    }
}

impl From<CompactWitness> for Synthesis {
    fn from(witness: CompactWitness) -> Self {
        Self { witness, rows: None }
    }
}
