//! The commands about parameters.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cuzk_synth::circuit::CircuitId;

use super::{ConfigArgs, DEFAULT_SEED};

/// The commands about parameters.
#[derive(Debug, Subcommand)]
pub enum ParamsCommand {
    /// Make parameters on this machine, for development networks only: whoever makes them can forge proofs.
    Generate(GenerateArgs),
    /// Check parameter files against the network's digests.
    Verify(VerifyArgs),
    /// List circuits and whether their parameters are here.
    List(ListArgs),
}

/// Options of `params generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// The circuit, such as porep-2k.
    #[arg(long)]
    pub circuit: CircuitId,
    /// Directory to write to; made if absent.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What the secret is derived from: the same seed makes the same parameters.
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_SEED)]
    pub seed: String,
}

/// Options of `params verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The configuration, which names the directory.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Only this circuit; may be repeated. All whose files are here if absent.
    #[arg(long)]
    pub circuit: Vec<CircuitId>,
}

/// Options of `params list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// The configuration, which names the directory.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}
