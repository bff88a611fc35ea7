//! C1 outputs of sectors that do not exist, judged by the upstream verifier, our own checks and the circuit.

use base64::{Engine, engine::general_purpose::STANDARD};
use cuzk_synth::{
    c1::{envelope, model},
    circuit::{
        CircuitId,
        SectorSize::{self, Gib32, Gib64, Kib2, Mib8, Mib512},
    },
    error::InputError,
    phantom::PhantomSector,
    porep::{self, PorepTask},
    r1cs::Check,
    registered::{
        SealProof,
        Variant::{self, NonInteractive, Synthetic, V1, V1_1},
    },
    sample::ALL,
};
use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher, parameters::setup_params};
use filecoin_proofs_api::seal::{SealCommitPhase1Output, VanillaSealProof};
use serde_json::Value;
use storage_proofs_core::{merkle::MerkleTreeTrait, proof::ProofScheme};
use storage_proofs_porep::stacked::{self, StackedDrg};

fn sector(size: SectorSize, variant: Variant, seed: &str) -> PhantomSector<'_> {
    PhantomSector { seal: SealProof::new(size, variant), miner_id: 1000, sector_number: 7, seed }
}

fn payload(sector: &PhantomSector<'_>) -> Vec<u8> {
    let c1 = sector.c1_output().unwrap_or_else(|e| panic!("{sector:?}: {e}"));
    let mut payload = Vec::new();
    envelope::wrap(&mut payload, &c1, sector.sector_number, sector.seal.size.bytes()).expect("memory takes it");
    payload
}

/// The judgement of the upstream library on all partitions.
fn upstream_accepts(seal: SealProof, json: &[u8]) -> bool {
    fn verify<Tree: MerkleTreeTrait<Hasher = DefaultTreeHasher> + 'static>(
        seal: SealProof,
        output: &SealCommitPhase1Output,
        proofs: &[Vec<stacked::Proof<Tree, DefaultPieceHasher>>],
    ) -> bool {
        let config = seal.upstream().as_v1_config();
        assert_eq!(proofs.len(), usize::from(config.partitions));
        let setup = setup_params(&config).expect("known sizes");
        let params = StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup).expect("known sizes");
        let public = stacked::PublicInputs {
            replica_id: output.replica_id,
            tau: Some(stacked::Tau { comm_d: output.comm_d.into(), comm_r: output.comm_r.into() }),
            k: None,
            seed: Some(output.seed),
        };
        StackedDrg::verify_all_partitions(&params, &public, proofs).expect("it runs")
    }
    let output: SealCommitPhase1Output = serde_json::from_slice(json).expect("upstream reads it");
    assert_eq!(output.registered_proof, seal.upstream());
    match &output.vanilla_proofs {
        VanillaSealProof::StackedDrg2KiBV1(proofs) => verify(seal, &output, proofs),
        VanillaSealProof::StackedDrg8MiBV1(proofs) => verify(seal, &output, proofs),
        VanillaSealProof::StackedDrg512MiBV1(proofs) => verify(seal, &output, proofs),
        VanillaSealProof::StackedDrg32GiBV1(proofs) => verify(seal, &output, proofs),
        VanillaSealProof::StackedDrg64GiBV1(proofs) => verify(seal, &output, proofs),
    }
}

/// Both judgements on a sector.
fn accepted(sector: &PhantomSector<'_>) {
    let payload = payload(sector);
    let json = envelope::unwrap(&payload).expect("an envelope").json;
    assert!(upstream_accepts(sector.seal, &json), "{sector:?}: upstream refuses it");
    PorepTask::check(&payload, &sector.claims()).unwrap_or_else(|e| panic!("{sector:?}: {e}"));
}

#[test]
fn what_is_written_is_what_upstream_writes() {
    for sample in ALL {
        let json = envelope::unwrap(sample.c1).expect("an envelope").json;
        let c1 = model::parse(&json).expect("a good sample");
        assert!(serde_json::to_vec(&c1).expect("it can be written") == *json, "{}", sample.name);
        let mut wrapped = Vec::new();
        envelope::wrap(&mut wrapped, &c1, 42, 2048).expect("memory takes it");
        let value: Value = serde_json::from_slice(&wrapped).expect("JSON");
        assert_eq!((&value["SectorNum"], &value["SectorSize"]), (&Value::from(42), &Value::from(2048)));
        assert!(STANDARD.decode(value["Phase1Out"].as_str().expect("text")).expect("base64") == *json);
    }
}

#[test]
fn small_sectors_of_every_variant_are_accepted() {
    for variant in [V1, V1_1, Synthetic] {
        // In so small a sector challenges are parents of each other, and all small nodes are among the parents.
        for seed in 0..20 {
            accepted(&sector(Kib2, variant, &seed.to_string()));
        }
    }
    for variant in [V1, V1_1] {
        accepted(&sector(Mib8, variant, "8 MiB"));
        accepted(&sector(Mib512, variant, "512 MiB"));
    }
}

#[test]
#[ignore = "seconds: the whole sector is sealed"]
fn synthetic_8_mib_is_accepted() {
    accepted(&sector(Mib8, Synthetic, "synthetic"));
}

#[test]
#[ignore = "half a minute"]
fn real_sizes_are_accepted() {
    for size in [Gib32, Gib64] {
        for variant in [V1, V1_1] {
            accepted(&sector(size, variant, "large"));
        }
    }
}

#[test]
fn the_circuit_is_satisfied() {
    satisfied(Kib2, &[V1, V1_1, Synthetic]);
}

#[test]
#[ignore = "seconds: the constraint systems are recorded first"]
fn larger_circuits_are_satisfied() {
    for size in [Mib8, Mib512] {
        satisfied(size, &[V1_1]);
    }
}

fn satisfied(size: SectorSize, variants: &[Variant]) {
    let r1cs = porep::record(CircuitId::porep(size)).expect("a built circuit").expect("it can be recorded");
    for &variant in variants {
        let sector = sector(size, variant, "circuit");
        let task = PorepTask::check(&payload(&sector), &sector.claims()).unwrap_or_else(|e| panic!("{sector:?}: {e}"));
        let witness = task.witness(0).expect("values");
        assert_eq!(r1cs.first_unsatisfied(&witness, Check::Full), None, "{sector:?}");
    }
}

#[test]
fn equal_seeds_make_equal_outputs() {
    let first = sector(Mib8, V1_1, "one");
    assert!(payload(&first) == payload(&first));
    assert!(payload(&first) != payload(&sector(Mib8, V1_1, "two")));
    let other_sector = PhantomSector { sector_number: 8, ..first };
    let (first, other) =
        (first.c1_output().expect("it can be made"), other_sector.c1_output().expect("it can be made"));
    assert_eq!(first.comm_d, other.comm_d);
    assert_ne!(first.replica_id, other.replica_id);
}

#[test]
fn a_flipped_bit_is_refused_with_its_place() {
    let sector = sector(Mib8, V1_1, "flip");
    let json = envelope::unwrap(&payload(&sector)).expect("an envelope").json.into_owned();
    let mut value: Value = serde_json::from_slice(&json).expect("JSON");
    let byte = &mut value["vanilla_proofs"]["StackedDrg8MiBV1"][0][1]["labeling_proofs"][1]["parents"][9][0];
    *byte = Value::from(byte.as_u64().expect("a byte") ^ 1);
    let json = serde_json::to_vec(&value).expect("it can be written");
    assert!(!upstream_accepts(sector.seal, &json));
    let error = PorepTask::check(&json, &sector.claims()).expect_err("it is wrong");
    assert!(error.to_string().contains("vanilla_proofs[0][1].labeling_proofs[1].parents[9]"), "{error}");
}

#[test]
fn what_cannot_be_made_is_refused() {
    for (size, variant) in [(Mib512, Synthetic), (Gib32, Synthetic), (Kib2, NonInteractive)] {
        let error = sector(size, variant, "").c1_output().expect_err("it cannot be made");
        assert!(matches!(error, InputError::Unimplemented(_)), "{error}");
    }
}
