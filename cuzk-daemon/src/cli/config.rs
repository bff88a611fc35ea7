//! The commands about the configuration.

use clap::Subcommand;

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
}
