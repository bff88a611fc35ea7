//! C1 outputs of sectors that do not exist: for tests, benches and load generators of any sector size, in a second.
//!
//! A C1 output opens a few nodes of a sector, and what has never been opened may be anything. Who knows beforehand which
//! nodes will be opened needs to make only these consistent:
//!
//! 1. the data is periodic, so its tree has few distinct nodes (`data`), and comm_d is known at once;
//! 2. comm_d fixes the replica id, and replica id and seed fix the challenges (`graph`);
//! 3. the labels of challenged nodes are hashed from those of their parents, which are filler (`labels`, `filler`);
//! 4. the column and replica trees are built over the opened leaves only; all other nodes are filler (`tree`).
//!
//! Such an output passes every check of vanilla proofs and satisfies the circuit. It proves nothing about storage, and no
//! network accepts it: there seed and ticket come from the chain, the seed after comm_r has been committed to.
//!
//! With synthetic PoRep the challenges depend on comm_r too, so that nobody can know them before the trees are built: each
//! node of the sector must be labelled, as in sealing. That is done for sectors of up to 8 MiB.

mod data;
mod filler;
mod graph;
mod labels;
mod tree;

use rayon::prelude::*;

use crate::{
    c1::{
        hash::{column_hash, encode, poseidon},
        model::{C1Output, ChallengeProof, Column, ColumnProof, ColumnProofs, LabelingProof, VanillaProofs},
        shape::DRG_PARENTS,
    },
    error::InputError,
    porep::{Claims, replica_id},
    registered::{SealProof, Variant},
};
use data::DataTree;
use filler::{Filler, What};
use graph::{Graph, Labelled};
use labels::Labels;
use tree::SparseTree;

/// A sector that does not exist. Equal ones have equal C1 outputs.
#[derive(Clone, Copy, Debug)]
pub struct PhantomSector<'a> {
    /// The registered seal proof: sector size and variant.
    pub seal: SealProof,
    /// The miner's actor id.
    pub miner_id: u64,
    /// The sector's number.
    pub sector_number: u64,
    /// Any text, from which all else is derived: data, ticket, seed.
    pub seed: &'a str,
}

impl PhantomSector<'_> {
    /// What a right request for its proof claims.
    pub fn claims(&self) -> Claims {
        Claims {
            sector_size: self.seal.size.bytes(),
            registered_proof: self.seal.number,
            sector_number: self.sector_number,
            miner_id: self.miner_id,
        }
    }

    /// Its C1 output. Parallel on the current rayon pool; about a second of CPU time for 32 GiB.
    ///
    /// # Errors
    /// [`InputError::Unimplemented`] for variants that are not built and for synthetic PoRep of more than 8 MiB.
    pub fn c1_output(&self) -> Result<C1Output, InputError> {
        self.seal.require_built()?;
        let graph = Graph::new(self.seal);
        let filler = Filler::new(self.seed);
        let (ticket, seed) = (filler.node(What::Ticket, 0, 0), filler.node(What::Seed, 0, 0));
        let data = DataTree::new(&filler, graph.log_nodes);
        let comm_d = data.root();
        let replica_id = replica_id(self.seal, &self.claims(), &ticket, &comm_d);

        let nodes: Vec<u32> = match self.seal.variant {
            Variant::Synthetic if graph.log_nodes > SEALED_LOG_NODES => return Err(self.too_large_to_seal()),
            // Node 0 is never challenged.
            Variant::Synthetic => (1..1 << graph.log_nodes).collect(),
            _ => graph.challenges(replica_id, seed, None).concat(),
        };
        let labelled = graph.with_parents(nodes);
        let labels = Labels::new(graph.layers, &replica_id, &filler, &labelled);
        let columns = labels.columns().map(|(node, column)| (node, column_hash(column))).collect();
        let replica = labelled.par_iter().map(|&Labelled { node, .. }| {
            let key = &labels.column(node)[graph.layers - 1];
            (node, encode(key, &data.node(0, node)))
        });
        let shape = graph.tree_shape();
        let column_tree = SparseTree::new(&shape, &filler, What::ColumnTree, columns);
        let replica_tree = SparseTree::new(&shape, &filler, What::ReplicaTree, replica.collect());
        let comm_r = poseidon(&[column_tree.root(), replica_tree.root()]);

        let sector = Sector { data, labelled, labels, column_tree, replica_tree };
        let partitions = graph.challenges(replica_id, seed, Some((comm_d, comm_r)));
        let partitions = partitions.par_iter().map(|nodes| nodes.iter().map(|&node| sector.open(node)).collect());
        Ok(C1Output {
            registered_proof: self.seal.name(),
            vanilla_proofs: VanillaProofs::new(self.seal.size, partitions.collect()),
            comm_r,
            comm_d,
            replica_id,
            seed,
            ticket,
        })
    }

    fn too_large_to_seal(&self) -> InputError {
        InputError::Unimplemented(format!(
            "{}: its challenges depend on comm_r, so the whole sector would have to be sealed, which is done up to 8 MiB; \
             another variant has the same circuit",
            self.seal.name()
        ))
    }
}

/// The largest sectors (log2 of their nodes) that are sealed when the variant asks for it: 8 MiB.
const SEALED_LOG_NODES: usize = 18;

/// All that can be opened.
struct Sector<'a> {
    data: DataTree,
    /// Ascending.
    labelled: Vec<Labelled>,
    labels: Labels,
    column_tree: SparseTree<'a>,
    replica_tree: SparseTree<'a>,
}

impl Sector<'_> {
    /// The vanilla proof of a labelled node.
    fn open(&self, node: u32) -> ChallengeProof {
        let at = self.labelled.binary_search_by_key(&node, |labelled| labelled.node);
        let parents = &self.labelled[at.expect("challenges are labelled")].parents;
        let columns = |nodes: &[u32]| nodes.iter().map(|&node| self.open_column(node)).collect();
        let labeling_proof = |layer| LabelingProof {
            parents: self.labels.of_parents(parents, layer).map(|label| *label).to_vec(),
            layer_index: layer as u32,
            node: node.into(),
        };
        let layers = self.labels.column(node).len();
        ChallengeProof {
            comm_d_proofs: self.data.proof(node),
            comm_r_last_proof: self.replica_tree.proof(node),
            replica_column_proofs: ColumnProofs {
                c_x: self.open_column(node),
                drg_parents: columns(&parents[..DRG_PARENTS]),
                exp_parents: columns(&parents[DRG_PARENTS..]),
            },
            labeling_proofs: (1..=layers).map(labeling_proof).collect(),
            encoding_proof: labeling_proof(layers),
        }
    }

    fn open_column(&self, node: u32) -> ColumnProof {
        ColumnProof {
            column: Column { index: node, rows: self.labels.column(node).to_vec() },
            inclusion_proof: self.column_tree.proof(node),
        }
    }
}
