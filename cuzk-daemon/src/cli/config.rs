//! The commands about the configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigArgs;

/// The commands about the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Report everything that is wrong with the configuration, and start nothing.
    Check(ConfigArgs),
    /// Print the values in force, and where each came from.
    Print(ConfigArgs),
    /// Print the reference: every key with its default and a sentence.
    Reference,
    /// Translate a cuzk.toml written for the public cuzk (Curio's) into one for this daemon.
    ///
    /// Each of its keys is taken over with its value, or named as not needed here with the reason, or as unknown with its
    /// line. What the old file leaves to defaults that differ from ours is written out.
    Import(ImportArgs),
}

/// Options of `config import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The file to translate. It stays as it is.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write to this file, which must not exist yet, instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
