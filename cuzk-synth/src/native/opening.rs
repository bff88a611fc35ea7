//! Openings of the column tree and of the replica tree, which are over Poseidon: from a column of labels, or from a node, up a
//! path to the root.
//!
//! Poseidon is most of the work, and the hashes of a path need one another. So openings are computed several at once
//! ([`compute`]), level by level, and each is written when its place in the circuit has come.

use blstrs::Scalar;

use super::{
    insert::{insert_2, insert_8},
    path::arrival,
    writer::Writer,
};
use crate::{
    c1::{
        model::MerkleProof,
        shape::{Shape, element},
    },
    poseidon::{POSEIDON_2, POSEIDON_8, POSEIDON_11},
};

/// What a path begins with, which are variables already, and the path.
pub(super) struct Opening<'a> {
    pub(super) leaf: Leaf,
    pub(super) path: &'a MerkleProof,
}

pub(super) enum Leaf {
    /// Labels, whose hash is the leaf.
    Column(Vec<Scalar>),
    /// The leaf itself.
    Node(Scalar),
}

/// The variables of the hashes of an opening, from the leaf up.
pub(super) type Hashes = Vec<Scalar>;

/// Computes the hashes of openings in trees of one shape.
pub(super) fn compute(openings: &[Opening<'_>]) -> Vec<Hashes> {
    let mut hashes: Vec<Hashes> = vec![Hashes::new(); openings.len()];
    let (columns, mut to): (Vec<&[Scalar]>, Vec<&mut Hashes>) =
        openings.iter().zip(&mut hashes).filter_map(|(opening, to)| Some((opening.leaf.column()?, to))).unzip();
    hash_all(&columns, &mut to);

    let mut paths: Vec<_> = openings.iter().map(|opening| opening.path.levels()).collect();
    loop {
        let children: Vec<Vec<Scalar>> = paths
            .iter_mut()
            .map_while(Iterator::next)
            .zip(openings.iter().zip(&hashes))
            .map(|(level, (opening, hashes))| level.insert(opening.leaf.reached(hashes), element))
            .collect();
        if children.len() < openings.len() {
            return hashes;
        }
        hash_all(&children, &mut hashes.iter_mut().collect::<Vec<_>>());
    }
}

/// Writes an opening, but for the variables that it begins with. Its hashes were computed.
pub(super) fn write(out: &mut Writer, opening: &Opening<'_>, hashes: &Hashes) {
    let mut rest = &hashes[..];
    let mut current = match &opening.leaf {
        Leaf::Node(node) => *node,
        Leaf::Column(rows) if rows.len() == 2 => POSEIDON_2.write(out, rows, &mut rest),
        Leaf::Column(rows) => POSEIDON_11.write(out, rows, &mut rest),
    };
    for level in opening.path.levels() {
        current = match level.hashes.len() {
            1 => {
                let children = insert_2(out, current, level);
                POSEIDON_2.write(out, &children, &mut rest)
            }
            _ => {
                let children = insert_8(out, current, level);
                POSEIDON_8.write(out, &children, &mut rest)
            }
        };
    }
    arrival(out, opening.path, &current);
}

/// Variables of the hash of a column.
pub(super) fn column_aux(rows: usize) -> usize {
    match rows {
        2 => POSEIDON_2.num_aux(),
        _ => POSEIDON_11.num_aux(),
    }
}

/// Variables of a path in a tree of such a shape.
pub(super) fn path_aux(shape: &Shape) -> usize {
    let level = |&arity: &usize| match arity {
        2 => 1 + 1 + 2 + POSEIDON_2.num_aux(),
        _ => 3 + 7 + 2 + 20 + POSEIDON_8.num_aux(),
    };
    shape.oct_tree.iter().flatten().map(level).sum()
}

/// Appends hashes of 2, 8 or 11 elements, all of one number.
fn hash_all(inputs: &[impl AsRef<[Scalar]>], to: &mut [&mut Hashes]) {
    match inputs.first().map(|inputs| inputs.as_ref().len()) {
        None => {}
        Some(2) => POSEIDON_2.hash_all(inputs, to),
        Some(8) => POSEIDON_8.hash_all(inputs, to),
        Some(_) => POSEIDON_11.hash_all(inputs, to),
    }
}

impl Leaf {
    fn column(&self) -> Option<&[Scalar]> {
        match self {
            Self::Column(rows) => Some(rows),
            Self::Node(_) => None,
        }
    }

    /// The node that is reached with these hashes.
    fn reached(&self, hashes: &Hashes) -> Scalar {
        match (hashes.last(), self) {
            (Some(hash), _) => *hash,
            (None, Self::Node(node)) => *node,
            (None, Self::Column(_)) => unreachable!("columns are hashed first"),
        }
    }
}
