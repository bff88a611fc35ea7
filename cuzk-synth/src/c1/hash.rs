//! The hashes of a sector: labels and the data tree by SHA-256, the column and replica trees by Poseidon.

use blstrs::Scalar;
use ff::PrimeField;
use filecoin_hashers::{
    HashFunction,
    poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher},
};
use sha2::{Digest, Sha256};
use storage_proofs_porep::stacked::Column;

use super::{
    model::Node,
    shape::{LABEL_PARENTS, element},
};

/// The parents' labels in turn, up to the 37 that are hashed.
pub(crate) fn in_turn<'a>(parents: impl Iterator<Item = &'a Node>) -> [&'a Node; LABEL_PARENTS] {
    let parents: Vec<&Node> = parents.collect();
    std::array::from_fn(|i| parents[i % parents.len()])
}

/// SHA256(replica id | layer, 4 bytes BE | node, 8 bytes BE | 20 zeros | 37 labels), cut to 254 bits.
pub(crate) fn create_label(replica_id: &Node, layer: u32, node: u64, parents: &[&Node; LABEL_PARENTS]) -> Node {
    let mut hasher = Sha256::new();
    hasher.update(replica_id.0);
    hasher.update(layer.to_be_bytes());
    hasher.update(node.to_be_bytes());
    hasher.update([0; 20]);
    for parent in parents {
        hasher.update(parent.0);
    }
    truncated(hasher)
}

/// SHA-256 of the nodes, cut to 254 bits.
pub(crate) fn sha256(nodes: &[Node]) -> Node {
    let mut hasher = Sha256::new();
    for node in nodes {
        hasher.update(node.0);
    }
    truncated(hasher)
}

/// The digest with its two highest bits cleared, so that it is a field element.
pub(crate) fn truncated(hasher: Sha256) -> Node {
    let mut digest: [u8; 32] = hasher.finalize().into();
    digest[31] &= 0x3f;
    Node(digest)
}

/// Poseidon of 2 or 8 nodes, which must be field elements, by the upstream library.
pub(crate) fn poseidon(nodes: &[Node]) -> Node {
    let bytes: Vec<u8> = nodes.iter().flat_map(|node| node.0).collect();
    let hash: PoseidonDomain = <PoseidonFunction as HashFunction<_>>::hash(&bytes);
    Node(hash.into())
}

/// The leaf of the column tree: Poseidon of a node's labels, of 2 or 11 layers, by the upstream library.
pub(crate) fn column_hash(rows: &[Node]) -> Node {
    let rows = rows.iter().map(|row| PoseidonDomain::from(row.0));
    // The column's index does not enter the hash.
    let hash: Scalar = Column::<PoseidonHasher>::new(0, rows.collect()).expect("a column takes any rows").hash();
    Node(hash.to_repr())
}

/// The sealed node: the last layer's label plus the data, as field elements.
pub(crate) fn encode(label: &Node, data: &Node) -> Node {
    Node((element(label) + element(data)).to_repr())
}
