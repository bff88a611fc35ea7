//! The labels of a challenged node, layer by layer: SHA-256 of the replica id, the layer, the node, and 37 labels of
//! parents.

use super::{
    element::{ELEMENT_BITS, digest, element_bits},
    sha256::{ELEMENT, Half, Hasher, Layout, MessageWord, fixed, layout, padding},
    writer::Writer,
};
use crate::c1::{
    model::{ChallengeProof, Node},
    shape::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS},
    vanilla::parent_labels,
};

/// The hash of labels: a block with replica id, layer and node, 18 blocks of two parents' labels, and one with the last
/// label and padding.
pub(super) struct LabelHash {
    /// The first block of each layer, whose number is a constant of the circuit.
    first: Vec<Layout>,
    parents: Layout,
    last: Layout,
}

const PADDING: [[u8; 32]; 1] = padding(32 * (2 + LABEL_PARENTS as u16));

impl LabelHash {
    pub(super) fn new(layers: usize) -> Self {
        Self {
            first: (1..=layers).map(|layer| layout(true, [ELEMENT, layer_and_node(layer as u32)])).collect(),
            parents: layout(false, [ELEMENT; 2]),
            last: layout(false, [ELEMENT, fixed(PADDING[0])]),
        }
    }

    /// Variables of a node's labels in all layers.
    pub(super) fn num_aux(&self) -> usize {
        let layers = self.first.len();
        let unpacked = layers * DRG_PARENTS + (layers - 1) * EXP_PARENTS;
        let blocks = |first: &Layout| first.aux + LABEL_PARENTS / 2 * self.parents.aux + self.last.aux;
        unpacked * ELEMENT_BITS + self.first.iter().map(|first| blocks(first) + 1).sum::<usize>()
    }

    /// Writes the labels of a node, layer 1 first; replica id and node are unpacked already.
    pub(super) fn labels(&self, out: &mut Writer, replica_id: &Node, node: u64, proof: &ChallengeProof) {
        for (first, layer) in self.first.iter().zip(1..) {
            let parents: Vec<&Node> = parent_labels(proof, layer as usize).collect();
            // Each distinct parent is unpacked once a layer, however often it is hashed.
            for parent in &parents {
                element_bits(out, parent);
            }
            let mut hasher = Hasher::new();
            hasher.block(out, first, [replica_id.0, layer_and_node_bytes(layer, node)]);
            let mut hashed = parents.iter().map(|parent| parent.0).cycle().take(LABEL_PARENTS);
            while let Some(parent) = hashed.next() {
                match hashed.next() {
                    Some(next) => hasher.block(out, &self.parents, [parent, next]),
                    None => hasher.block(out, &self.last, [parent, PADDING[0]]),
                }
            }
            digest(out, hasher);
        }
    }
}

/// Layer (4 bytes), node (8 bytes), both big-endian, and zeros.
fn layer_and_node_bytes(layer: u32, node: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&layer.to_be_bytes());
    bytes[4..12].copy_from_slice(&node.to_be_bytes());
    bytes
}

/// What is fixed of those bytes: all but the node.
fn layer_and_node(layer: u32) -> Half {
    let mut half = fixed(layer_and_node_bytes(layer, 0));
    half[1..3].fill(MessageWord::Variable);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_published_counts() {
        let hash = LabelHash::new(11);
        assert!(hash.first.iter().all(|first| first.aux == 25_337));
        assert_eq!((hash.parents.aux, hash.last.aux), (26_158, 25_567));
    }
}
