//! Field elements as bits and back.

use super::{sha256::Hasher, writer::Writer};
use crate::c1::{model::Node, shape::element};

/// Bits that the circuit unpacks a field element into.
pub(super) const ELEMENT_BITS: usize = 255;

/// Unpacks a field element, lowest bit first.
pub(super) fn element_bits(out: &mut Writer, element: &Node) {
    let (words, _) = element.0.as_chunks();
    let [low @ .., high] = [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
    for word in low {
        out.bits(word, 64);
    }
    out.bits(high, ELEMENT_BITS - 3 * 64);
    // That they are the element's.
    out.no_product();
}

/// A variable that is a hash's digest, without its two highest bits.
pub(super) fn digest(out: &mut Writer, hasher: Hasher) -> Node {
    let mut digest = hasher.digest();
    digest[31] &= 0x3f;
    let digest = Node(digest);
    let packed = element(&digest);
    out.num(packed);
    out.equal(&packed);
    digest
}
