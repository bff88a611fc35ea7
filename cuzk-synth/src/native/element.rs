//! Field elements as bits and back.

use crate::{c1::model::Node, witness::WitnessBuilder};

/// Bits that the circuit unpacks a field element into.
pub(super) const ELEMENT_BITS: usize = 255;

/// Unpacks a field element, lowest bit first.
pub(super) fn element_bits(out: &mut WitnessBuilder, element: &Node) {
    let (words, _) = element.0.as_chunks();
    let [low @ .., high] = [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
    for word in low {
        out.bits(word, 64);
    }
    out.bits(high, ELEMENT_BITS - 3 * 64);
}

/// A digest without its two highest bits: the field element that the circuit packs it into.
pub(super) fn truncated(mut digest: [u8; 32]) -> Node {
    digest[31] &= 0x3f;
    Node(digest)
}
