//! The program `cuzk-daemon`: command line, configuration, listeners, signals, and the wiring of the engine.
//!
//! * [`cli`]: the command line as data; [`commands`]: what each command does
//! * [`config`]: `cuzk.toml`, environment and flags, checked, with the origin of each value
//! * [`resources`]: what this process may use of the machine, and how it is divided
//! * [`access`]: certificates and tokens, and reading them again
//! * [`listen`]: addresses, and sockets bound without taking anything from anybody
//! * [`run`]: the life of the daemon, from listeners first to drained last; [`backend`], [`porep`]: who proves
//! * `page`: the status page's address
//! * [`state`]: the folder of the job store
//! * [`shutdown`], [`notify`], [`logging`]: signals, the supervisor, the log
//! * [`fetch`]: parameter files from the network; [`disk`]: room for them
//! * [`allocator`]: memory that is kept for the next proof, and given back when none comes
//! * [`client`]: a connection to a running daemon; [`exit`]: exit codes and errors

pub mod access;
pub mod allocator;
pub mod backend;
pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod disk;
pub mod exit;
pub mod fetch;
pub mod listen;
pub mod logging;
pub mod notify;
mod page;
pub mod porep;
pub mod resources;
pub mod run;
pub mod shutdown;
pub mod state;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

use crate::{cli::Cli, exit::Exit};

/// The whole program: parses the arguments (the first is the program's name), runs the command, and reports a
/// failure in a line or two on standard error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match Cli::try_parse_from(args) {
        Ok(cli) => cli.into_command(),
        // Help and version come this way too, with a success code. If the terminal is gone, nobody reads either.
        Err(error) => {
            let _ = error.print();
            return match error.use_stderr() {
                true => Exit::Usage,
                false => Exit::Success,
            }
            .into();
        }
    };
    match commands::run(command) {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit.into()
        }
    }
}
