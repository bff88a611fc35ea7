//! What each command does. Each is a function of its options that returns or fails with an exit code.

mod c1;
mod cancel;
mod config;
mod demo;
mod gen_c1;
mod kernels;
mod params;
mod progress;
mod prove;
mod simulate;
mod status;
mod token;

use std::future::Future;

use crate::{
    cli::Command,
    exit::{Exit, Failure},
    run,
};

/// Runs a command to its end.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => run::serve_command(&args),
        Command::Prove(args) => block_on(prove::prove(&args)),
        Command::Status(args) => block_on(status::status(&args)),
        Command::Cancel(args) => block_on(cancel::cancel(&args)),
        Command::Demo(args) => demo::demo(&args),
        Command::GenC1(args) => gen_c1::gen_c1(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Kernels(command) => kernels::kernels(&command),
        Command::Params(command) => params::params(&command),
        Command::Config(command) => config::config(&command),
        Command::Token(command) => token::token(&command),
    }
}

/// Runs a client command: it waits more than it works, so one thread does.
fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Failure, format!("cannot start the runtime: {e}")))?
        .block_on(command)
}
