//! A tree of which a few leaves are known.

use rayon::prelude::*;

use super::filler::{Filler, What};
use crate::c1::{
    hash::poseidon,
    model::{Level, MerkleProof, Node, Path, ProofData},
};

/// A tree of Poseidon hashes over some leaves. Nodes with none of these below them are filler.
pub(super) struct SparseTree<'a> {
    /// Arities of the levels of base tree, sub-tree and top tree.
    shape: &'a [Vec<usize>; 3],
    filler: &'a Filler,
    what: What,
    /// The nodes of each level that are no filler, ascending, leaves first.
    levels: Vec<Vec<(u32, Node)>>,
}

impl<'a> SparseTree<'a> {
    /// The tree over these leaves, which are ascending.
    pub(super) fn new(shape: &'a [Vec<usize>; 3], filler: &'a Filler, what: What, leaves: Vec<(u32, Node)>) -> Self {
        let mut tree = Self { shape, filler, what, levels: vec![leaves] };
        for (level, arity) in shape.concat().into_iter().enumerate() {
            let parents = tree.parents(level, arity as u32);
            tree.levels.push(parents);
        }
        tree
    }

    /// The parents of the known nodes of a level.
    fn parents(&self, level: usize, arity: u32) -> Vec<(u32, Node)> {
        let families: Vec<_> = self.levels[level].chunk_by(|(a, _), (b, _)| a / arity == b / arity).collect();
        let parent = |family: &&[(u32, Node)]| {
            let parent = family[0].0 / arity;
            let children: Vec<Node> = (parent * arity..).take(arity as usize).map(|i| self.node(level, i)).collect();
            (parent, poseidon(&children))
        };
        families.par_iter().map(parent).collect()
    }

    pub(super) fn root(&self) -> Node {
        self.node(self.levels.len() - 1, 0)
    }

    /// The path from a leaf to the root.
    pub(super) fn proof(&self, leaf: u32) -> MerkleProof {
        open_path(self.shape, leaf, |level, index| self.node(level, index))
    }

    fn node(&self, level: usize, index: u32) -> Node {
        let known = &self.levels[level];
        match known.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => known[at].1,
            Err(_) => self.filler.node(self.what, level, index),
        }
    }
}

/// The path from a leaf to the root of a tree whose node at (level, index) is `node`.
pub(super) fn open_path(shape: &[Vec<usize>; 3], leaf: u32, node: impl Fn(usize, u32) -> Node) -> MerkleProof {
    let mut level = 0;
    let mut own = leaf;
    let [base, sub, top] = shape.each_ref().map(|arities| {
        let path = arities.iter().map(|&arity| {
            let index = own as usize % arity;
            let family = (own - index as u32..).take(arity);
            let hashes = family.filter(|&i| i != own).map(|i| node(level, i)).collect();
            level += 1;
            own /= arity as u32;
            Level { hashes, index }
        });
        Path { path: path.collect() }
    });
    let (leaf, root) = (node(0, leaf), node(level, 0));
    let data = match (sub.path.is_empty(), top.path.is_empty()) {
        (true, _) => ProofData::Single { root, leaf, path: base },
        (false, true) => ProofData::Sub { base_proof: base, sub_proof: sub, root, leaf },
        (false, false) => ProofData::Top { base_proof: base, sub_proof: sub, top_proof: top, root, leaf },
    };
    MerkleProof { data }
}
