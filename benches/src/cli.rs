//! The command line.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    baseline::trend,
    compare, peers,
    rooms::{self, Tier},
    run::{counts, git, machine::Machine, whole},
};

/// Benches of cuzk, compared with a recorded baseline and with peers.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the benches; a star marks those that CI runs, a number sign those whose instructions are counted.
    List,
    /// Compare with the baseline. Exit status 1: something is slower; 2: it could not be measured.
    Compare(Selection),
    /// Measure and write a new baseline for this class of machines.
    Record {
        /// Why: it is kept with the numbers.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        selection: Selection,
    },
    /// Print how the baseline changed over commits.
    Trend {
        /// The class of machines; this machine's by default.
        #[arg(long)]
        class: Option<String>,
        /// Draw it too.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        #[arg(long, value_name = "FILE", default_value = compare::BASELINE)]
        baseline: PathBuf,
    },
    /// Run ours and peers' implementations on the same inputs, and print the ratios as a table in Markdown.
    Peers {
        /// Only operations whose id (room/field/size) contains one of these.
        filter: Vec<String>,
        /// Rounds over all of them.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// The whole 2 KiB proof beside bellperson, with peak memory.
    Prove(whole::Options),
    /// Development parameters for 2 KiB beside bellperson, with peak memory.
    Params(whole::Options),
    #[command(name = whole::CHILD, hide = true)]
    Part {
        part: whole::Part,
        #[command(flatten)]
        options: whole::Options,
    },
    #[command(name = counts::CHILD, hide = true)]
    Count,
}

/// What is measured, and against what.
#[derive(Args, Clone, Debug)]
pub(crate) struct Selection {
    /// Only benches whose id contains one of these.
    pub(crate) filter: Vec<String>,
    /// Which benches.
    #[arg(long, value_enum, default_value_t = Set::Ci)]
    pub(crate) set: Set,
    /// Rounds over all of them; without it 5 for a comparison and 9 for a record.
    #[arg(long)]
    pub(crate) rounds: Option<usize>,
    /// The recorded baseline.
    #[arg(long, value_name = "FILE", default_value = compare::BASELINE)]
    pub(crate) baseline: PathBuf,
    /// Measure nothing: take rounds from this file, one JSON object a line: {"class", "id", "value", "calibration"}.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Write the rounds to this file, in the same form.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Set {
    /// The subset that CI runs: some minutes.
    Ci,
    /// All: some tens of minutes.
    Full,
}

impl Set {
    pub(crate) fn has(self, tier: Tier) -> bool {
        tier == Tier::Ci || (self == Self::Full && tier == Tier::Full)
    }
}

impl Cli {
    /// Carries out the command; the exit status is 1 if something is slower than it may be.
    ///
    /// # Errors
    /// Whatever keeps it from measuring.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::List => list(),
            Command::Compare(selection) => {
                let slower = compare::compare(&selection)?;
                return Ok(ExitCode::from(u8::from(slower)));
            }
            Command::Record { reason, selection } => compare::record(&selection, reason)?,
            Command::Trend { class, svg, baseline } => {
                let class = class.map_or_else(|| Machine::this().map(|machine| machine.class), Ok)?;
                let versions = git::history(&baseline)?;
                let lines = trend::lines(&versions, &class);
                println!("{class}\n{}", trend::text(&versions, &lines));
                if let Some(path) = svg {
                    fs::write(&path, trend::svg(&versions, &lines))
                        .with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
            Command::Peers { filter, rounds } => peers::print_table(&filter, rounds)?,
            Command::Prove(options) => whole::prove(&options)?,
            Command::Params(options) => whole::params(&options)?,
            Command::Part { part, options } => whole::child(part, &options)?,
            Command::Count => counts::child()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list() {
    for operation in rooms::all() {
        let mark = match operation.tier {
            Tier::Ci => '*',
            Tier::Full => ' ',
            Tier::Counted => '#',
        };
        println!("{mark} {}", operation.id());
    }
}

/// Whether an id is wanted: it contains one of the words, or there are none.
pub(crate) fn matches(filter: &[String], id: &str) -> bool {
    filter.is_empty() || filter.iter().any(|word| id.contains(word.as_str()))
}
