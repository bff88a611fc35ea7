//! What is sent: requests that are ready before the clock starts.

use std::{fs, path::Path};

use cuzk_proto::v1::{ProofKind, SubmitProofRequest};
use cuzk_synth::{
    c1::envelope,
    circuit::{CircuitId, CircuitKind},
    error::InputError,
    phantom::PhantomSector,
    porep::Claims,
    registered::{SealProof, Variant},
};

use crate::{
    cli::BenchArgs,
    commands::c1::{self, Facts},
    exit::{Exit, Failure},
};

/// Bytes of different inputs that are held; where more proofs are asked for, the inputs are used in turn.
const HELD: usize = 1 << 30;

/// The requests, without ids; at least one, and at most `count` of them.
pub(super) fn inputs(args: &BenchArgs, count: usize) -> Result<Vec<SubmitProofRequest>, Failure> {
    if args.circuit.kind != CircuitKind::Porep {
        return Err(Failure::new(
            Exit::Refused,
            format!("{}: only PoRep circuits are proven by this build", args.circuit),
        ));
    }
    match &args.c1 {
        Some(path) => Ok(vec![from_file(args, path)?]),
        None => made_up(args, count),
    }
}

fn from_file(args: &BenchArgs, path: &Path) -> Result<SubmitProofRequest, Failure> {
    let payload = fs::read(path).map_err(|e| Failure::io("read", path, e))?;
    let Facts { proof, sector_number } = c1::facts(&payload)?;
    if proof.circuit() != args.circuit {
        let text = format!("{} is of {}, not of {}", path.display(), proof.circuit(), args.circuit);
        return Err(Failure::new(Exit::Usage, text).with_hint("name the circuit of the file with --circuit"));
    }
    let sector_number = args.sector.or(sector_number).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} does not name its sector (it has no envelope)", path.display()))
            .with_hint("give the sector number with --sector")
    })?;
    Ok(request(payload, proof, args.miner, sector_number))
}

fn made_up(args: &BenchArgs, count: usize) -> Result<Vec<SubmitProofRequest>, Failure> {
    let first = phantom(args.circuit, &args.synthetic, args.miner, 0)?;
    let number = different(first.vanilla_proof.len(), count);
    let rest = (1..number as u64).map(|n| phantom(args.circuit, &args.synthetic, args.miner, n));
    std::iter::once(Ok(first)).chain(rest).collect()
}

/// How many different inputs of this size are made for so many proofs.
fn different(bytes: usize, count: usize) -> usize {
    count.min(HELD / bytes.max(1)).max(1)
}

/// The request for sector `n` of those that do not exist.
fn phantom(circuit: CircuitId, seed: &str, miner_id: u64, n: u64) -> Result<SubmitProofRequest, Failure> {
    let seed = format!("{seed}-{n}");
    let seal = SealProof::new(circuit.size, Variant::V1_1);
    let sector = PhantomSector { seal, miner_id, sector_number: n, seed: &seed };
    let refused = |e: InputError| Failure::new(Exit::Refused, format!("cannot make up a C1 output: {e}"));
    let c1 = sector.c1_output().map_err(refused)?;
    let mut payload = Vec::new();
    envelope::wrap(&mut payload, &c1, n, circuit.size.bytes())
        .map_err(|e| Failure::new(Exit::Failure, format!("cannot write a C1 output to memory: {e}")))?;
    Ok(request(payload, seal, miner_id, n))
}

fn request(payload: Vec<u8>, seal: SealProof, miner_id: u64, sector_number: u64) -> SubmitProofRequest {
    SubmitProofRequest {
        proof_kind: ProofKind::PorepSealCommit.into(),
        sector_size: seal.size.bytes(),
        registered_proof: seal.number,
        vanilla_proof: payload.into(),
        sector_number,
        miner_id,
        ..SubmitProofRequest::default()
    }
}

/// What a request claims, for whoever verifies its proof.
pub(super) fn claims(request: &SubmitProofRequest) -> Claims {
    Claims {
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        sector_number: request.sector_number,
        miner_id: request.miner_id,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cuzk_synth::porep::PorepTask;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(line: &str) -> BenchArgs {
        match Cli::try_parse_from(format!("cuzk-daemon bench {line}").split(' ')).map(Cli::into_command) {
            Ok(Command::Bench(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn made_up_inputs_differ_and_are_good() {
        let inputs = inputs(&args("--circuit porep-2k --synthetic s"), 3).expect("made");
        assert_eq!(inputs.len(), 3);
        for (n, input) in inputs.iter().enumerate() {
            let task = PorepTask::check(&input.vanilla_proof, &claims(input)).expect("good");
            assert_eq!((task.circuit().to_string().as_str(), input.sector_number), ("porep-2k", n as u64));
        }
        assert_ne!(inputs[0].vanilla_proof, inputs[1].vanilla_proof);
    }

    #[test]
    fn memory_bounds_how_many_there_are() {
        assert_eq!(
            [different(1 << 20, 5), different(52_000_000, 100), different(HELD * 2, 7), different(0, 2)],
            [5, 20, 1, 2]
        );
    }

    #[test]
    fn a_file_of_another_circuit_or_without_its_sector_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("c1.json");
        fs::write(&path, r#"{"registered_proof":"StackedDrg32GiBV1_1"}"#).expect("writable");
        let of = |line: &str| inputs(&args(&format!("{line} --c1 {}", path.display())), 3).map_err(|e| e.exit);
        assert_eq!(of("--circuit porep-2k --sector 1").map(|_| ()), Err(Exit::Usage));
        assert_eq!(of("--circuit porep-32g").map(|_| ()), Err(Exit::Usage));
        assert_eq!(of("--circuit porep-32g --sector 7").expect("enough")[0].sector_number, 7);
        assert_eq!(inputs(&args("--circuit winning-32g"), 1).map(|_| ()).map_err(|e| e.exit), Err(Exit::Refused));
    }
}
