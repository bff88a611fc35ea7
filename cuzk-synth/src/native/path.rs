//! Paths in the binary data tree over SHA-256, and the end that all paths have.

use blstrs::Scalar;

use super::{
    element::{ELEMENT_BITS, digest, element_bits},
    insert::insert_2,
    sha256::{ELEMENT, Hasher, Layout, fixed, layout, padding},
    writer::Writer,
};
use crate::c1::{model::MerkleProof, shape::element};

/// The data tree: a node is the hash of two field elements, one block and one of padding.
pub(super) struct DataTree {
    children: Layout,
    padding: Layout,
}

const PADDING: [[u8; 32]; 2] = padding(64);

impl DataTree {
    pub(super) fn new() -> Self {
        Self { children: layout(true, [ELEMENT; 2]), padding: layout(false, PADDING.map(fixed)) }
    }

    /// Variables of a path of so many levels.
    pub(super) fn path_aux(&self, levels: usize) -> usize {
        levels * (1 + 3 + 2 * ELEMENT_BITS + self.children.aux + self.padding.aux + 1)
    }

    /// From the leaf, which is a variable already, to the root, which is none of the path's own.
    pub(super) fn path(&self, out: &mut Writer, proof: &MerkleProof) {
        let mut current = *proof.leaf();
        for level in proof.levels() {
            insert_2(out, element(&current), level);
            let sibling = level.hashes[0];
            let children = if level.index == 0 { [current, sibling] } else { [sibling, current] };
            for child in &children {
                element_bits(out, child);
            }
            let mut hasher = Hasher::new();
            hasher.block(out, &self.children, children.map(|child| child.0));
            hasher.block(out, &self.padding, PADDING);
            current = digest(out, hasher);
        }
        arrival(out, proof, &element(&current));
    }
}

/// The end of a path: a public input that is the leaf's position, which is all the index bits, and that the root is the
/// tree's.
pub(super) fn arrival(out: &mut Writer, proof: &MerkleProof, root: &Scalar) {
    let (mut position, mut weight) = (0, 1);
    for level in proof.levels() {
        position += weight * level.index as u64;
        weight *= level.hashes.len() as u64 + 1;
    }
    let position = Scalar::from(position);
    out.input(position);
    out.equal(&position);
    out.equal(root);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_published_counts() {
        let tree = DataTree::new();
        assert_eq!((tree.children.aux, tree.padding.aux), (25_806, 19_014));
    }
}
