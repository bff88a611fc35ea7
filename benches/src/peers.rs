//! The table of ratios: ours and peers' implementations on the same inputs in the same run.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::{
    baseline::stats::median,
    cli::matches,
    rooms::{self, Operation, Tier},
    run::{
        machine::Machine,
        sampler::{self, Bench, Rounds},
    },
};

/// Names of implementations of ours.
const OURS: [&str; 3] = ["cuzk", "ifma", "portable"];

/// Measures the operations that have peers, one after the other, and prints a line for each.
pub(crate) fn print_table(filter: &[String], rounds: usize) -> Result<()> {
    let operations: Vec<Operation> = rooms::all()
        .into_iter()
        .filter(|operation| operation.tier != Tier::Counted && matches(filter, &operation.id()))
        .collect();
    ensure!(!operations.is_empty(), "no operation matches {}", filter.join(" or "));
    println!("{}; milliseconds, in brackets ours / theirs\n", Machine::this()?.name);
    println!("| operation | ours | peers |\n|---|---|---|");
    for operation in operations {
        let mut benches = Bench::prepare(&operation, true, &|_| true)?;
        let ours = |bench: &Bench| OURS.iter().any(|name| bench.id == operation.bench_id(name));
        if benches.iter().all(ours) {
            continue;
        }
        let mut all: Vec<&mut Bench> = benches.iter_mut().collect();
        println!("{}", line(&operation, &sampler::run(&mut all, rounds)));
    }
    Ok(())
}

/// A line: each of ours, and each peer with the ratio of each of ours to it.
fn line(operation: &Operation, measured: &BTreeMap<String, Rounds>) -> String {
    // Ids are room/implementation/field/size.
    let implementation = |id: &str| id.split('/').nth(1).unwrap_or_default().to_owned();
    let measured: Vec<(String, &Rounds)> = measured.iter().map(|(id, r)| (implementation(id), r)).collect();
    let (ours, peers): (Vec<_>, Vec<_>) = measured.into_iter().partition(|(name, _)| OURS.contains(&name.as_str()));
    let time = |rounds: &Rounds| format!("{:.3}", 1e3 * median(&rounds.seconds));
    let our = |(name, rounds): &(String, &Rounds)| format!("{name} {}", time(rounds));
    let peer = |(name, theirs): &(String, &Rounds)| {
        let ratio = |(_, ours): &(String, &Rounds)| format!("{:.3}", median(&ours.ratios) / median(&theirs.ratios));
        format!("{name} {} ({})", time(theirs), ours.iter().map(ratio).collect::<Vec<_>>().join(", "))
    };
    let ours_text: Vec<String> = ours.iter().map(our).collect();
    let peers_text: Vec<String> = peers.iter().map(peer).collect();
    format!("| {} | {} | {} |", operation.id(), ours_text.join(", "), peers_text.join(", "))
}
