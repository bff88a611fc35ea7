//! The circuit of the upstream crates, with the values of vanilla proofs in our types.

use bellperson::SynthesisError;
use filecoin_hashers::{Hasher, PoseidonArity, poseidon::PoseidonDomain};
use filecoin_proofs::{DefaultPieceDomain, DefaultPieceHasher, DefaultTreeHasher};
use storage_proofs_core::{
    compound_proof::CompoundProof,
    merkle::{MerkleProof, MerkleTreeTrait},
};
use storage_proofs_porep::stacked::{
    self, ColumnProof, EncodingProof, LabelingProof, ReplicaColumnProof, StackedCircuit, StackedCompound,
};

use crate::{
    c1::model::{self, ChallengeProof, Node},
    native::Commitments,
};

pub(super) type Compound<Tree> = StackedCompound<Tree, DefaultPieceHasher>;
pub(super) type PublicInputs = stacked::PublicInputs<PoseidonDomain, DefaultPieceDomain>;
type TreeProof<Tree> = MerkleProof<
    DefaultTreeHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;

/// The public inputs in the upstream types. The seed decides the challenges; a circuit does not need it.
pub(super) fn public_inputs(commitments: &Commitments, seed: Option<Node>) -> PublicInputs {
    PublicInputs {
        replica_id: commitments.replica_id.0.into(),
        tau: Some(stacked::Tau { comm_d: commitments.comm_d.0.into(), comm_r: commitments.comm_r.0.into() }),
        k: None,
        seed: seed.map(|seed| seed.0),
    }
}

/// The circuit with these challenges, of which there must be one at least.
pub(super) fn circuit<Tree>(
    public: &PublicInputs,
    params: &stacked::PublicParams<Tree>,
    challenges: &[ChallengeProof],
) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, SynthesisError>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    let proofs = challenges.iter().map(challenge).collect();
    // It fails without challenges or if their roots differ only, which the checks let not pass.
    Compound::circuit(public, (), &proofs, params, None).map_err(|_| SynthesisError::AssignmentMissing)
}

fn challenge<Tree>(proof: &ChallengeProof) -> stacked::Proof<Tree, DefaultPieceHasher>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    let columns = &proof.replica_column_proofs;
    let encoding = &proof.encoding_proof;
    stacked::Proof {
        comm_d_proofs: path(&proof.comm_d_proofs),
        comm_r_last_proof: path(&proof.comm_r_last_proof),
        replica_column_proofs: ReplicaColumnProof {
            c_x: column::<Tree>(&columns.c_x),
            drg_parents: columns.drg_parents.iter().map(column::<Tree>).collect(),
            exp_parents: columns.exp_parents.iter().map(column::<Tree>).collect(),
        },
        labeling_proofs: proof
            .labeling_proofs
            .iter()
            .map(|label| LabelingProof::new(label.layer_index, label.node, domains(&label.parents)))
            .collect(),
        encoding_proof: EncodingProof::new(encoding.layer_index, encoding.node, domains(&encoding.parents)),
    }
}

fn column<Tree>(proof: &model::ColumnProof) -> ColumnProof<TreeProof<Tree>>
where
    Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
{
    ColumnProof::new(proof.column.index, domains(&proof.column.rows), path(&proof.inclusion_proof))
}

fn path<H, Base, Sub, Top>(proof: &model::MerkleProof) -> MerkleProof<H, Base, Sub, Top>
where
    H: Hasher + 'static,
    Base: PoseidonArity,
    Sub: PoseidonArity,
    Top: PoseidonArity,
{
    let levels = proof.levels().map(|level| (domains(&level.hashes), level.index)).collect();
    MerkleProof::from_parts(proof.leaf().0.into(), proof.root().0.into(), levels)
}

fn domains<D: From<[u8; 32]>>(nodes: &[Node]) -> Vec<D> {
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
        Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static,
        stacked::Proof<Tree, DefaultPieceHasher>: Serialize,
    {
        let seal = SealProof::new(size, Variant::V1_1);
        let sector = PhantomSector { seal, miner_id: 1000, sector_number: 1, seed: "conversion" };
        let c1 = sector.c1_output().expect("interactive challenges are known beforehand");
        let proof = &c1.vanilla_proofs.parts().1[0][1];
        let text = |text: serde_json::Result<String>| text.expect("it can be written");
        assert_eq!(
            text(serde_json::to_string(&challenge::<Tree>(proof))),
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
