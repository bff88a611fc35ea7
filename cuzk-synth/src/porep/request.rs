//! What a request claims and what its C1 output says of the sector must agree.

use filecoin_proofs::DefaultTreeHasher;
use storage_proofs_porep::stacked::generate_replica_id;

use super::Claims;
use crate::{
    c1::{
        model::{C1Output, Node},
        shape,
    },
    error::InputError,
    registered::SealProof,
};

/// The 32-byte prover id of a miner: the unsigned LEB128 form of its actor id, zero-padded.
pub fn prover_id(miner_id: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = miner_id;
    for byte in &mut id {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    id
}

pub(super) fn agree(field: &str, claimed: u64, other: &str, found: u64) -> Result<(), InputError> {
    if claimed == found {
        Ok(())
    } else {
        Err(InputError::invalid(field, format!("is {claimed}, but {other} says {found}")))
    }
}

pub(super) fn check_names(c1: &C1Output, seal: &SealProof) -> Result<(), InputError> {
    if c1.registered_proof != seal.name() {
        let number =
            SealProof::from_name(&c1.registered_proof).map_or("unknown".to_owned(), |proof| proof.number.to_string());
        return Err(InputError::invalid(
            "registered_proof",
            format!("is {} ({}), but the C1 output says {number} ({})", seal.number, seal.name(), c1.registered_proof),
        ));
    }
    let size_name = SealProof::from_number(seal.number % 5).expect("the first five are the sizes' V1 proofs").name();
    let (key, _) = c1.vanilla_proofs.parts();
    if key != size_name {
        return Err(InputError::invalid(
            "vanilla_proofs",
            format!("is for {key}, but the registered proof asks for {size_name}"),
        ));
    }
    Ok(())
}

pub(super) fn check_commitments(c1: &C1Output) -> Result<(), InputError> {
    for (field, node) in [("comm_r", &c1.comm_r), ("comm_d", &c1.comm_d), ("seed", &c1.seed)] {
        if node.0 == [0; 32] {
            return Err(InputError::invalid(field, "is all zeros"));
        }
    }
    for (field, node) in [("comm_r", &c1.comm_r), ("comm_d", &c1.comm_d), ("replica_id", &c1.replica_id)] {
        if !shape::is_field_element(node) {
            return Err(InputError::invalid(field, format!("{node:?} (little-endian) is not below the field modulus")));
        }
    }
    Ok(())
}

/// The replica id: what the labels of a sector depend on.
pub(crate) fn replica_id(seal: SealProof, claims: &Claims, ticket: &Node, comm_d: &Node) -> Node {
    let id = generate_replica_id::<DefaultTreeHasher, _>(
        &prover_id(claims.miner_id),
        claims.sector_number,
        &ticket.0,
        comm_d.0,
        &seal.upstream().as_v1_config().porep_id,
    );
    Node(id.into())
}

pub(super) fn check_replica_id(c1: &C1Output, seal: &SealProof, claims: &Claims) -> Result<(), InputError> {
    let expected = replica_id(*seal, claims, &c1.ticket, &c1.comm_d);
    if expected == c1.replica_id {
        Ok(())
    } else {
        Err(InputError::invalid(
            "replica_id",
            format!(
                "the C1 output is not of sector {} of miner {}: its replica id is {:?}, \
                 theirs with its ticket and comm_d would be {expected:?}",
                claims.sector_number, claims.miner_id, c1.replica_id
            ),
        ))
    }
}
