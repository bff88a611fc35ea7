//! Instruction counts by valgrind's callgrind: they repeat where time does not.
//!
//! A child process under callgrind runs each counted bench several times, and callgrind writes its counters at the end of
//! every measured region. The first dump is left out, as tables are made in it and the result is checked after it; the others are the rounds. This is why no bench library is used
//! for it: those run one process for each bench (with our start-up a hundred times the kernel), need a second program
//! of exactly their version, and keep baselines of their own.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::rooms::{self, Tier};

/// The command that the child runs.
pub const CHILD: &str = "count";

/// Runs of a bench in the child that count, after the one whose result is checked.
const ROUNDS: usize = 5;

/// The one function whose instructions are counted, as valgrind prints its name.
const REGION: &str = concat!(env!("CARGO_CRATE_NAME"), "::rooms::measured_region");

/// Instructions by bench, round by round, or `None` where there is no valgrind.
///
/// # Errors
/// If the child fails, or valgrind writes something else than expected.
pub fn measure(wanted: &dyn Fn(&str) -> bool) -> Result<Option<BTreeMap<String, Vec<f64>>>> {
    let valgrind = || Command::new("valgrind");
    if !valgrind().arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let dir = tempfile::tempdir()?;
    let dump = dir.path().join("dump");
    let output = valgrind()
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", dump.display()))
        .arg(format!("--toggle-collect={REGION}"))
        .arg(format!("--dump-after={REGION}"))
        .arg(std::env::current_exe()?)
        .arg(CHILD)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run valgrind")?;
    ensure!(output.status.success(), "the counted benches ended with {}", output.status);
    let mut counts = BTreeMap::new();
    // The child prints ids in the order in which it ran them; dumps are numbered from 1.
    for (i, id) in String::from_utf8(output.stdout)?.lines().enumerate() {
        if wanted(id) {
            let first = (ROUNDS + 1) * i + 1;
            let rounds = (1..=ROUNDS).map(|round| total(&dump, first + round));
            counts.insert(id.to_owned(), rounds.collect::<Result<_>>()?);
        }
    }
    Ok(Some(counts))
}

/// What the child does: runs the counted benches, all on this one thread, and prints their ids.
///
/// # Errors
/// If a bench cannot be prepared.
pub fn child() -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()?;
    pool.install(|| {
        for operation in rooms::all().iter().filter(|operation| operation.tier == Tier::Counted) {
            for mut candidate in operation.prepare(false)? {
                for _ in 0..ROUNDS {
                    candidate.run();
                }
                println!("{}", operation.bench_id(&candidate.implementation));
            }
        }
        Ok(())
    })
}

/// Instructions in dump `number`.
fn total(dump: &Path, number: usize) -> Result<f64> {
    let path = dump.with_extension(number.to_string());
    let text = fs::read_to_string(&path).with_context(|| format!("callgrind has not written {}", path.display()))?;
    parse_total(&text).with_context(|| format!("{} has no total", path.display()))
}

fn parse_total(dump: &str) -> Option<f64> {
    let total = dump.lines().find_map(|line| line.strip_prefix("totals:"))?;
    total.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_dump_is_found() {
        let dump = "# callgrind format\nversion: 1\nevents: Ir\nfn=(1) work\n12 345\n\ntotals: 345\n";
        assert_eq!(parse_total(dump), Some(345.0));
        assert_eq!(parse_total("totals: \n"), None);
        assert_eq!(parse_total("events: Ir\n"), None);
    }
}
