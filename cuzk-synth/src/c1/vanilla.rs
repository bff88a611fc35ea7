//! Verification of the vanilla proofs on the host. It costs little beside proving, and what it refuses would otherwise
//! surface as an unsatisfied circuit after all the work, without the place of the fault.
//!
//! Source of the rules: the Stacked DRG PoRep specification (Filecoin spec, "Stacked DRG PoRep"); they are those of
//! `storage_proofs_porep`'s `Proof::verify`, and one more: that labels are hashed from the very parents whose columns
//! are opened.

use rayon::prelude::*;

use super::{
    hash::{create_label, encode, in_turn, poseidon, sha256},
    model::{ChallengeProof, ColumnProof, ColumnProofs, LabelingProof, MerkleProof, Node},
    openings::{Opened, Openings},
    shape::{DRG_PARENTS, LABEL_PARENTS},
};
use crate::error::InputError;

/// What the vanilla proofs must prove, and the graph that they are about.
pub struct Statement<'a> {
    /// Replica commitment.
    pub comm_r: Node,
    /// Data commitment.
    pub comm_d: Node,
    /// Replica id.
    pub replica_id: Node,
    /// The challenged nodes, one list a partition.
    pub challenges: Vec<Vec<usize>>,
    /// The parents of a node, those in its own layer first.
    pub parents: &'a (dyn Fn(usize) -> Vec<u32> + Sync),
}

impl Statement<'_> {
    /// Verifies all challenges of all partitions, in parallel on the current pool. The shape of the proofs must have
    /// been checked ([`super::shape::Shape::check`]). Of several faults the first in order is named.
    pub fn verify(&self, partitions: &[Vec<ChallengeProof>]) -> Result<(), InputError> {
        let first = &partitions[0][0];
        let comm_c = *first.replica_column_proofs.c_x.inclusion_proof.root();
        let comm_r_last = *first.comm_r_last_proof.root();
        if poseidon(&[comm_c, comm_r_last]) != self.comm_r {
            return Err(InputError::invalid(
                "comm_r",
                format!(
                    "{:?} is not the hash of the roots in the vanilla proofs (comm_c {comm_c:?}, comm_r_last {comm_r_last:?})",
                    self.comm_r
                ),
            ));
        }
        let all: Vec<_> = partitions
            .iter()
            .enumerate()
            .flat_map(|(k, proofs)| proofs.iter().enumerate().map(move |(i, p)| (k, i, p)))
            .collect();
        let trees = Trees { comm_c, comm_r_last };
        let openings = Openings::compute(all.iter().map(|(_, _, proof)| *proof));
        let first_fault = all.par_iter().zip(openings.of_challenges()).find_map_first(|(&(k, i, proof), opened)| {
            let node = self.challenges[k][i];
            let fault = self.check(node, proof, &trees, opened).err()?;
            Some(InputError::invalid(
                format!("vanilla_proofs[{k}][{i}].{}", fault.part),
                format!("partition {k}, challenge {i} (node {node}): {}", fault.what),
            ))
        });
        first_fault.map_or(Ok(()), Err)
    }

    fn check(&self, node: usize, proof: &ChallengeProof, trees: &Trees, opened: &[Opened]) -> Result<(), Fault> {
        let columns = &proof.replica_column_proofs;
        let (replica, opened) = opened.split_last().expect("a challenge has openings");
        check_path("comm_d_proofs", &proof.comm_d_proofs, node, &self.comm_d, &data_root(&proof.comm_d_proofs))?;
        check_path("comm_r_last_proof", &proof.comm_r_last_proof, node, &trees.comm_r_last, &replica.root)?;

        let parents = (self.parents)(node);
        for (i, ((column, &parent), opened)) in parent_columns(columns).zip(&parents).zip(opened).enumerate() {
            let name = || match i.checked_sub(DRG_PARENTS) {
                None => format!("replica_column_proofs.drg_parents[{i}]"),
                Some(i) => format!("replica_column_proofs.exp_parents[{i}]"),
            };
            trees.check_column(column, parent as usize, opened).map_err(|fault| fault.within(&name()))?;
        }
        trees
            .check_column(&columns.c_x, node, &opened[parents.len()])
            .map_err(|fault| fault.within("replica_column_proofs.c_x"))?;

        let rows = &columns.c_x.column.rows;
        for (i, label) in proof.labeling_proofs.iter().enumerate() {
            self.check_label(label, node, i + 1, proof, &rows[i])
                .map_err(|fault| fault.within(&format!("labeling_proofs[{i}]")))?;
        }
        self.check_label(&proof.encoding_proof, node, rows.len(), proof, &rows[rows.len() - 1])
            .map_err(|fault| fault.within("encoding_proof"))?;

        let encoded = encode(&rows[rows.len() - 1], proof.comm_d_proofs.leaf());
        if encoded != *proof.comm_r_last_proof.leaf() {
            return Err(Fault::new(
                "comm_r_last_proof",
                format!("leaf {:?} is not the data plus the last label, {encoded:?}", proof.comm_r_last_proof.leaf()),
            ));
        }
        Ok(())
    }

    fn check_label(
        &self,
        label: &LabelingProof,
        node: usize,
        layer: usize,
        proof: &ChallengeProof,
        expected: &Node,
    ) -> Result<(), Fault> {
        if label.node != node as u64 || label.layer_index as usize != layer {
            return Err(Fault::new(
                "node",
                format!(
                    "is about node {} in layer {}, expected node {node} in layer {layer}",
                    label.node, label.layer_index
                ),
            ));
        }
        let parents = in_turn(parent_labels(proof, layer));
        if let Some(i) = (0..LABEL_PARENTS).find(|&i| label.parents[i] != *parents[i]) {
            return Err(Fault::new(format!("parents[{i}]"), "differs from the opened column of that parent"));
        }
        let found = create_label(&self.replica_id, layer as u32, node as u64, &parents);
        if found != *expected {
            return Err(Fault::new("parents", format!("hash to label {found:?}, the opened column has {expected:?}")));
        }
        Ok(())
    }
}

/// The columns of a node's parents, those in its own layer first.
pub(super) fn parent_columns(columns: &ColumnProofs) -> impl Iterator<Item = &ColumnProof> {
    columns.drg_parents.iter().chain(&columns.exp_parents)
}

/// The labels that a label in `layer` (from 1) is hashed from: the parents' in its own layer, then, from layer 2 on,
/// the parents' in the previous one.
pub(crate) fn parent_labels(proof: &ChallengeProof, layer: usize) -> impl Iterator<Item = &Node> {
    let columns = &proof.replica_column_proofs;
    let own = columns.drg_parents.iter().map(move |c| &c.column.rows[layer - 1]);
    let previous = layer.checked_sub(2);
    own.chain(previous.into_iter().flat_map(|row| columns.exp_parents.iter().map(move |c| &c.column.rows[row])))
}

/// The roots of a sector's column tree and replica tree.
struct Trees {
    comm_c: Node,
    comm_r_last: Node,
}

impl Trees {
    fn check_column(&self, proof: &ColumnProof, node: usize, opened: &Opened) -> Result<(), Fault> {
        if proof.column.index as usize != node {
            return Err(Fault::new("column.index", format!("is {}, expected node {node}", proof.column.index)));
        }
        if opened.column.as_ref() != Some(proof.inclusion_proof.leaf()) {
            return Err(Fault::new(
                "column",
                format!("its hash is not the leaf {:?} of its path", proof.inclusion_proof.leaf()),
            ));
        }
        check_path("inclusion_proof", &proof.inclusion_proof, node, &self.comm_c, &opened.root)
    }
}

/// The root that a path of the data tree leads to.
fn data_root(proof: &MerkleProof) -> Node {
    proof.levels().fold(*proof.leaf(), |node, level| sha256(&level.insert(node, |sibling| *sibling)))
}

/// Checks that a path leads from its leaf at position `node` to `root`; it leads to `reached`.
fn check_path(part: &str, proof: &MerkleProof, node: usize, root: &Node, reached: &Node) -> Result<(), Fault> {
    let (mut position, mut weight) = (0, 1);
    for level in proof.levels() {
        position += weight * level.index;
        weight *= level.hashes.len() + 1;
    }
    if position != node {
        return Err(Fault::new(part, format!("the path is that of node {position}, expected node {node}")));
    }
    if reached != root || proof.root() != root {
        return Err(Fault::new(
            part,
            format!("the path leads to root {reached:?} (and claims {:?}), expected {root:?}", proof.root()),
        ));
    }
    Ok(())
}

/// What is wrong in the proof of one challenge.
struct Fault {
    part: String,
    what: String,
}

impl Fault {
    fn new(part: impl Into<String>, what: impl Into<String>) -> Self {
        Self { part: part.into(), what: what.into() }
    }

    fn within(mut self, outer: &str) -> Self {
        self.part = format!("{outer}.{}", self.part);
        self
    }
}
