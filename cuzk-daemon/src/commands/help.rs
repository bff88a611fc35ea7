//! `completions` and `man`: the command line for shells, and on paper.

use std::{
    fs,
    io::{self, Write},
};

use clap::CommandFactory;

use crate::{
    cli::{Cli, CompletionsArgs, ManArgs},
    exit::{Exit, Failure},
};

/// What the program is called.
const NAME: &str = "cuzk-daemon";

/// Prints a script that completes the command line in a shell.
pub(super) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    print(&script)
}

/// Prints the manual page, or writes one a command.
pub(super) fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        let mut page = Vec::new();
        // As for a written one: there is no page for `help`.
        clap_mangen::Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page).map_err(unwritable)?;
        return print(&page);
    };
    fs::create_dir_all(out).map_err(|e| Failure::io("make", out, e))?;
    clap_mangen::generate_to(Cli::command(), out).map_err(|e| Failure::io("write manual pages to", out, e))
}

fn print(text: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(text) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(unwritable),
    }
}

fn unwritable(error: io::Error) -> Failure {
    Failure::new(Exit::Failure, format!("cannot write: {error}"))
}
