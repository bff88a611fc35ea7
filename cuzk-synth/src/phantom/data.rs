//! The data of the sector and its tree.

use super::{
    filler::{Filler, What},
    tree::open_path,
};
use crate::c1::{
    hash::sha256,
    model::{MerkleProof, Node},
};

/// The binary tree of periodic data: each level is its few distinct nodes, over and over.
pub(super) struct DataTree {
    /// The distinct nodes of each level, leaves first.
    levels: Vec<Vec<Node>>,
}

impl DataTree {
    /// The tree over 2^`log_nodes` nodes of data.
    pub(super) fn new(filler: &Filler, log_nodes: usize) -> Self {
        let period = 1 << log_nodes.min(LOG_PERIOD);
        let mut levels = vec![(0..period).map(|i| filler.node(What::Data, 0, i)).collect::<Vec<_>>()];
        for level in 0..log_nodes {
            let parents = match &levels[level][..] {
                [node] => vec![sha256(&[*node, *node])],
                nodes => nodes.chunks(2).map(sha256).collect(),
            };
            levels.push(parents);
        }
        Self { levels }
    }

    pub(super) fn root(&self) -> Node {
        self.node(self.levels.len() - 1, 0)
    }

    /// Node `index` of a level, leaves at level 0.
    pub(super) fn node(&self, level: usize, index: u32) -> Node {
        let nodes = &self.levels[level];
        nodes[index as usize % nodes.len()]
    }

    /// The path from a leaf to the root.
    pub(super) fn proof(&self, leaf: u32) -> MerkleProof {
        let shape = [vec![2; self.levels.len() - 1], vec![], vec![]];
        open_path(&shape, leaf, |level, index| self.node(level, index))
    }
}

/// log2 of the number of nodes after which the data repeats.
const LOG_PERIOD: usize = 10;
