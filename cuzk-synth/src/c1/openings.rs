//! The Poseidon hashes that vanilla proofs claim: of columns, and up the paths of the column and replica trees.
//!
//! They are nearly all of a check's work, so they are computed for all challenges at once, level by level: several side by
//! side, and each once. The paths of a sector share their upper levels: for 32 GiB, two fifths of all hashes are asked for
//! again.

use std::collections::HashMap;

use blstrs::Scalar;
use ff::PrimeField;
use rayon::prelude::*;

use super::{
    model::{ChallengeProof, MerkleProof, Node},
    shape::{DRG_PARENTS, EXP_PARENTS, element},
    vanilla::parent_columns,
};
use crate::poseidon;

/// Openings of a challenge: of the parents' columns, of its own, of its replica.
const OPENINGS: usize = DRG_PARENTS + EXP_PARENTS + 2;

/// What an opening leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// The hash of the column, unless it is the replica that is opened.
    pub(super) column: Option<Node>,
    /// The root that the path leads to from the leaf that it claims.
    pub(super) root: Node,
}

/// Those of all challenges.
pub(super) struct Openings(Vec<Opened>);

impl Openings {
    /// Computes those of challenges whose shape has been checked. Parallel on the current rayon pool.
    pub(super) fn compute<'a>(challenges: impl Iterator<Item = &'a ChallengeProof>) -> Self {
        let (mut columns, mut paths) = (Vec::new(), Vec::new());
        for proof in challenges {
            let c_x = &proof.replica_column_proofs.c_x;
            for opened in parent_columns(&proof.replica_column_proofs).chain([c_x]) {
                columns.push(opened.column.rows.iter().map(element).collect::<Vec<_>>());
                paths.push(&opened.inclusion_proof);
            }
            paths.push(&proof.comm_r_last_proof);
        }
        let mut columns = poseidon::digests(&columns).into_iter().map(|hash| Node(hash.to_repr()));
        let opened = roots(&paths).into_iter().enumerate().map(|(i, root)| {
            let is_replica = i % OPENINGS == OPENINGS - 1;
            Opened { column: if is_replica { None } else { columns.next() }, root }
        });
        Self(opened.collect())
    }

    /// One slice a challenge: the parents', the column's, the replica's last.
    pub(super) fn of_challenges(&self) -> impl IndexedParallelIterator<Item = &[Opened]> {
        self.0.par_chunks(OPENINGS)
    }
}

/// The roots that paths of one shape lead to from their leaves.
fn roots(paths: &[&MerkleProof]) -> Vec<Node> {
    let mut nodes: Vec<Node> = paths.iter().map(|path| *path.leaf()).collect();
    let mut levels: Vec<_> = paths.iter().map(|path| path.levels()).collect();
    loop {
        let families: Vec<Vec<Node>> = levels
            .iter_mut()
            .map_while(Iterator::next)
            .zip(&nodes)
            .map(|(level, node)| level.insert(*node, |sibling| *sibling))
            .collect();
        if families.len() < paths.len() || families.is_empty() {
            return nodes;
        }
        nodes = hash_distinct(&families);
    }
}

/// The hash of each family, each computed once.
fn hash_distinct(families: &[Vec<Node>]) -> Vec<Node> {
    let mut places: HashMap<&[Node], usize> = HashMap::with_capacity(families.len());
    let mut distinct: Vec<Vec<Scalar>> = Vec::new();
    let mut wanted = Vec::with_capacity(families.len());
    for family in families {
        let place = *places.entry(family).or_insert(distinct.len());
        if place == distinct.len() {
            distinct.push(family.iter().map(element).collect());
        }
        wanted.push(place);
    }
    let hashes: Vec<Node> = poseidon::digests(&distinct).into_iter().map(|hash| Node(hash.to_repr())).collect();
    wanted.into_iter().map(|place| hashes[place]).collect()
}
