//! What a client must know of a C1 output to ask for its proof: read from the file, not trusted by the daemon.

use cuzk_synth::{c1::envelope, registered::SealProof};
use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// Facts that a C1 output states about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its registered seal proof: number and sector size.
    pub(super) proof: SealProof,
    /// Its sector, if it comes in an envelope.
    pub(super) sector_number: Option<u64>,
}

/// Reads them, with or without the envelope.
pub(super) fn facts(payload: &[u8]) -> Result<Facts, Failure> {
    #[derive(Deserialize)]
    struct Inner {
        registered_proof: String,
    }
    let refuse = |reason: String| Failure::new(Exit::Refused, format!("no C1 output: {reason}"));
    let unwrapped = envelope::unwrap(payload).map_err(|e| refuse(e.to_string()))?;
    let inner: Inner = serde_json::from_slice(&unwrapped.json).map_err(|e| refuse(e.to_string()))?;
    let proof = SealProof::from_name(&inner.registered_proof)
        .ok_or_else(|| refuse(format!("unknown registered_proof {:?}", inner.registered_proof)))?;
    Ok(Facts { proof, sector_number: unwrapped.sector_number })
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::*;

    const INNER: &str = r#"{"registered_proof":"StackedDrg2KiBV1_1","vanilla_proofs":{},"comm_r":[1]}"#;

    #[test]
    fn bare_and_enveloped() {
        let bare = facts(INNER.as_bytes()).expect("bare JSON will do");
        assert_eq!((bare.proof.number, bare.proof.size.bytes(), bare.sector_number), (5, 2048, None));

        let inner = STANDARD.encode(INNER);
        let envelope = format!(r#"{{"SectorNum":42,"Phase1Out":"{inner}","SectorSize":2048}}"#);
        let wrapped = facts(envelope.as_bytes()).expect("so will the envelope");
        assert_eq!(wrapped, Facts { sector_number: Some(42), ..bare });
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "not json", "{}", r#"{"registered_proof":"StackedDrg1KiBV9"}"#] {
            let failure = facts(text.as_bytes()).expect_err(text);
            assert_eq!(failure.exit, Exit::Refused);
        }
    }
}
