//! The commands that describe the command line itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Options of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write the pages of the program and of all its commands to this directory, which is made if absent; without it,
    /// the program's page is printed.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
