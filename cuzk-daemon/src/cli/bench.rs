//! Options of `bench`.

use std::path::PathBuf;

use clap::Args;
use cuzk_synth::circuit::CircuitId;

use super::{ClientArgs, DEFAULT_SEED};
use crate::config::PARAM_CACHE_VARIABLE;

/// Options of `bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The circuit, such as porep-32g.
    #[arg(long)]
    pub circuit: CircuitId,
    /// Proofs to measure; one more comes before them, and is not counted.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub proofs: u32,
    /// Proofs under way at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub concurrency: u32,
    /// Prove this C1 output again and again, instead of ones that are made up.
    #[arg(long, value_name = "FILE", conflicts_with = "synthetic")]
    pub c1: Option<PathBuf>,
    /// What the made-up C1 outputs are derived from, each with a number behind it.
    #[arg(long, value_name = "SEED", default_value = DEFAULT_SEED)]
    pub synthetic: String,
    /// The miner's actor id.
    #[arg(long, value_name = "ID", default_value_t = 1000)]
    pub miner: u64,
    /// The sector of the C1 file, if it has no envelope that names it.
    #[arg(long, value_name = "NUMBER", requires = "c1")]
    pub sector: Option<u64>,
    /// Directory of the verifying key (.vk) with which proofs are verified here, once the clock has stopped.
    #[arg(long, value_name = "DIR", env = PARAM_CACHE_VARIABLE, default_value = "/var/tmp/filecoin-proof-parameters")]
    pub param_cache: PathBuf,
    /// Write all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw to this file (SVG) what devices, threads and jobs did, and where a device waited.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Do not report progress.
    #[arg(long, short)]
    pub quiet: bool,
}
