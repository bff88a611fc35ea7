//! Commits: which one is measured, and the baseline as earlier ones had it.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::baseline::{
    file::{Baseline, Provenance},
    trend::Version,
};

/// Where a record made now comes from.
///
/// # Errors
/// If this is no git work tree.
pub fn provenance(machine: String, reason: String) -> Result<Provenance> {
    let mut commit = output("git", &["rev-parse", "--short=9", "HEAD"])?;
    // A baseline that was written a moment ago changes nothing that is measured.
    let others = [":/", ":(top,exclude,glob)**/baseline.json"];
    if !output("git", &[&["status", "--porcelain", "--untracked-files=no", "--"], &others[..]].concat())?.is_empty() {
        commit.push('+');
    }
    Ok(Provenance { machine, commit, date: output("date", &["--utc", "+%F"])?, reason })
}

/// The versions of the baseline that were committed, oldest first. Versions of another format are left out.
///
/// # Errors
/// If this is no git work tree.
pub fn history(path: &Path) -> Result<Vec<Version>> {
    let path = path.to_str().context("the baseline's path is text")?;
    let log = output("git", &["log", "--reverse", "--format=%h %cs", "--", path])?;
    let mut versions = Vec::new();
    for (commit, date) in log.lines().filter_map(|line| line.split_once(' ')) {
        // A commit that deleted it has none.
        let Ok(text) = output("git", &["show", &format!("{commit}:./{path}")]) else { continue };
        if let Ok(baseline) = Baseline::parse(&text) {
            versions.push(Version { commit: commit.to_owned(), date: date.to_owned(), baseline });
        }
    }
    Ok(versions)
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).output().with_context(|| format!("cannot run {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {}", args.join(" "), said.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
