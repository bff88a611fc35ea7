//! What makes two submissions the same job: the client's request id and the digest of the payload.

use std::fmt::{self, Write};

use blake2b_simd::{Hash, Params, State};

use crate::proving::ProofRequest;

/// The most characters of a client's request id that are logged.
const LABEL_CHARS: usize = 64;

/// A request id and a payload, by their BLAKE2b-256 digests: of constant size, whatever clients call their jobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Digest of the request id; `None` for the empty id, which names nothing and so supersedes nothing.
    pub request: Option<[u8; 32]>,
    /// Digest of every field that bears on the proof. Neither the request id nor the priority does.
    pub payload: [u8; 32],
}

impl Identity {
    /// The identity of a request under a client's id. Cost: one pass over the payload.
    pub fn of(request_id: &str, request: &ProofRequest) -> Self {
        let name = hasher(b"cuzk request id").update(request_id.as_bytes()).finalize();
        Self { request: (!request_id.is_empty()).then(|| bytes32(name)), payload: payload_digest(request) }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.request.map_or_else(|| "anonymous".to_owned(), |r| hex::encode(&r[..4]));
        write!(f, "{name}/{}", hex::encode(&self.payload[..4]))
    }
}

/// A client's request id as it may appear in a log line: escaped, and cut to 64 characters.
pub fn log_label(request_id: &str) -> String {
    let mut label = String::new();
    for (i, c) in request_id.chars().enumerate() {
        let escaped = c.escape_debug();
        if i >= LABEL_CHARS || label.chars().count() + escaped.len() > LABEL_CHARS {
            label.push('…');
            break;
        }
        // Writing to a String cannot fail.
        let _ = write!(label, "{escaped}");
    }
    label
}

/// Every field goes in with its length before it, so that no two requests run together to the same bytes.
fn payload_digest(request: &ProofRequest) -> [u8; 32] {
    let mut state = hasher(b"cuzk payload");
    let numbers = [
        request.kind as u64,
        request.sector_size,
        request.registered_proof,
        request.sector_number,
        request.miner_id,
        u64::from(request.partition_index),
        request.vanilla_proofs.len() as u64,
    ];
    for number in numbers {
        state.update(&number.to_le_bytes());
    }
    let texts =
        [&request.randomness, &request.vanilla_proof, &request.comm_r_old, &request.comm_r_new, &request.comm_d_new];
    for text in texts.into_iter().chain(&request.vanilla_proofs) {
        state.update(&(text.len() as u64).to_le_bytes());
        state.update(text);
    }
    bytes32(state.finalize())
}

/// BLAKE2b-256; `purpose` keeps the digests of different things apart.
fn hasher(purpose: &[u8]) -> State {
    Params::new().hash_length(32).personal(&purpose[..purpose.len().min(16)]).to_state()
}

fn bytes32(hash: Hash) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use cuzk_synth::circuit::CircuitKind;

    use super::*;

    fn request() -> ProofRequest {
        ProofRequest::new(CircuitKind::Porep)
    }

    #[test]
    fn every_payload_field_counts() {
        let one = Bytes::from_static(b"1");
        let changes: [fn(&mut ProofRequest, Bytes); 12] = [
            |r, _| r.kind = CircuitKind::Snap,
            |r, _| r.sector_size = 1,
            |r, _| r.registered_proof = 1,
            |r, _| r.sector_number = 1,
            |r, _| r.miner_id = 1,
            |r, _| r.partition_index = 1,
            |r, b| r.randomness = b,
            |r, b| r.vanilla_proof = b,
            |r, b| r.vanilla_proofs = vec![b],
            |r, b| r.comm_r_old = b,
            |r, b| r.comm_r_new = b,
            |r, b| r.comm_d_new = b,
        ];
        let mut seen = vec![Identity::of("a", &request())];
        for change in changes {
            let mut changed = request();
            change(&mut changed, one.clone());
            let identity = Identity::of("a", &changed);
            assert!(!seen.contains(&identity), "{changed:?}");
            seen.push(identity);
        }
    }

    #[test]
    fn bytes_do_not_move_between_fields() {
        let split = |parts: &[&'static str]| {
            let mut r = request();
            r.vanilla_proofs = parts.iter().map(|p| Bytes::from_static(p.as_bytes())).collect();
            Identity::of("a", &r)
        };
        assert_ne!(split(&["ab", "c"]), split(&["a", "bc"]));
        assert_ne!(split(&["abc"]), split(&["abc", ""]));
    }

    #[test]
    fn the_same_payload_under_two_names_is_two_jobs() {
        let (a, b) = (Identity::of("a", &request()), Identity::of("b", &request()));
        assert_ne!(a, b);
        assert_eq!(a.payload, b.payload);
        assert_eq!(a, Identity::of("a", &request()));
        assert_eq!(Identity::of("", &request()).request, None);
    }

    #[test]
    fn labels_are_escaped_and_short() {
        assert_eq!(log_label("ps-f01000-7"), "ps-f01000-7");
        assert_eq!(log_label("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        let long = log_label(&"x".repeat(1000));
        assert_eq!(long.chars().count(), 65);
        assert!(log_label(&"\n".repeat(1000)).chars().count() <= 65);
    }
}
