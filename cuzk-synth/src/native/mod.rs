//! The witness of a PoRep partition, computed without the circuit's gadgets: numbers are hashed as numbers, and what the
//! circuit would allocate is written in its order, straight into the compact form: a few milliseconds for a 2 KiB sector that
//! takes the gadgets 0.7 s. With it come the factors of all constraints, A·w and B·w.
//!
//! The circuit is storage-proofs-porep's `StackedCircuit`; [`Generator::partition`] is its outline:
//!
//! * [`path`], [`opening`], [`insert`]: paths in the data tree, and in the column and replica trees;
//! * [`label`]: the labels of a node in all layers;
//! * [`sha256`], [`poseidon`]: the hashes, with the intermediate values that the circuit allocates;
//! * [`element`]: field elements as bits;
//! * [`writer`]: what is written;
//! * [`agreement`]: nothing here is used before it has agreed with the gadgets.

mod agreement;
mod element;
mod insert;
mod label;
mod opening;
mod path;
mod poseidon;
mod sha256;
mod writer;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::{
    c1::{
        hash::{create_label, in_turn},
        model::{ChallengeProof, ColumnProof, Node},
        shape::{DRG_PARENTS, EXP_PARENTS, Shape, element},
        vanilla::parent_labels,
    },
    poseidon::{LANES, POSEIDON_2},
    synthesis::Synthesis,
};
use element::{ELEMENT_BITS, element_bits};
use label::LabelHash;
use opening::{Hashes, Leaf, Opening};
use path::DataTree;
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

/// A part of a challenge that can be written once the hashes of the openings are computed.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// The data and its path.
    Data(&'a ChallengeProof),
    /// A parent's column.
    Parent(&'a Opening<'a>, &'a Hashes),
    /// The labels of the node.
    Labels(&'a ChallengeProof),
    /// The replica's node.
    Replica(&'a Opening<'a>, &'a Hashes),
    /// The column of the node itself, whose labels are variables already.
    Column(&'a Opening<'a>, &'a Hashes),
}

impl Generator {
    /// A generator for sectors of that shape. `None` if the circuit has hashes for it that are not built here.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let built =
            matches!(shape.layers, 2 | 11) && shape.oct_tree.iter().flatten().all(|arity| matches!(arity, 2 | 8));
        built.then(|| Self { data_tree: DataTree::new(), label_hash: LabelHash::new(shape.layers), shape })
    }

    /// The synthesis of a partition whose proofs passed the checks of its shape. Parallel on the current rayon pool, if that
    /// has more than one thread.
    pub(crate) fn partition(&self, commitments: &Commitments, challenges: &[ChallengeProof]) -> Synthesis {
        let threads = rayon::current_num_threads();
        if threads == 1 {
            return self.partition_alone(commitments, challenges);
        }
        let mut out = self.begin(commitments, challenges);
        // As many at once as there is work for: what is written before its turn takes memory twice.
        for challenges in challenges.chunks(threads) {
            let openings: Vec<_> = challenges.iter().flat_map(|proof| self.openings(commitments, proof)).collect();
            let hashes: Vec<Hashes> = openings.par_chunks(LANES).flat_map_iter(opening::compute).collect();
            let opened = openings.iter().zip(&hashes).collect::<Vec<_>>();
            let parts: Vec<Part<'_>> = challenges
                .iter()
                .zip(opened.chunks(OPENINGS))
                .flat_map(|(proof, opened)| parts(proof, opened))
                .collect();
            let written: Vec<Writer> = parts
                .par_iter()
                .map(|&part| {
                    let mut out = Writer::default();
                    out.reserve(self.part_aux(part));
                    self.part(&mut out, commitments, part);
                    out
                })
                .collect();
            for part in &written {
                out.append(part);
            }
        }
        out.finish()
    }

    /// Likewise, on this thread alone.
    fn partition_alone(&self, commitments: &Commitments, challenges: &[ChallengeProof]) -> Synthesis {
        let mut out = self.begin(commitments, challenges);
        for proof in challenges {
            let openings = self.openings(commitments, proof);
            let hashes: Vec<Hashes> = openings.chunks(LANES).flat_map(opening::compute).collect();
            let opened: Vec<_> = openings.iter().zip(&hashes).collect();
            for part in parts(proof, &opened) {
                self.part(&mut out, commitments, part);
            }
        }
        out.finish()
    }

    /// The openings of a challenge: of its parents' columns, of its replica, of its column.
    fn openings<'a>(&self, commitments: &Commitments, proof: &'a ChallengeProof) -> Vec<Opening<'a>> {
        let columns = &proof.replica_column_proofs;
        let node = proof.labeling_proofs[0].node;
        let label = |layer| {
            let parents = in_turn(parent_labels(proof, layer));
            element(&create_label(&commitments.replica_id, layer as u32, node, &parents))
        };
        let labels: Vec<Scalar> = (1..=self.shape.layers).map(label).collect();
        let encoded = labels[labels.len() - 1] + element(proof.comm_d_proofs.leaf());
        let parent = |proof: &'a ColumnProof| Opening {
            leaf: Leaf::Column(proof.column.rows.iter().map(element).collect()),
            path: &proof.inclusion_proof,
        };
        let parents = columns.drg_parents.iter().chain(&columns.exp_parents).map(parent);
        parents
            .chain([
                Opening { leaf: Leaf::Node(encoded), path: &proof.comm_r_last_proof },
                Opening { leaf: Leaf::Column(labels), path: &columns.c_x.inclusion_proof },
            ])
            .collect()
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
        let mut hash = Hashes::new();
        POSEIDON_2.hash(&[comm_c, comm_r_last], |variable| hash.push(variable));
        POSEIDON_2.write(&mut out, &[comm_c, comm_r_last], &mut &hash[..]);
        out.equal(&element(comm_r));
        out
    }

    fn part(&self, out: &mut Writer, commitments: &Commitments, part: Part<'_>) {
        match part {
            Part::Data(proof) => {
                out.num(element(proof.comm_d_proofs.leaf()));
                self.data_tree.path(out, &proof.comm_d_proofs);
            }
            Part::Parent(opening, hashes) => {
                if let Leaf::Column(rows) = &opening.leaf {
                    out.nums(rows);
                }
                opening::write(out, opening, hashes);
            }
            Part::Labels(proof) => {
                let node = proof.labeling_proofs[0].node;
                out.bits(node, 64);
                out.input(Scalar::from(node));
                out.equal(&Scalar::from(node));
                self.label_hash.labels(out, &commitments.replica_id, node, proof);
            }
            Part::Replica(opening, hashes) => {
                if let Leaf::Node(encoded) = opening.leaf {
                    out.num(encoded);
                    // That it is label and data.
                    out.equal(&encoded);
                }
                opening::write(out, opening, hashes);
            }
            Part::Column(opening, hashes) => opening::write(out, opening, hashes),
        }
    }

    /// Auxiliary variables of a partition of so many challenges.
    pub(crate) fn num_aux(&self, challenges: usize) -> usize {
        let common = 5 + ELEMENT_BITS + POSEIDON_2.num_aux();
        let parents = DRG_PARENTS + EXP_PARENTS;
        let parts =
            self.data_aux() + parents * self.parent_aux() + self.labels_aux() + self.replica_aux() + self.column_aux();
        common + challenges * parts
    }

    fn part_aux(&self, part: Part<'_>) -> usize {
        match part {
            Part::Data(_) => self.data_aux(),
            Part::Parent(..) => self.parent_aux(),
            Part::Labels(_) => self.labels_aux(),
            Part::Replica(..) => self.replica_aux(),
            Part::Column(..) => self.column_aux(),
        }
    }

    fn data_aux(&self) -> usize {
        1 + self.data_tree.path_aux(self.shape.log_nodes)
    }

    fn parent_aux(&self) -> usize {
        self.shape.layers + self.column_aux()
    }

    fn labels_aux(&self) -> usize {
        64 + self.label_hash.num_aux()
    }

    fn replica_aux(&self) -> usize {
        1 + opening::path_aux(&self.shape)
    }

    fn column_aux(&self) -> usize {
        opening::column_aux(self.shape.layers) + opening::path_aux(&self.shape)
    }
}

/// Openings of a challenge.
const OPENINGS: usize = DRG_PARENTS + EXP_PARENTS + 2;

/// The parts of a challenge in the circuit's order.
fn parts<'a>(
    proof: &'a ChallengeProof,
    opened: &[(&'a Opening<'a>, &'a Hashes)],
) -> impl Iterator<Item = Part<'a>> + use<'a> {
    let mut opened: Vec<_> = opened.to_vec();
    let last = opened.split_off(DRG_PARENTS + EXP_PARENTS);
    let parents = opened.into_iter().map(|(opening, hashes)| Part::Parent(opening, hashes));
    let [replica, column] = [0, 1].map(|i| last[i]);
    let node = [Part::Labels(proof), Part::Replica(replica.0, replica.1), Part::Column(column.0, column.1)];
    [Part::Data(proof)].into_iter().chain(parents).chain(node)
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
