//! What is accepted and what is refused, on real C1 outputs, untouched or damaged in one place.

use base64::{Engine, engine::general_purpose::STANDARD};
use cuzk_synth::{
    error::InputError,
    porep::{Claims, PorepTask},
    sample::{ALL, Sample},
};
use serde_json::{Value, json};

const SAMPLE: Sample = ALL[0];

fn inner(sample: &Sample) -> Value {
    let envelope: Value = serde_json::from_slice(sample.c1).unwrap();
    let json = STANDARD.decode(envelope["Phase1Out"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// The refusal of the first sample after `damage` to its inner JSON.
fn refused(damage: impl FnOnce(&mut Value)) -> String {
    let mut value = inner(&SAMPLE);
    damage(&mut value);
    let error = PorepTask::check(&serde_json::to_vec(&value).unwrap(), &SAMPLE.claims).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, InputError::Invalid { .. }), "{text}");
    assert!(!text.contains('\n'), "more than one line: {text}");
    text
}

fn refused_claims(change: impl FnOnce(&mut Claims)) -> InputError {
    let mut claims = SAMPLE.claims;
    change(&mut claims);
    PorepTask::check(SAMPLE.c1, &claims).unwrap_err()
}

fn challenge(value: &mut Value, i: usize) -> &mut Value {
    &mut value["vanilla_proofs"]["StackedDrg2KiBV1"][0][i]
}

fn flip(byte: &mut Value) {
    *byte = json!(byte.as_u64().unwrap() ^ 1);
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn real_outputs_pass_in_their_envelope_and_bare() {
    for sample in ALL {
        for payload in [sample.c1.to_vec(), serde_json::to_vec(&inner(sample)).unwrap()] {
            let task = PorepTask::check(&payload, &sample.claims).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
            assert_eq!(task.partitions(), 1);
            assert_eq!(task.circuit().to_string(), "porep-2k");
            assert_eq!(task.public_inputs(0).unwrap().len(), 39);
        }
    }
}

#[test]
fn layers_of_encoding_are_told_apart() {
    let check = |payload: &[u8]| PorepTask::check(payload, &SAMPLE.claims).unwrap_err().to_string();
    assert_says(&check(b""), &["vanilla_proof", "empty"]);
    assert_says(&check(&SAMPLE.c1[..SAMPLE.c1.len() / 2]), &["envelope", "ends too early at byte"]);
    let wrong_base64 = r#"{"SectorNum": 42, "Phase1Out": "eyJyZWdp#3RlcmVk", "SectorSize": 2048}"#;
    assert_says(&check(wrong_base64.as_bytes()), &["Phase1Out", "base64"]);
    let bare = serde_json::to_vec(&inner(&SAMPLE)).unwrap();
    let cut = STANDARD.encode(&bare[..1000]);
    assert_says(
        &check(format!(r#"{{"Phase1Out": "{cut}"}}"#).as_bytes()),
        &["C1 output", "ends too early at byte 1000 of 1000"],
    );
    assert_says(&check(b"{}"), &["C1 output", "missing field"]);
    assert_says(&check(&[&bare[..], b"x"].concat()), &["trailing"]);
}

#[test]
fn claims_must_agree_and_both_values_are_named() {
    let text = refused_claims(|c| c.sector_size = 8 << 20).to_string();
    assert_says(&text, &["sector_size", "8388608", "2048"]);
    let text = refused_claims(|c| c.registered_proof = 0).to_string();
    assert_says(&text, &["registered_proof", "StackedDrg2KiBV1_1", "0 (", "5 ("]);
    let text = refused_claims(|c| c.registered_proof = 20).to_string();
    assert_says(&text, &["registered_proof", "20"]);
    let text = refused_claims(|c| c.sector_number = 43).to_string();
    assert_says(&text, &["sector_number", "43", "42"]);
    let text = refused_claims(|c| c.miner_id = 1001).to_string();
    assert_says(&text, &["replica_id", "sector 42 of miner 1001"]);
    let text = {
        // Without an envelope only the replica id tells the sector.
        let claims = Claims { sector_number: 43, ..SAMPLE.claims };
        let bare = serde_json::to_vec(&inner(&SAMPLE)).unwrap();
        PorepTask::check(&bare, &claims).unwrap_err().to_string()
    };
    assert_says(&text, &["replica_id", "sector 43 of miner 1000"]);
    let text = refused_claims(|c| {
        c.registered_proof = 8;
        c.sector_size = 32 << 30;
    })
    .to_string();
    assert_says(&text, &["sector_size", "34359738368", "2048"]);
}

#[test]
fn non_interactive_porep_is_unimplemented() {
    let error = refused_claims(|c| c.registered_proof = 15);
    assert!(matches!(&error, InputError::Unimplemented(text) if text.contains("NonInteractive")));
}

#[test]
fn zero_commitments_are_refused() {
    for field in ["comm_r", "comm_d", "seed"] {
        assert_says(&refused(|v| v[field] = json!(vec![0; 32])), &[field, "all zeros"]);
    }
}

#[test]
fn counts_must_fit_the_sector_size() {
    let text = refused(|v| {
        let partitions = v["vanilla_proofs"]["StackedDrg2KiBV1"].as_array_mut().unwrap();
        partitions.push(partitions[0].clone());
    });
    assert_says(&text, &["2 partitions, expected 1"]);
    let text = refused(|v| v["vanilla_proofs"]["StackedDrg2KiBV1"] = json!([]));
    assert_says(&text, &["0 partitions, expected 1"]);
    let text = refused(|v| {
        v["vanilla_proofs"]["StackedDrg2KiBV1"][0].as_array_mut().unwrap().pop();
    });
    assert_says(&text, &["[0]: 1 challenges, expected 2"]);
    let text = refused(|v| {
        challenge(v, 1)["labeling_proofs"][0]["parents"].as_array_mut().unwrap().pop();
    });
    assert_says(&text, &["[0][1].labeling_proofs[0]", "36 parents, expected 37"]);
    let text = refused(|v| {
        challenge(v, 0)["comm_d_proofs"]["data"]["Single"]["path"]["path"].as_array_mut().unwrap().pop();
    });
    assert_says(&text, &["comm_d_proofs", "5 levels, expected 6"]);
    let text = refused(|v| {
        challenge(v, 0)["comm_r_last_proof"]["data"]["Single"]["path"]["path"][1]["index"] = json!(8);
    });
    assert_says(&text, &["comm_r_last_proof.path[1]", "index 8 in a level of 8"]);
    let text = refused(|v| {
        let proofs = v["vanilla_proofs"].as_object_mut().unwrap();
        let list = proofs.remove("StackedDrg2KiBV1").unwrap();
        proofs.insert("StackedDrg8MiBV1".to_owned(), list);
    });
    assert_says(&text, &["vanilla_proofs", "StackedDrg8MiBV1", "StackedDrg2KiBV1"]);
}

#[test]
fn values_at_or_above_the_modulus_are_refused_in_place() {
    let too_large = json!(vec![255; 32]);
    let text = refused(|v| {
        challenge(v, 1)["replica_column_proofs"]["drg_parents"][3]["column"]["rows"][1] = too_large.clone();
    });
    assert_says(&text, &["[0][1].replica_column_proofs.drg_parents[3].column.rows[1]", "modulus"]);
    let text = refused(|v| v["comm_r"] = too_large.clone());
    assert_says(&text, &["comm_r", "modulus"]);
    assert_says(&refused(|v| v["comm_d"][0] = json!(256)), &["C1 output", "256"]);
    assert_says(&refused(|v| v["comm_d"] = json!([1, 2])), &["32 bytes"]);
}

#[test]
fn a_wrong_node_is_refused_with_its_place() {
    let text = refused(|v| {
        flip(&mut challenge(v, 1)["comm_d_proofs"]["data"]["Single"]["path"]["path"][2]["hashes"][0][5]);
    });
    assert_says(&text, &["[0][1].comm_d_proofs", "partition 0, challenge 1 (node"]);
    let text = refused(|v| {
        flip(&mut challenge(v, 0)["comm_r_last_proof"]["data"]["Single"]["path"]["path"][0]["hashes"][3][0]);
    });
    assert_says(&text, &["[0][0].comm_r_last_proof", "leads to root"]);
    let text = refused(|v| {
        flip(&mut challenge(v, 0)["replica_column_proofs"]["exp_parents"][2]["column"]["rows"][0][0]);
    });
    assert_says(&text, &["exp_parents[2].column", "its hash"]);
    let text = refused(|v| {
        let proof = &mut challenge(v, 0)["replica_column_proofs"]["c_x"]["inclusion_proof"];
        flip(&mut proof["data"]["Single"]["path"]["path"][1]["hashes"][0][0]);
    });
    assert_says(&text, &["c_x.inclusion_proof"]);
    let text = refused(|v| flip(&mut challenge(v, 0)["labeling_proofs"][1]["parents"][9][0]));
    assert_says(&text, &["labeling_proofs[1].parents[9]", "differs"]);
    let text = refused(|v| flip(&mut challenge(v, 0)["encoding_proof"]["parents"][0][0]));
    assert_says(&text, &["encoding_proof.parents[0]"]);
    let text = refused(|v| challenge(v, 0)["labeling_proofs"][0]["node"] = json!(1));
    assert_says(&text, &["labeling_proofs[0].node", "about node 1"]);
    let text = refused(|v| {
        challenge(v, 1)["replica_column_proofs"]["drg_parents"][0]["column"]["index"] = json!(63);
    });
    assert_says(&text, &["drg_parents[0].column.index"]);
    let text = refused(|v| flip(&mut v["comm_r"][0]));
    assert_says(&text, &["comm_r", "is not the hash"]);
    // Another seed asks for other challenges.
    let text = refused(|v| flip(&mut v["seed"][0]));
    assert_says(&text, &["the path is that of node", "expected node"]);
}
