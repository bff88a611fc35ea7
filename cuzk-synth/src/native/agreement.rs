//! Whether the native synthesis is that of the circuit: decided by comparing, not by trusting version numbers.
//!
//! The circuit is a common part and then the same for every challenge, and nothing in the order of its variables and
//! constraints depends on a value. So one challenge tells: before a process uses a generator, a challenge of random values
//! (which proves nothing, but is synthesized like any other) is synthesized by the gadgets as well, and every value compared. (Real values would tell
//! less: of a sector without data all leaves are equal, and so are then all picks among them.) That takes 0.4 s for 2 KiB
//! and 1.6 s for 32 GiB. If they differ, because an upgrade of the upstream crates changed the circuit, all witnesses
//! of that circuit are made by the gadgets, at their speed.

use std::{array, iter::repeat_with, sync::OnceLock};

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
    compare::Difference,
    synthesis::Synthesis,
};

/// The generator of a circuit, if it agrees with the gadgets. It is made and compared on the first call for the circuit,
/// while others wait; `compare`, with a circuit of one challenge, must not wait for other threads.
pub(crate) fn agreed(
    size: SectorSize,
    shape: &Shape,
    compare: impl FnOnce(&Commitments, &ChallengeProof, Synthesis) -> Result<(), Difference>,
) -> Option<&'static Generator> {
    static GENERATORS: [OnceLock<Option<Generator>>; SectorSize::ALL.len()] =
        [const { OnceLock::new() }; SectorSize::ALL.len()];
    let make = || {
        check(shape, compare)
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
    #[error("the native witness is not the circuit's: {0}")]
    Differs(#[from] Difference),
}

fn check(
    shape: &Shape,
    compare: impl FnOnce(&Commitments, &ChallengeProof, Synthesis) -> Result<(), Difference>,
) -> Result<Generator, Fault> {
    let generator = Generator::new(shape.clone()).ok_or(Fault::NotBuilt)?;
    let mut random = Random(StdRng::seed_from_u64(0));
    let commitments = Commitments { replica_id: random.node(), comm_d: random.node(), comm_r: random.node() };
    let challenge = random.challenge(shape);
    let native = generator.partition_alone(&commitments, std::slice::from_ref(&challenge));
    compare(&commitments, &challenge, native)?;
    Ok(generator)
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
        let whole = |_: &Commitments, _: &ChallengeProof, native: Synthesis| {
            let aux = native.witness.num_aux();
            let expected = Generator::new(small(2)).expect("built").num_aux(1);
            if aux == expected { Ok(()) } else { Err(Difference::Aux(aux)) }
        };
        assert!(check(&small(2), whole).is_ok());
        let differs = check(&small(2), |_, _, _| Err(Difference::B(17))).err();
        assert_eq!(differs, Some(Fault::Differs(Difference::B(17))));
        let not_built = check(&small(3), |_, _, _| Ok(())).err();
        assert_eq!(not_built, Some(Fault::NotBuilt));
    }
}
