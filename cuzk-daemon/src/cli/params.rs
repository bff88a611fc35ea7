//! The commands about parameters.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cuzk_synth::circuit::CircuitId;

use super::{ConfigArgs, DEFAULT_SEED};
use crate::fetch::mirror::{Mirror, MirrorError};

/// The commands about parameters.
#[derive(Debug, Subcommand)]
pub enum ParamsCommand {
    /// Make parameters on this machine, for development networks only: whoever makes them can forge proofs.
    Generate(GenerateArgs),
    /// Download parameter files that are missing or wrong, from mirrors that you name.
    ///
    /// There is no default mirror. The network publishes its parameter files on IPFS by content id, so any gateway will do:
    /// `--mirror 'https://GATEWAY/ipfs/{cid}'`. A copy of the files in a folder of a web server is named by the folder's URL,
    /// or by a pattern with {file}. Nothing that a mirror sends is used before its digest has equalled the published one.
    ///
    /// What was interrupted goes on where it ended. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY are heeded.
    Fetch(FetchArgs),
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

/// Options of `params fetch`.
#[derive(Args, Debug)]
pub struct FetchArgs {
    /// The configuration, which names the directory (srs.param_cache) and the mirrors (srs.mirrors).
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The circuit, such as porep-32g; may be repeated.
    #[arg(long, required_unless_present = "all")]
    pub circuit: Vec<CircuitId>,
    /// All circuits that this build proves.
    #[arg(long, conflicts_with = "circuit")]
    pub all: bool,
    /// A mirror, instead of those of the configuration; may be repeated, and the first is asked first.
    #[arg(long, value_name = "URL", value_parser = mirror)]
    pub mirror: Vec<Mirror>,
    /// Allow mirrors without encryption: others can then see what you fetch, and delay it. What is fetched is checked
    /// all the same.
    #[arg(long)]
    pub allow_http: bool,
}

fn mirror(text: &str) -> Result<Mirror, MirrorError> {
    text.parse()
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
