//! Whether the native witness is that of the circuit: decided by comparing, not by trusting version numbers.
//!
//! The circuit is a common part and then the same for every challenge, and nothing in its order of allocation depends on a
//! value. So one challenge tells: before a process uses a generator, a challenge of random values (which proves nothing, but
//! is synthesized like any other) is synthesized by the gadgets as well, and every value compared. (Real values would tell
//! less: of a sector without data all leaves are equal, and so are then all picks among them.) That takes 0.4 s for 2 KiB
//! and 1.6 s for 32 GiB. If they differ, because an upgrade of the upstream crates changed the circuit, all witnesses
//! of that circuit are made by the gadgets, at their speed.

use std::{array, iter::repeat_with, sync::OnceLock};

use bellpepper_core::SynthesisError;
use blstrs::Scalar;
use ff::{Field, PrimeField};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{Commitments, Generator};
use crate::{
    c1::{
        model::{
            ChallengeProof, Column, ColumnProof, ColumnProofs, LabelingProof, Level, MerkleProof, Node, Path, ProofData,
        },
        shape::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS, Shape},
    },
    circuit::{CircuitId, SectorSize},
    witness::CompactWitness,
};

/// The generator of a circuit, if it agrees with the gadgets. It is made and compared on the first call for the circuit,
/// while others wait; `gadgets`, which synthesizes a circuit of one challenge, must not wait for other threads.
pub(crate) fn agreed(
    size: SectorSize,
    shape: &Shape,
    gadgets: impl FnOnce(&Commitments, &ChallengeProof) -> Result<CompactWitness, SynthesisError>,
) -> Option<&'static Generator> {
    static GENERATORS: [OnceLock<Option<Generator>>; SectorSize::ALL.len()] =
        [const { OnceLock::new() }; SectorSize::ALL.len()];
    let make = || {
        compare(shape, gadgets)
            .inspect_err(|fault| {
                let circuit = CircuitId::porep(size);
                tracing::warn!(%circuit, %fault, "witnesses are made by the circuit's gadgets, slowly");
            })
            .ok()
    };
    GENERATORS[size as usize].get_or_init(make).as_ref()
}

/// Why there is no native witness.
#[derive(Debug, PartialEq, thiserror::Error)]
enum Fault {
    #[error("the circuit has hashes that the native witness has not")]
    NotBuilt,
    #[error("the circuit cannot be synthesized to compare the native witness with it: {0}")]
    Gadgets(String),
    #[error("the native witness is not the circuit's: {native} variables, not {circuit}, or other values")]
    Differs { native: usize, circuit: usize },
}

fn compare(
    shape: &Shape,
    gadgets: impl FnOnce(&Commitments, &ChallengeProof) -> Result<CompactWitness, SynthesisError>,
) -> Result<Generator, Fault> {
    let generator = Generator::new(shape.clone()).ok_or(Fault::NotBuilt)?;
    let mut random = Random(StdRng::seed_from_u64(0));
    let commitments = Commitments { replica_id: random.node(), comm_d: random.node(), comm_r: random.node() };
    let challenge = random.challenge(shape);
    let circuit = gadgets(&commitments, &challenge).map_err(|e| Fault::Gadgets(e.to_string()))?;
    let native = generator.partition_alone(&commitments, std::slice::from_ref(&challenge));
    if native == circuit {
        Ok(generator)
    } else {
        Err(Fault::Differs { native: native.num_aux(), circuit: circuit.num_aux() })
    }
}

/// Random values in the form of proofs.
struct Random(StdRng);

impl Random {
    fn node(&mut self) -> Node {
        Node(Scalar::random(&mut self.0).to_repr())
    }

    fn nodes(&mut self, count: usize) -> Vec<Node> {
        repeat_with(|| self.node()).take(count).collect()
    }

    fn challenge(&mut self, shape: &Shape) -> ChallengeProof {
        let node = self.0.r#gen();
        ChallengeProof {
            comm_d_proofs: self.path(&[vec![2; shape.log_nodes], vec![], vec![]]),
            comm_r_last_proof: self.path(&shape.oct_tree),
            replica_column_proofs: ColumnProofs {
                c_x: self.column(shape),
                drg_parents: repeat_with(|| self.column(shape)).take(DRG_PARENTS).collect(),
                exp_parents: repeat_with(|| self.column(shape)).take(EXP_PARENTS).collect(),
            },
            labeling_proofs: (1..=shape.layers).map(|layer| self.label(layer, node)).collect(),
            encoding_proof: self.label(shape.layers, node),
        }
    }

    fn column(&mut self, shape: &Shape) -> ColumnProof {
        let column = Column { index: self.0.r#gen(), rows: self.nodes(shape.layers) };
        ColumnProof { column, inclusion_proof: self.path(&shape.oct_tree) }
    }

    fn label(&mut self, layer: usize, node: u64) -> LabelingProof {
        LabelingProof { parents: self.nodes(LABEL_PARENTS), layer_index: layer as u32, node }
    }

    fn path(&mut self, trees: &[Vec<usize>; 3]) -> MerkleProof {
        let [path, sub_proof, top_proof] = array::from_fn(|i| Path {
            path: trees[i]
                .iter()
                .map(|&arity| Level { hashes: self.nodes(arity - 1), index: self.0.gen_range(0..arity) })
                .collect(),
        });
        let (root, leaf) = (self.node(), self.node());
        let data = match trees {
            [_, sub, _] if sub.is_empty() => ProofData::Single { root, leaf, path },
            [_, _, top] if top.is_empty() => ProofData::Sub { base_proof: path, sub_proof, root, leaf },
            _ => ProofData::Top { base_proof: path, sub_proof, top_proof, root, leaf },
        };
        MerkleProof { data }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A small sector.
    pub(in crate::native) fn small(layers: usize) -> Shape {
        let oct_tree = [vec![8], vec![8], vec![2]];
        Shape { partitions: 1, challenges: 3, layers, log_nodes: 7, oct_tree }
    }

    pub(in crate::native) fn random_partition(shape: &Shape, seed: u64) -> (Commitments, Vec<ChallengeProof>) {
        let mut random = Random(StdRng::seed_from_u64(seed));
        let commitments = Commitments { replica_id: random.node(), comm_d: random.node(), comm_r: random.node() };
        (commitments, repeat_with(|| random.challenge(shape)).take(shape.challenges).collect())
    }

    #[test]
    fn only_a_generator_that_agrees_is_used() {
        let native = |commitments: &Commitments, challenge: &ChallengeProof| {
            let generator = Generator::new(small(2)).expect("built");
            generator.partition_alone(commitments, std::slice::from_ref(challenge))
        };
        assert!(compare(&small(2), |c, challenge| Ok(native(c, challenge))).is_ok());

        let changed = |c: &Commitments, challenge: &ChallengeProof| {
            let witness = native(c, challenge);
            let mut aux = witness.to_plain();
            // One bit, somewhere in the middle of a SHA-256.
            aux[20_000] = Scalar::ONE - aux[20_000];
            Ok(CompactWitness::from_plain(witness.inputs().to_vec(), aux))
        };
        assert!(matches!(compare(&small(2), changed), Err(Fault::Differs { .. })));
        let failing = |_: &Commitments, _: &ChallengeProof| Err(SynthesisError::AssignmentMissing);
        assert!(matches!(compare(&small(2), failing), Err(Fault::Gadgets(_))));
        assert!(matches!(compare(&small(3), failing), Err(Fault::NotBuilt)));
    }
}
