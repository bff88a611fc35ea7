//! The table of ratios: ours and peers' implementations on the same inputs in the same run.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::{
    baseline::stats::median,
    cli::matches,
    rooms::{self, Tier},
    run::{
        machine::Machine,
        sampler::{self, Bench, Rounds},
    },
};

/// Measures the operations that have peers, one after the other, and prints a line for each.
pub(crate) fn print_table(filter: &[String], rounds: usize) -> Result<()> {
    let operations: Vec<_> = rooms::all()
        .into_iter()
        .filter(|operation| operation.tier != Tier::Counted && matches(filter, &operation.id()))
        .collect();
    ensure!(!operations.is_empty(), "no operation matches {}", filter.join(" or "));
    println!("{}; milliseconds, in brackets ours / theirs\n", Machine::this()?.name);
    println!("| operation | ours | peers |\n|---|---|---|");
    for operation in operations {
        let mut benches = Bench::prepare(&operation, true, &|_| true)?;
        if benches.iter().any(|bench| bench.candidate.peer) {
            let mut all: Vec<&mut Bench> = benches.iter_mut().collect();
            let measured = sampler::run(&mut all, rounds);
            println!("{}", line(&operation.id(), &benches, &measured));
        }
    }
    Ok(())
}

/// A line: each of ours, and each peer with the ratio of each of ours to it.
fn line(id: &str, benches: &[Bench], measured: &BTreeMap<String, Rounds>) -> String {
    let (peers, ours): (Vec<&Bench>, Vec<&Bench>) = benches.iter().partition(|bench| bench.candidate.peer);
    let time =
        |bench: &Bench| format!("{} {:.3}", bench.candidate.implementation, 1e3 * median(&measured[&bench.id].seconds));
    let peer = |theirs: &&Bench| {
        let ratio = |ours: &&Bench| median(&measured[&ours.id].ratios) / median(&measured[&theirs.id].ratios);
        let ratios: Vec<String> = ours.iter().map(|ours| format!("{:.3}", ratio(ours))).collect();
        format!("{} ({})", time(theirs), ratios.join(", "))
    };
    let (ours_text, peers_text): (Vec<_>, Vec<_>) =
        (ours.iter().map(|bench| time(bench)).collect(), peers.iter().map(peer).collect());
    format!("| {id} | {} | {} |", ours_text.join(", "), peers_text.join(", "))
}
