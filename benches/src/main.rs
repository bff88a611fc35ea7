//! Benches of cuzk: what they take, whether that is more than it was, and beside whom. See `benches/README.md`.

use std::process::ExitCode;

use clap::Parser;
use cuzk_benches::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
