//! The witness of a PoRep partition, computed without the circuit's gadgets: numbers are hashed as numbers, and what the
//! circuit would allocate is written in its order, straight into the compact form: a few milliseconds for a 2 KiB sector that
//! takes the gadgets 0.7 s.
//!
//! The circuit is storage-proofs-porep's `StackedCircuit`; [`Generator::partition`] is its outline:
//!
//! * [`path`], [`insert`]: paths in the data tree and in the column and replica trees;
//! * [`label`]: the labels of a node in all layers;
//! * [`sha256`], [`poseidon`]: the hashes, with the intermediate values that the circuit allocates;
//! * [`element`], [`field`]: field elements as bits, and their arithmetic;
//! * [`agreement`]: nothing here is used before it has agreed with the gadgets.

mod agreement;
mod element;
mod field;
mod insert;
mod label;
mod path;
mod poseidon;
mod sha256;
mod writer;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::{
    c1::{
        model::{ChallengeProof, ColumnProof, Node},
        shape::{DRG_PARENTS, EXP_PARENTS, Shape, element},
    },
    synthesis::Synthesis,
};
use element::{ELEMENT_BITS, element_bits};
use label::LabelHash;
use path::{DataTree, tree_path, tree_path_aux};
use poseidon::{POSEIDON_2, POSEIDON_11};
use writer::Writer;

pub(crate) use agreement::agreed;

/// What all partitions of a sector share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commitments {
    pub(crate) replica_id: Node,
    pub(crate) comm_d: Node,
    pub(crate) comm_r: Node,
}

/// Writes the witnesses of the circuit of one sector size.
pub(crate) struct Generator {
    shape: Shape,
    data_tree: DataTree,
    label_hash: LabelHash,
}

/// A part of a challenge that does not depend on the others' results.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// The data and its path.
    Data(&'a ChallengeProof),
    /// A parent's column and its path.
    Parent(&'a ColumnProof),
    /// The labels of the node itself, the path of its replica, and that of its column.
    Node(&'a ChallengeProof),
}

impl Generator {
    /// A generator for sectors of that shape. `None` if the circuit has hashes for it that are not built here.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let built =
            matches!(shape.layers, 2 | 11) && shape.oct_tree.iter().flatten().all(|arity| matches!(arity, 2 | 8));
        built.then(|| Self { data_tree: DataTree::new(), label_hash: LabelHash::new(shape.layers), shape })
    }

    /// The witness of a partition whose proofs passed the checks of its shape. Parallel on the current rayon pool, if that
    /// has more than one thread.
    pub(crate) fn partition(&self, commitments: &Commitments, challenges: &[ChallengeProof]) -> Synthesis {
        if rayon::current_num_threads() == 1 {
            return self.partition_alone(commitments, challenges);
        }
        let parts: Vec<Part<'_>> = challenges.iter().flat_map(parts).collect();
        let written = parts.par_iter().map(|&part| {
            let mut out = Writer::default();
            out.reserve(self.part_aux(part));
            self.part(&mut out, commitments, part);
            out
        });
        let written: Vec<Writer> = written.collect();
        let mut out = self.begin(commitments, challenges);
        for part in &written {
            out.append(part);
        }
        out.finish()
    }

    /// Likewise, on this thread alone.
    fn partition_alone(&self, commitments: &Commitments, challenges: &[ChallengeProof]) -> Synthesis {
        let mut out = self.begin(commitments, challenges);
        for part in challenges.iter().flat_map(parts) {
            self.part(&mut out, commitments, part);
        }
        out.finish()
    }

    /// A witness with what is common to all challenges, and room for theirs.
    fn begin(&self, commitments: &Commitments, challenges: &[ChallengeProof]) -> Writer {
        let mut out = Writer::default();
        out.reserve(self.num_aux(challenges.len()));
        let Commitments { replica_id, comm_d, comm_r } = commitments;
        out.input(Scalar::ONE);
        for (commitment, unpacked) in [(replica_id, true), (comm_d, false), (comm_r, false)] {
            out.num(element(commitment));
            out.input(element(commitment));
            out.equal(&element(commitment));
            if unpacked {
                element_bits(&mut out, commitment);
            }
        }
        let comm_r_last = element(challenges[0].comm_r_last_proof.root());
        let comm_c = element(challenges[0].replica_column_proofs.c_x.inclusion_proof.root());
        out.num(comm_r_last);
        out.num(comm_c);
        POSEIDON_2.hash(&mut out, &[comm_c, comm_r_last]);
        out.equal(&element(comm_r));
        out
    }

    fn part(&self, out: &mut Writer, commitments: &Commitments, part: Part<'_>) {
        match part {
            Part::Data(proof) => {
                out.num(element(proof.comm_d_proofs.leaf()));
                self.data_tree.path(out, &proof.comm_d_proofs);
            }
            Part::Parent(ColumnProof { column, inclusion_proof }) => {
                let rows: Vec<Scalar> = column.rows.iter().map(element).collect();
                for &row in &rows {
                    out.num(row);
                }
                let hash = column_hash(out, &rows);
                tree_path(out, hash, inclusion_proof);
            }
            Part::Node(proof) => {
                let node = proof.labeling_proofs[0].node;
                out.bits(node, 64);
                out.input(Scalar::from(node));
                out.equal(&Scalar::from(node));
                let labels = self.label_hash.labels(out, &commitments.replica_id, node, proof);
                let labels: Vec<Scalar> = labels.iter().map(element).collect();

                let encoded = labels[labels.len() - 1] + element(proof.comm_d_proofs.leaf());
                out.num(encoded);
                out.equal(&encoded);
                tree_path(out, encoded, &proof.comm_r_last_proof);

                let hash = column_hash(out, &labels);
                tree_path(out, hash, &proof.replica_column_proofs.c_x.inclusion_proof);
            }
        }
    }

    /// Auxiliary variables of a partition of so many challenges.
    pub(crate) fn num_aux(&self, challenges: usize) -> usize {
        let common = 5 + ELEMENT_BITS + POSEIDON_2.num_aux();
        let parents = DRG_PARENTS + EXP_PARENTS;
        common + challenges * (self.data_aux() + parents * self.parent_aux() + self.node_aux())
    }

    fn part_aux(&self, part: Part<'_>) -> usize {
        match part {
            Part::Data(_) => self.data_aux(),
            Part::Parent(_) => self.parent_aux(),
            Part::Node(_) => self.node_aux(),
        }
    }

    fn data_aux(&self) -> usize {
        1 + self.data_tree.path_aux(self.shape.log_nodes)
    }

    fn parent_aux(&self) -> usize {
        self.shape.layers + self.opening_aux()
    }

    fn node_aux(&self) -> usize {
        64 + self.label_hash.num_aux() + 1 + self.tree_path_aux() + self.opening_aux()
    }

    /// A column's hash and its path.
    fn opening_aux(&self) -> usize {
        column_hash_aux(self.shape.layers) + self.tree_path_aux()
    }

    fn tree_path_aux(&self) -> usize {
        tree_path_aux(self.shape.oct_tree.iter().flatten())
    }
}

/// The parts of a challenge in the circuit's order.
fn parts(proof: &ChallengeProof) -> impl Iterator<Item = Part<'_>> {
    let columns = &proof.replica_column_proofs;
    let parents = columns.drg_parents.iter().chain(&columns.exp_parents).map(Part::Parent);
    [Part::Data(proof)].into_iter().chain(parents).chain([Part::Node(proof)])
}

/// A column of 2 or 11 labels is one Poseidon hash.
fn column_hash(out: &mut Writer, rows: &[Scalar]) -> Scalar {
    match rows.len() {
        2 => POSEIDON_2.hash(out, rows),
        _ => POSEIDON_11.hash(out, rows),
    }
}

fn column_hash_aux(rows: usize) -> usize {
    match rows {
        2 => POSEIDON_2.num_aux(),
        _ => POSEIDON_11.num_aux(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        agreement::tests::{random_partition, small},
        *,
    };

    #[test]
    fn the_published_size_of_32_gib() {
        let shape =
            Shape { partitions: 10, challenges: 18, layers: 11, log_nodes: 30, oct_tree: Shape::oct_tree(30, 8, 8, 0) };
        let generator = Generator::new(shape).expect("built");
        assert_eq!(generator.num_aux(18), 130_169_893);
    }

    #[test]
    fn many_threads_write_what_one_writes() {
        for layers in [2, 11] {
            let shape = small(layers);
            let seed = rand::random();
            let (commitments, challenges) = random_partition(&shape, seed);
            let generator = Generator::new(shape).expect("built");
            let alone = generator.partition_alone(&commitments, &challenges);
            assert_eq!(alone.witness.num_aux(), generator.num_aux(challenges.len()));
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
                let parallel = pool.install(|| generator.partition(&commitments, &challenges));
                assert!(parallel == alone, "{layers} layers, {threads} threads, seed {seed}");
            }
        }
    }
}
