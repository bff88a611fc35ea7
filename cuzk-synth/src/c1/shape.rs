//! How many of everything the C1 output of a sector size must have. After this check every index is in range and
//! every node that enters the circuit is a field element, so nothing downstream can panic on it.

use blstrs::Scalar;
use ff::PrimeField;

use super::model::{ChallengeProof, ColumnProof, MerkleProof, Node, ProofData};
use crate::error::InputError;

/// Parents of a node in its own layer.
pub const DRG_PARENTS: usize = 6;
/// Parents of a node in the previous layer.
pub const EXP_PARENTS: usize = 8;
/// Labels that are hashed into one, the parents repeated in turn.
pub const LABEL_PARENTS: usize = 37;

/// The numbers that a sector size fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Partitions of a sector.
    pub partitions: usize,
    /// Challenges of a partition.
    pub challenges: usize,
    /// Layers of labels.
    pub layers: usize,
    /// log2 of the number of nodes: the height of the data tree.
    pub log_nodes: usize,
    /// Arities of the levels of the replica and column trees, in base tree, sub-tree and top tree.
    pub oct_tree: [Vec<usize>; 3],
}

impl Shape {
    /// The shape of a tree with the given arities (0: no such level) over 2^`log_nodes` nodes.
    pub fn oct_tree(log_nodes: usize, base: usize, sub: usize, top: usize) -> [Vec<usize>; 3] {
        let log = |arity: usize| arity.max(1).trailing_zeros() as usize;
        let level = |arity| if arity == 0 { vec![] } else { vec![arity] };
        let base_levels = (log_nodes - log(sub) - log(top)) / log(base);
        [vec![base; base_levels], level(sub), level(top)]
    }

    /// Checks all partitions.
    pub fn check(&self, key: &str, partitions: &[Vec<ChallengeProof>]) -> Result<(), InputError> {
        let at = At::root(format!("vanilla_proofs.{key}"));
        at.count("partitions", partitions.len(), self.partitions)?;
        for (k, partition) in partitions.iter().enumerate() {
            let at = at.index(k);
            at.count("challenges", partition.len(), self.challenges)?;
            for (i, challenge) in partition.iter().enumerate() {
                self.check_challenge(&at.index(i), challenge)?;
            }
        }
        Ok(())
    }

    fn check_challenge(&self, at: &At<'_>, proof: &ChallengeProof) -> Result<(), InputError> {
        let binary = [vec![2; self.log_nodes], vec![], vec![]];
        check_path(&at.field("comm_d_proofs"), &proof.comm_d_proofs, &binary)?;
        check_path(&at.field("comm_r_last_proof"), &proof.comm_r_last_proof, &self.oct_tree)?;

        let columns = &proof.replica_column_proofs;
        let columns_at = at.field("replica_column_proofs");
        self.check_column(&columns_at.field("c_x"), &columns.c_x)?;
        for (name, list, expected) in
            [("drg_parents", &columns.drg_parents, DRG_PARENTS), ("exp_parents", &columns.exp_parents, EXP_PARENTS)]
        {
            let at = columns_at.field(name);
            at.count("parents", list.len(), expected)?;
            for (i, column) in list.iter().enumerate() {
                self.check_column(&at.index(i), column)?;
            }
        }

        let labels_at = at.field("labeling_proofs");
        labels_at.count("layers", proof.labeling_proofs.len(), self.layers)?;
        let labels = proof.labeling_proofs.iter().enumerate();
        for (at, label) in labels
            .map(|(i, label)| (labels_at.index(i), label))
            .chain([(at.field("encoding_proof"), &proof.encoding_proof)])
        {
            at.count("parents", label.parents.len(), LABEL_PARENTS)?;
            for (i, parent) in label.parents.iter().enumerate() {
                check_element(&at.field("parents").index(i), parent)?;
            }
        }
        Ok(())
    }

    fn check_column(&self, at: &At<'_>, proof: &ColumnProof) -> Result<(), InputError> {
        let rows_at = at.field("column.rows");
        rows_at.count("layers", proof.column.rows.len(), self.layers)?;
        for (i, row) in proof.column.rows.iter().enumerate() {
            check_element(&rows_at.index(i), row)?;
        }
        check_path(&at.field("inclusion_proof"), &proof.inclusion_proof, &self.oct_tree)
    }
}

fn check_path(at: &At<'_>, proof: &MerkleProof, tree: &[Vec<usize>; 3]) -> Result<(), InputError> {
    let depth = match proof.data {
        ProofData::Single { .. } => 1,
        ProofData::Sub { .. } => 2,
        ProofData::Top { .. } => 3,
    };
    let expected_depth = tree.iter().filter(|levels| !levels.is_empty()).count();
    at.count("trees joined", depth, expected_depth)?;
    check_element(&at.field("root"), proof.root())?;
    check_element(&at.field("leaf"), proof.leaf())?;
    let arities: Vec<usize> = tree.concat();
    at.count("levels", proof.levels().count(), arities.len())?;
    for (i, (level, arity)) in proof.levels().zip(arities).enumerate() {
        let path_at = at.field("path");
        let at = path_at.index(i);
        at.count("siblings", level.hashes.len(), arity - 1)?;
        if level.index >= arity {
            return Err(at.error(format!("index {} in a level of {arity}", level.index)));
        }
        let hashes_at = at.field("hashes");
        for (j, hash) in level.hashes.iter().enumerate() {
            check_element(&hashes_at.index(j), hash)?;
        }
    }
    Ok(())
}

/// Whether the 32 bytes are the canonical form of a scalar.
pub fn is_field_element(node: &Node) -> bool {
    Scalar::from_repr_vartime(node.0).is_some()
}

/// A node that the shape check has let pass, as a scalar.
pub(crate) fn element(node: &Node) -> Scalar {
    Scalar::from_repr_vartime(node.0).expect("the shape check let only field elements pass")
}

fn check_element(at: &At<'_>, node: &Node) -> Result<(), InputError> {
    if is_field_element(node) {
        Ok(())
    } else {
        Err(at.error(format!("{node:?} (little-endian) is not below the field modulus")))
    }
}

/// A place in the input, written out only when there is something to say of it.
enum At<'a> {
    Root(String),
    Field(&'a At<'a>, &'static str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    fn root(text: String) -> At<'static> {
        At::Root(text)
    }

    fn field(&self, name: &'static str) -> At<'_> {
        At::Field(self, name)
    }

    fn index(&self, i: usize) -> At<'_> {
        At::Index(self, i)
    }

    fn error(&self, reason: impl Into<String>) -> InputError {
        InputError::invalid(self.text(), reason)
    }

    fn count(&self, what: &str, found: usize, expected: usize) -> Result<(), InputError> {
        if found == expected { Ok(()) } else { Err(self.error(format!("{found} {what}, expected {expected}"))) }
    }

    fn text(&self) -> String {
        match self {
            At::Root(text) => text.clone(),
            At::Field(parent, name) => format!("{}.{name}", parent.text()),
            At::Index(parent, i) => format!("{}[{i}]", parent.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_the_published_shapes() {
        let levels = |log_nodes, base, sub, top| {
            let [base, sub, top] = Shape::oct_tree(log_nodes, base, sub, top);
            (base.len(), sub, top)
        };
        assert_eq!(levels(6, 8, 0, 0), (2, vec![], vec![])); // 2 KiB
        assert_eq!(levels(18, 8, 0, 0), (6, vec![], vec![])); // 8 MiB
        assert_eq!(levels(24, 8, 0, 0), (8, vec![], vec![])); // 512 MiB
        assert_eq!(levels(30, 8, 8, 0), (9, vec![8], vec![])); // 32 GiB
        assert_eq!(levels(31, 8, 8, 2), (9, vec![8], vec![2])); // 64 GiB
    }

    #[test]
    fn the_modulus_is_no_field_element() {
        let modulus = {
            // r - 1, then one more (its last byte is 0x00, so no carry).
            let mut bytes = (-Scalar::from(1)).to_repr();
            bytes[0] += 1;
            bytes
        };
        assert!(!is_field_element(&Node(modulus)));
        assert!(is_field_element(&Node((-Scalar::from(1)).to_repr())));
        assert!(is_field_element(&Node([0; 32])));
        assert!(!is_field_element(&Node([0xff; 32])));
    }
}
