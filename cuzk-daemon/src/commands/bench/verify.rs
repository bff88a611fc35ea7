//! Verification of the proofs on this side, with the verifying key if it is at hand.

use std::path::Path;

use bellperson::groth16::{PreparedVerifyingKey, prepare_verifying_key};
use blstrs::Bls12;
use cuzk_gpu::{params::Files, srs};
use cuzk_proto::v1::SubmitProofRequest;
use cuzk_synth::{circuit::CircuitId, porep::PorepTask};

use super::{drive::Proven, inputs::claims};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verified {
    /// So many were valid; the others, by number among the measured ones, with the reason.
    Checked {
        /// Valid proofs.
        valid: usize,
        /// The others.
        invalid: Vec<(usize, String)>,
    },
    /// There is no verifying key: why.
    NoKey(String),
}

/// Verifies all proofs.
pub(super) fn verify(circuit: CircuitId, folder: &Path, inputs: &[SubmitProofRequest], proofs: &[Proven]) -> Verified {
    let key = match key(circuit, folder) {
        Ok(key) => key,
        Err(reason) => return Verified::NoKey(reason),
    };
    let tasks: Vec<_> = inputs
        .iter()
        .map(|input| PorepTask::check(&input.vanilla_proof, &claims(input)).map_err(|e| e.to_string()))
        .collect();
    let check = |proven: &Proven| match tasks[proven.input].as_ref().map(|task| task.verify_seal(&key, &proven.proof)) {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("it does not verify".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.clone()),
    };
    let invalid: Vec<_> = proofs.iter().enumerate().filter_map(|(n, proven)| Some((n, check(proven).err()?))).collect();
    Verified::Checked { valid: proofs.len() - invalid.len(), invalid }
}

fn key(circuit: CircuitId, folder: &Path) -> Result<PreparedVerifyingKey<Bls12>, String> {
    let files = Files::of(circuit, folder).map_err(|e| e.to_string())?;
    let key = srs::read_verifying_key(&files.vk).map_err(|e| e.to_string())?;
    Ok(prepare_verifying_key(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_nothing_is_claimed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let circuit = "porep-2k".parse().expect("a circuit");
        let Verified::NoKey(reason) = verify(circuit, dir.path(), &[], &[]) else { panic!("no key is there") };
        assert!(reason.contains(".vk"), "{reason}");
    }
}
