//! The C1 output as the upstream library writes it (`filecoin_proofs_api::seal::SealCommitPhase1Output`), in types of
//! our own: the upstream ones keep the fields that matter private and turn a value out of range into a panic. What is
//! written is what upstream would write, byte for byte.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor},
    ser::SerializeStruct,
};

use super::envelope::json_reason;
use crate::{circuit::SectorSize, error::InputError};

/// A C1 output.
#[derive(Debug, Deserialize, Serialize)]
pub struct C1Output {
    /// The registered seal proof by name.
    pub registered_proof: String,
    /// Under the name of the sector size, challenges of all partitions.
    pub vanilla_proofs: VanillaProofs,
    /// Replica commitment.
    pub comm_r: Node,
    /// Data commitment.
    pub comm_d: Node,
    /// Replica id.
    pub replica_id: Node,
    /// Interactive randomness of the challenges.
    pub seed: Node,
    /// Randomness of the replica id.
    pub ticket: Node,
}

/// The vanilla proofs, one list a partition, keyed by sector size.
#[derive(Debug, Deserialize, Serialize)]
#[allow(missing_docs)]
pub enum VanillaProofs {
    StackedDrg2KiBV1(Vec<Vec<ChallengeProof>>),
    StackedDrg8MiBV1(Vec<Vec<ChallengeProof>>),
    StackedDrg512MiBV1(Vec<Vec<ChallengeProof>>),
    StackedDrg32GiBV1(Vec<Vec<ChallengeProof>>),
    StackedDrg64GiBV1(Vec<Vec<ChallengeProof>>),
}

/// The vanilla proof of one challenged node.
#[derive(Debug, Deserialize, Serialize)]
pub struct ChallengeProof {
    /// The data node in the data tree (SHA-256, binary).
    pub comm_d_proofs: MerkleProof,
    /// The sealed node in the replica tree (Poseidon).
    pub comm_r_last_proof: MerkleProof,
    /// The columns of labels of the node and its parents.
    pub replica_column_proofs: ColumnProofs,
    /// How the node's label of each layer came about.
    pub labeling_proofs: Vec<LabelingProof>,
    /// How the sealed node came about.
    pub encoding_proof: LabelingProof,
}

/// Columns in the column tree.
#[derive(Debug, Deserialize, Serialize)]
pub struct ColumnProofs {
    /// The challenged node's own.
    pub c_x: ColumnProof,
    /// Its parents in the same layer.
    pub drg_parents: Vec<ColumnProof>,
    /// Its parents in the previous layer.
    pub exp_parents: Vec<ColumnProof>,
}

/// One column and its path in the column tree (Poseidon).
#[derive(Debug, Deserialize, Serialize)]
pub struct ColumnProof {
    /// The labels.
    pub column: Column,
    /// From the column's hash to the root.
    pub inclusion_proof: MerkleProof,
}

/// The labels of one node in all layers.
#[derive(Debug, Deserialize)]
pub struct Column {
    /// The node.
    pub index: u32,
    /// Layer 1 first.
    pub rows: Vec<Node>,
}

/// The labels that a label is the hash of.
#[derive(Debug, Deserialize, Serialize)]
pub struct LabelingProof {
    /// 37 labels.
    pub parents: Vec<Node>,
    /// The layer, from 1.
    pub layer_index: u32,
    /// The node.
    pub node: u64,
}

/// A path in a tree that may consist of a base tree, joined by sub-trees, joined by a top tree.
#[derive(Debug, Deserialize, Serialize)]
pub struct MerkleProof {
    /// Root, leaf and path.
    pub data: ProofData,
}

/// The three depths of composition.
#[derive(Debug, Deserialize, Serialize)]
#[allow(missing_docs)]
pub enum ProofData {
    Single { root: Node, leaf: Node, path: Path },
    Sub { base_proof: Path, sub_proof: Path, root: Node, leaf: Node },
    Top { base_proof: Path, sub_proof: Path, top_proof: Path, root: Node, leaf: Node },
}

/// Levels, leaf side first.
#[derive(Debug, Deserialize, Serialize)]
pub struct Path {
    /// One entry a level.
    pub path: Vec<Level>,
}

/// One level of a path.
#[derive(Debug, Deserialize, Serialize)]
pub struct Level {
    /// The siblings, one less than the arity.
    pub hashes: Vec<Node>,
    /// Where among them the path's own node belongs.
    pub index: usize,
}

impl Level {
    /// A node among its siblings, all in another form.
    pub(crate) fn insert<T>(&self, node: T, form: impl Fn(&Node) -> T) -> Vec<T> {
        let mut children: Vec<T> = self.hashes.iter().map(form).collect();
        children.insert(self.index, node);
        children
    }
}

/// 32 bytes: a tree node, a commitment or a random value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(pub [u8; 32]);

/// Parses the inner JSON.
pub fn parse(json: &[u8]) -> Result<C1Output, InputError> {
    serde_json::from_slice(json)
        .map_err(|e| InputError::invalid("vanilla_proof.Phase1Out", json_reason("C1 output", json, &e)))
}

impl VanillaProofs {
    /// The proofs under the key of a sector size.
    pub fn new(size: SectorSize, partitions: Vec<Vec<ChallengeProof>>) -> Self {
        match size {
            SectorSize::Kib2 => Self::StackedDrg2KiBV1(partitions),
            SectorSize::Mib8 => Self::StackedDrg8MiBV1(partitions),
            SectorSize::Mib512 => Self::StackedDrg512MiBV1(partitions),
            SectorSize::Gib32 => Self::StackedDrg32GiBV1(partitions),
            SectorSize::Gib64 => Self::StackedDrg64GiBV1(partitions),
        }
    }

    /// The key and the partitions.
    pub fn parts(&self) -> (&'static str, &[Vec<ChallengeProof>]) {
        match self {
            Self::StackedDrg2KiBV1(p) => ("StackedDrg2KiBV1", p),
            Self::StackedDrg8MiBV1(p) => ("StackedDrg8MiBV1", p),
            Self::StackedDrg512MiBV1(p) => ("StackedDrg512MiBV1", p),
            Self::StackedDrg32GiBV1(p) => ("StackedDrg32GiBV1", p),
            Self::StackedDrg64GiBV1(p) => ("StackedDrg64GiBV1", p),
        }
    }

    /// The partitions.
    pub fn into_partitions(self) -> Vec<Vec<ChallengeProof>> {
        match self {
            Self::StackedDrg2KiBV1(p)
            | Self::StackedDrg8MiBV1(p)
            | Self::StackedDrg512MiBV1(p)
            | Self::StackedDrg32GiBV1(p)
            | Self::StackedDrg64GiBV1(p) => p,
        }
    }
}

impl MerkleProof {
    /// The root that it claims.
    pub fn root(&self) -> &Node {
        match &self.data {
            ProofData::Single { root, .. } | ProofData::Sub { root, .. } | ProofData::Top { root, .. } => root,
        }
    }

    /// The leaf that it claims.
    pub fn leaf(&self) -> &Node {
        match &self.data {
            ProofData::Single { leaf, .. } | ProofData::Sub { leaf, .. } | ProofData::Top { leaf, .. } => leaf,
        }
    }

    /// All levels, leaf side first, whatever tree they are in.
    pub fn levels(&self) -> impl Iterator<Item = &Level> {
        let (base, sub, top) = match &self.data {
            ProofData::Single { path, .. } => (path, None, None),
            ProofData::Sub { base_proof, sub_proof, .. } => (base_proof, Some(sub_proof), None),
            ProofData::Top { base_proof, sub_proof, top_proof, .. } => (base_proof, Some(sub_proof), Some(top_proof)),
        };
        std::iter::once(base).chain(sub).chain(top).flat_map(|path| &path.path)
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut column = serializer.serialize_struct("Column", 3)?;
        column.serialize_field("index", &self.index)?;
        column.serialize_field("rows", &self.rows)?;
        // A type parameter that upstream writes, and insists on when it reads.
        column.serialize_field("_h", &())?;
        column.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("32 bytes as a list of numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut bytes = [0; 32];
                for (i, byte) in bytes.iter_mut().enumerate() {
                    *byte = seq.next_element()?.ok_or_else(|| serde::de::Error::invalid_length(i, &self))?;
                }
                match seq.next_element::<u8>()? {
                    None => Ok(Node(bytes)),
                    Some(_) => Err(serde::de::Error::invalid_length(33, &self)),
                }
            }
        }

        deserializer.deserialize_seq(Bytes)
    }
}
