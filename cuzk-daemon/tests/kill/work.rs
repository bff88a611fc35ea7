//! Jobs and what their proofs must be: a function of the payload and the partition, known to client and daemon.

use std::hash::{DefaultHasher, Hash, Hasher};

use cuzk_proto::v1::{ProofKind, SubmitProofRequest};
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};

/// Most payloads are small; some take a while to be written.
const MOST: usize = 4 << 10;
const SOME: usize = 1 << 20;

/// How many partitions a payload has: 1 to 3.
pub(crate) fn partitions(payload: &[u8]) -> usize {
    1 + usize::from(payload[0] % 3)
}

/// How long one of its partitions takes: up to 7 ms.
pub(crate) fn millis(payload: &[u8]) -> u64 {
    u64::from(payload[1] % 8)
}

/// What stands for the payload from then on.
pub(crate) fn digest(payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload.hash(&mut hasher);
    hasher.finish()
}

/// The proof of one partition: no two payloads and no two partitions have the same.
pub(crate) fn proof(digest: u64, partition: usize) -> [u8; 192] {
    let mut proof = [0; 192];
    StdRng::seed_from_u64(digest ^ ((partition as u64) << 56)).fill_bytes(&mut proof);
    proof
}

/// The proof of a whole job.
pub(crate) fn whole_proof(payload: &[u8]) -> Vec<u8> {
    (0..partitions(payload)).flat_map(|partition| proof(digest(payload), partition)).collect()
}

/// A new job under a client's id.
pub(crate) fn request(request_id: String, random: &mut StdRng) -> SubmitProofRequest {
    let longest = if random.gen_ratio(1, 20) { SOME } else { MOST };
    let length = random.gen_range(16..longest);
    let mut payload = vec![0; length];
    random.fill_bytes(&mut payload);
    SubmitProofRequest {
        request_id,
        proof_kind: ProofKind::PorepSealCommit.into(),
        sector_size: 2048,
        vanilla_proof: payload.into(),
        ..SubmitProofRequest::default()
    }
}
