//! `params generate`, `params verify`, `params list`; `params fetch` is in [`super::fetch`].

use std::{path::Path, sync::atomic::AtomicBool, time::Instant};

use cuzk_gpu::{
    arith::Backend,
    generate::{self, GenerateError},
    params::{Found, Library, ParamError, Provenance, Verdicts},
    srs::Watch,
};
use cuzk_synth::circuit::{CircuitId, CircuitKind};
use serde_json::json;

use super::{
    config::load,
    fetch,
    progress::{GenerateBar, ReadBar},
};
use crate::{
    cli::{GenerateArgs, ListArgs, ParamsCommand, VerifyArgs},
    exit::{Exit, Failure},
};

/// Runs a `params` command.
pub(super) fn params(command: &ParamsCommand) -> Result<(), Failure> {
    match command {
        ParamsCommand::Generate(GenerateArgs { circuit, out, seed }) => generate(*circuit, out, seed),
        ParamsCommand::Fetch(args) => fetch::fetch(args),
        ParamsCommand::Verify(VerifyArgs { config, circuit }) => verify(&load(config)?.config.srs.param_cache, circuit),
        ParamsCommand::List(ListArgs { config, json }) => list(&load(config)?.config.srs.param_cache, *json),
    }
}

/// An error of the generator, by who has to act.
pub(super) fn generate_failed(error: &GenerateError) -> Failure {
    let exit = match error {
        GenerateError::Circuit(_) => Exit::Refused,
        _ => Exit::Failure,
    };
    Failure::new(exit, format!("cannot make parameters: {error}"))
}

/// Makes development parameters of a circuit in a directory, which is made if absent.
fn generate(circuit: CircuitId, out: &Path, seed: &str) -> Result<(), Failure> {
    let begin = Instant::now();
    let made = {
        let bar = GenerateBar::new();
        generate::generate(circuit, seed, out, &|progress| bar.report(progress))
    };
    let (files, sidecar) = made.map_err(|e| generate_failed(&e))?;
    println!("made {} in {:.1} s", files.params.display(), begin.elapsed().as_secs_f64());
    println!("digests: {} (.params), {} (.vk)", sidecar.params_digest, sidecar.vk_digest);
    println!("INSECURE: whoever knows the seed can forge proofs. The daemon takes them only with");
    println!("srs.allow_dev_params = true and srs.param_cache = \"{}\".", out.display());
    Ok(())
}

/// Checks the files of these circuits (of all that are here if none is named): digests anew, then every point.
fn verify(directory: &Path, circuits: &[CircuitId]) -> Result<(), Failure> {
    // Development parameters are checked too, and called what they are; nothing that was remembered is believed.
    let library = Library::new(directory.to_owned(), true, Verdicts::in_memory());
    let chosen: Vec<CircuitId> = match circuits {
        [] => porep_circuits().filter(|&circuit| library.find(circuit).is_ok()).collect(),
        some => some.to_vec(),
    };
    if chosen.is_empty() {
        let text = format!("no parameter files of a known circuit in {}", directory.display());
        return Err(Failure::new(Exit::Failure, text)
            .with_hint("`params list` names the files that are looked for, `params fetch` downloads them"));
    }
    let mut bad = 0;
    for circuit in chosen {
        match read(&library, circuit) {
            Ok(found) => println!("{circuit}: good, {}, {} bytes", provenance(&found), found.bytes),
            Err(error) => {
                bad += 1;
                println!("{circuit}: BAD: {error}");
            }
        }
    }
    match bad {
        0 => Ok(()),
        n => Err(Failure::new(Exit::Failure, format!("parameters of {n} circuits cannot be used"))),
    }
}

/// Reads a circuit's files whole, with a progress bar.
fn read(library: &Library, circuit: CircuitId) -> Result<Found, ParamError> {
    let found = library.find(circuit)?;
    let (bar, go_on) = (ReadBar::new(circuit), AtomicBool::new(false));
    let report = |done, of| bar.report(done, of);
    library.load_watched(circuit, Backend::Portable, &Watch::new(&report, &go_on))?;
    Ok(found)
}

/// Prints for each circuit whether its files are here.
fn list(directory: &Path, json: bool) -> Result<(), Failure> {
    let library = Library::new(directory.to_owned(), true, Verdicts::in_memory());
    let rows: Vec<_> = porep_circuits().map(|circuit| (circuit, library.find(circuit))).collect();
    if json {
        let rows: Vec<_> = rows.iter().map(|(circuit, found)| json_row(*circuit, found)).collect();
        println!("{}", json!({ "directory": directory, "circuits": rows }));
        return Ok(());
    }
    println!("{}", directory.display());
    let mut missing = false;
    for (circuit, found) in &rows {
        match found {
            Ok(found) => println!("{:<11} {:>14} bytes  {}", circuit.to_string(), found.bytes, provenance(found)),
            Err(ParamError::Missing { path, .. }) => {
                let name = path.file_name().unwrap_or_default();
                println!("{:<11} missing: {}", circuit.to_string(), name.display());
                missing = true;
            }
            Err(error) => println!("{:<11} unusable: {error}", circuit.to_string()),
        }
    }
    if missing {
        println!("\n`cuzk-daemon params fetch --circuit CIRCUIT --mirror URL` downloads what is missing");
    }
    Ok(())
}

fn json_row(circuit: CircuitId, found: &Result<Found, ParamError>) -> serde_json::Value {
    match found {
        Ok(found) => json!({
            "circuit": circuit.to_string(),
            "present": true,
            "development": found.provenance == Provenance::Development,
            "bytes": found.bytes,
            "params": found.files.params,
            "vk": found.files.vk,
        }),
        Err(error) => json!({ "circuit": circuit.to_string(), "present": false, "reason": error.to_string() }),
    }
}

/// The circuits that are built.
pub(super) fn porep_circuits() -> impl Iterator<Item = CircuitId> {
    CircuitId::all().filter(|circuit| circuit.kind == CircuitKind::Porep)
}

fn provenance(found: &Found) -> &'static str {
    match found.provenance {
        Provenance::Official => "official",
        Provenance::Development => "DEVELOPMENT (insecure)",
    }
}
