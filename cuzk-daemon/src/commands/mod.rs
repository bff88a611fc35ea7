//! What each command does. Each is a function of its options that returns or fails with an exit code.

mod bench;
mod c1;
mod cancel;
mod config;
mod demo;
mod doctor;
mod download;
mod fetch;
mod follow;
mod gen_c1;
mod gpu;
mod help;
mod jobs;
mod kernels;
mod params;
mod progress;
mod prove;
mod remote;
mod simulate;
mod srs;
mod status;
mod text;
mod token;
mod watch;

use std::future::Future;

use cuzk_server::json;

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
        Command::Watch(args) => block_on(watch::watch(&args)),
        Command::Jobs(command) => block_on(jobs::jobs(&command)),
        Command::Srs(command) => block_on(srs::srs(&command)),
        Command::Gpu(command) => block_on(gpu::gpu(&command)),
        Command::Cancel(args) => block_on(cancel::cancel(&args)),
        Command::Demo(args) => demo::demo(&args),
        Command::GenC1(args) => gen_c1::gen_c1(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Kernels(command) => kernels::kernels(&command),
        Command::Params(command) => params::params(&command),
        Command::Config(command) => config::config(&command),
        Command::Token(command) => token::token(&command),
        Command::Bench(args) => block_on(bench::bench(&args)),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions(args) => help::completions(&args),
        Command::Man(args) => help::man(&args),
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
