//! Parameter files: which are here, whether their digests are known, and whether they are development parameters.

use std::{collections::BTreeSet, path::PathBuf};

use cuzk_gpu::params::{Library, Provenance};
use cuzk_synth::circuit::CircuitId;

use super::finding::Finding;
use crate::{backend, commands::params::porep_circuits, commands::text, config::Config};

const ABOUT: &str = "parameters";

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    folder: PathBuf,
    /// The circuits that the configuration names, and the others whose files are here.
    circuits: Vec<Circuit>,
}

#[derive(Clone, Debug)]
struct Circuit {
    id: String,
    /// Whether the configuration names it.
    named: bool,
    files: Result<Files, String>,
}

#[derive(Clone, Debug)]
struct Files {
    bytes: u64,
    development: bool,
    /// What their digests are worth, if those are remembered.
    digests: Option<Result<(), String>>,
}

/// Looks at the files. Reads none but sidecars: digests count only if they are remembered.
pub(super) fn look(config: &Config) -> Seen {
    let folder = config.srs.param_cache.clone();
    let verdicts = backend::verdicts();
    let known: BTreeSet<CircuitId> = porep_circuits().collect();
    let library = Library::new(folder.clone(), config.srs.allow_dev_params, backend::verdicts());
    let affine = config.gpus.affinity.0.iter().flat_map(|affinity| affinity.circuits.iter().copied());
    let named: BTreeSet<CircuitId> = config.srs.preload.0.iter().copied().chain(affine).collect();
    let circuit = |id: CircuitId| {
        let files = library.find(id).map_err(|e| e.to_string()).map(|found| Files {
            bytes: found.bytes,
            development: found.provenance == Provenance::Development,
            digests: (verdicts.is_unchanged(&found.files.params) && verdicts.is_unchanged(&found.files.vk))
                .then(|| library.verify(&found).map_err(|e| e.to_string())),
        });
        Circuit { id: id.to_string(), named: named.contains(&id), files }
    };
    let circuits = known.union(&named).copied().map(circuit);
    Seen { folder, circuits: circuits.filter(|circuit| circuit.named || circuit.files.is_ok()).collect() }
}

/// Judges it.
pub(super) fn judge(seen: &Seen) -> Vec<Finding> {
    let folder = seen.folder.display();
    if !seen.circuits.iter().any(|circuit| circuit.files.is_ok()) {
        let advice = "`cuzk-daemon params list` names the files, `params fetch` downloads them; srs.param_cache names the folder";
        return vec![Finding::fail(ABOUT, format!("no circuit can be proven with what is in {folder}"), advice)];
    }
    let mut findings = vec![Finding::ok(ABOUT, format!("in {folder}"))];
    for Circuit { id, files, .. } in &seen.circuits {
        let files = match files {
            Ok(files) => files,
            // It is named, or it would not be here.
            Err(reason) => {
                findings.push(Finding::fail(ABOUT, reason, "fetch them, or take the circuit out of the configuration"));
                continue;
            }
        };
        let size = text::bytes(files.bytes);
        findings.push(match &files.digests {
            Some(Ok(())) => Finding::ok(ABOUT, format!("{id}: {size}, digests checked")),
            Some(Err(reason)) => Finding::fail(ABOUT, reason, "fetch or make them again"),
            None => {
                let seen = format!("{id}: {size}, digests not checked yet");
                Finding::warn(
                    ABOUT,
                    seen,
                    format!("`cuzk-daemon params verify --circuit {id}`, or the first proof waits for it"),
                )
            }
        });
        if files.development {
            let seen = format!("{id}: development parameters: whoever made them can forge proofs");
            findings.push(Finding::warn(ABOUT, seen, "never use them where real sectors are proven"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{Fail, Ok as Good, Warn},
            levels,
        },
        *,
    };

    fn circuit(named: bool, files: Result<Files, String>) -> Circuit {
        Circuit { id: "porep-2k".into(), named, files }
    }

    fn files(development: bool, digests: Option<Result<(), String>>) -> Result<Files, String> {
        Ok(Files { bytes: 1 << 30, development, digests })
    }

    fn judged(circuits: Vec<Circuit>) -> Vec<super::super::finding::Level> {
        levels(&judge(&Seen { folder: "/p".into(), circuits }))
    }

    #[test]
    fn nothing_here_is_a_failure() {
        assert_eq!(judged(vec![]), [Fail]);
        assert_eq!(judged(vec![circuit(true, Err("no file".into()))]), [Fail]);
    }

    #[test]
    fn each_circuit_is_told_with_what_its_digests_are_worth() {
        let checked = || circuit(false, files(false, Some(Ok(()))));
        assert_eq!(judged(vec![checked()]), [Good, Good]);
        assert_eq!(judged(vec![circuit(false, files(false, None))]), [Good, Warn]);
        assert_eq!(judged(vec![circuit(false, files(false, Some(Err("wrong digest".into()))))]), [Good, Fail]);
        assert_eq!(judged(vec![circuit(false, files(true, Some(Ok(()))))]), [Good, Good, Warn]);
        assert_eq!(judged(vec![checked(), circuit(true, Err("no file".into()))]), [Good, Good, Fail]);
    }
}
