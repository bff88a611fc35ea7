//! What upstream knows of a sector's graph: its challenges and its parents.

use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_proofs::{DefaultPieceDomain, DefaultTreeHasher, parameters::setup_params};
use rayon::prelude::*;
use storage_proofs_core::drgraph::Graph as _;
use storage_proofs_porep::stacked::{Challenges, PublicInputs, StackedBucketGraph, Tau};

use crate::{
    c1::{
        model::Node,
        shape::{DRG_PARENTS, EXP_PARENTS, Shape},
    },
    circuit::SectorSize,
    registered::SealProof,
};

/// Parents of a node, those in its own layer first.
pub(super) const PARENTS: usize = DRG_PARENTS + EXP_PARENTS;

/// The graph of a sector.
pub(super) struct Graph {
    size: SectorSize,
    partitions: usize,
    challenges: Challenges,
    graph: StackedBucketGraph<DefaultTreeHasher>,
    pub(super) layers: usize,
    pub(super) log_nodes: usize,
}

/// A node whose labels are right.
pub(super) struct Labelled {
    pub(super) node: u32,
    pub(super) parents: [u32; PARENTS],
}

impl Graph {
    pub(super) fn new(seal: SealProof) -> Self {
        let config = seal.upstream().as_v1_config();
        let setup = setup_params(&config).expect("the setup of a built sector size is known");
        let graph = StackedBucketGraph::new_stacked(
            setup.nodes,
            setup.degree,
            setup.expansion_degree,
            setup.porep_id,
            setup.api_version,
        );
        Self {
            size: seal.size,
            partitions: usize::from(config.partitions),
            challenges: setup.challenges,
            graph: graph.expect("the graph of a built sector size is known"),
            layers: setup.num_layers,
            log_nodes: setup.nodes.trailing_zeros() as usize,
        }
    }

    /// The arities of the column and replica trees.
    pub(super) fn tree_shape(&self) -> [Vec<usize>; 3] {
        let (base, sub, top) = match self.size {
            SectorSize::Kib2 | SectorSize::Mib8 | SectorSize::Mib512 => (8, 0, 0),
            SectorSize::Gib32 => (8, 8, 0),
            SectorSize::Gib64 => (8, 8, 2),
        };
        Shape::oct_tree(self.log_nodes, base, sub, top)
    }

    /// The challenged nodes, one list a partition; comm_d and comm_r are needed for synthetic PoRep only.
    pub(super) fn challenges(&self, replica_id: Node, seed: Node, tau: Option<(Node, Node)>) -> Vec<Vec<u32>> {
        let public = PublicInputs::<PoseidonDomain, DefaultPieceDomain> {
            replica_id: replica_id.0.into(),
            seed: Some(seed.0),
            tau: tau.map(|(comm_d, comm_r)| Tau { comm_d: comm_d.0.into(), comm_r: comm_r.0.into() }),
            k: None,
        };
        let partition = |k| {
            let nodes = public.challenges(&self.challenges, self.graph.size(), Some(k));
            nodes.into_iter().map(|node| node as u32).collect()
        };
        (0..self.partitions).map(partition).collect()
    }

    /// The nodes, ascending and each once, with their parents.
    pub(super) fn with_parents(&self, mut nodes: Vec<u32>) -> Vec<Labelled> {
        nodes.sort_unstable();
        nodes.dedup();
        let labelled = |node: u32| {
            let mut parents = [0; PARENTS];
            self.graph.parents(node as usize, &mut parents).expect("challenges are nodes of the graph");
            Labelled { node, parents }
        };
        nodes.into_par_iter().map(labelled).collect()
    }
}
