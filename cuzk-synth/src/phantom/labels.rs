//! The labels of the opened nodes.

use rayon::prelude::*;

use super::{
    filler::{Filler, What},
    graph::{Labelled, PARENTS},
};
use crate::c1::{
    hash::{create_label, in_turn},
    model::Node,
    shape::{DRG_PARENTS, LABEL_PARENTS},
};

/// The labels of some nodes and their parents, in all layers.
pub(super) struct Labels {
    layers: usize,
    /// Ascending.
    nodes: Vec<u32>,
    /// The labels of each of `nodes`, layer 1 first.
    labels: Vec<Node>,
}

impl Labels {
    /// Hashes the labels of `labelled` (ascending); those of nodes that are only their parents are filler.
    pub(super) fn new(layers: usize, replica_id: &Node, filler: &Filler, labelled: &[Labelled]) -> Self {
        let mut nodes: Vec<u32> = labelled.iter().flat_map(|one| one.parents.into_iter().chain([one.node])).collect();
        nodes.par_sort_unstable();
        nodes.dedup();
        let filler = |&node: &u32| (1..=layers).map(move |layer| filler.node(What::Label, layer, node));
        let labels = nodes.iter().flat_map(filler).collect();
        let mut all = Self { layers, nodes, labels };
        // A parent may be labelled itself. In its own layer it has a smaller number (or is node 0, which never is
        // labelled), the others are of the layer before: in this order both are finished.
        for layer in 1..=layers {
            for one in labelled {
                let label =
                    create_label(replica_id, layer as u32, one.node.into(), &all.of_parents(&one.parents, layer));
                let at = all.position(one.node, layer);
                all.labels[at] = label;
            }
        }
        all
    }

    /// All nodes with their labels.
    pub(super) fn columns(&self) -> impl IndexedParallelIterator<Item = (u32, &[Node])> {
        self.nodes.par_iter().copied().zip(self.labels.par_chunks(self.layers))
    }

    /// The labels of a node, layer 1 first.
    ///
    /// # Panics
    /// If it is not among the nodes.
    pub(super) fn column(&self, node: u32) -> &[Node] {
        let first = self.position(node, 1);
        &self.labels[first..first + self.layers]
    }

    /// The labels that a label in `layer` (from 1) is hashed from: those of its parents in the same layer, then, from
    /// layer 2 on, of those in the previous one, in turn.
    pub(super) fn of_parents(&self, parents: &[u32; PARENTS], layer: usize) -> [&Node; LABEL_PARENTS] {
        let own = parents[..DRG_PARENTS].iter().map(|&parent| &self.labels[self.position(parent, layer)]);
        if layer == 1 {
            return in_turn(own);
        }
        let previous = parents[DRG_PARENTS..].iter().map(|&parent| &self.labels[self.position(parent, layer - 1)]);
        in_turn(own.chain(previous))
    }

    fn position(&self, node: u32, layer: usize) -> usize {
        let at = self.nodes.binary_search(&node).expect("labelled nodes and their parents have labels");
        at * self.layers + layer - 1
    }
}
