//! Vanilla proofs in the upstream circuit's types, for synthesis by its gadgets.

use filecoin_hashers::{Hasher, PoseidonArity};
use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher};
use storage_proofs_core::merkle::{self, MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_porep::stacked::{self, EncodingProof, LabelingProof, ReplicaColumnProof};

use crate::c1::model::{ChallengeProof, ColumnProof, MerkleProof, Node};

/// The proof of one challenge. Its shape must have been checked.
pub(super) fn vanilla_proof<Tree>(proof: &ChallengeProof) -> stacked::Proof<Tree, DefaultPieceHasher>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher>,
{
    let columns = &proof.replica_column_proofs;
    let labels = &proof.labeling_proofs;
    let encoding = &proof.encoding_proof;
    stacked::Proof {
        comm_d_proofs: merkle_proof(&proof.comm_d_proofs),
        comm_r_last_proof: merkle_proof(&proof.comm_r_last_proof),
        replica_column_proofs: ReplicaColumnProof {
            c_x: column_proof(&columns.c_x),
            drg_parents: columns.drg_parents.iter().map(column_proof).collect(),
            exp_parents: columns.exp_parents.iter().map(column_proof).collect(),
        },
        labeling_proofs: labels
            .iter()
            .map(|label| LabelingProof::new(label.layer_index, label.node, nodes(&label.parents)))
            .collect(),
        encoding_proof: EncodingProof::new(encoding.layer_index, encoding.node, nodes(&encoding.parents)),
    }
}

fn column_proof<H, Base, Sub, Top>(proof: &ColumnProof) -> stacked::ColumnProof<merkle::MerkleProof<H, Base, Sub, Top>>
where
    H: Hasher,
    Base: PoseidonArity + 'static,
    Sub: PoseidonArity + 'static,
    Top: PoseidonArity + 'static,
    merkle::MerkleProof<H, Base, Sub, Top>: MerkleProofTrait<Hasher = H>,
{
    stacked::ColumnProof::new(proof.column.index, nodes(&proof.column.rows), merkle_proof(&proof.inclusion_proof))
}

fn merkle_proof<H, Base, Sub, Top>(proof: &MerkleProof) -> merkle::MerkleProof<H, Base, Sub, Top>
where
    H: Hasher,
    Base: PoseidonArity,
    Sub: PoseidonArity,
    Top: PoseidonArity,
{
    let path = proof.levels().map(|level| (nodes(&level.hashes), level.index)).collect();
    merkle::MerkleProof::from_parts(proof.leaf().0.into(), proof.root().0.into(), path)
}

fn nodes<Domain: From<[u8; 32]>>(nodes: &[Node]) -> Vec<Domain> {
    nodes.iter().map(|node| node.0.into()).collect()
}

#[cfg(test)]
mod tests {
    use filecoin_proofs::constants::{SectorShape2KiB, SectorShape64GiB};
    use serde::Serialize;

    use super::*;
    use crate::{
        circuit::SectorSize,
        phantom::PhantomSector,
        registered::{SealProof, Variant},
    };

    /// Both write the same JSON.
    fn converted<Tree>(size: SectorSize)
    where
        Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher>,
        stacked::Proof<Tree, DefaultPieceHasher>: Serialize,
    {
        let seal = SealProof::new(size, Variant::V1_1);
        let sector = PhantomSector { seal, miner_id: 1000, sector_number: 1, seed: "conversion" };
        let c1 = sector.c1_output().expect("it can be made");
        let proof = &c1.vanilla_proofs.parts().1[0][1];
        let text = |text: serde_json::Result<String>| text.expect("it can be written");
        assert_eq!(
            text(serde_json::to_string(&vanilla_proof::<Tree>(proof))),
            text(serde_json::to_string(proof)),
            "{size:?}"
        );
    }

    #[test]
    fn the_least_and_the_most_composed_trees() {
        converted::<SectorShape2KiB>(SectorSize::Kib2);
        converted::<SectorShape64GiB>(SectorSize::Gib64);
    }
}
