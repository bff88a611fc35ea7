//! The command line, as data: a file a family of commands. What each command does is in [`crate::commands`].

mod bench;
mod client;
mod config;
mod doctor;
mod help;
mod kernels;
mod params;
mod sample;
mod serve;
#[cfg(test)]
mod tests;
mod token;
mod watching;

use clap::{Parser, Subcommand};

pub use self::{
    bench::BenchArgs,
    client::{CancelArgs, ClientArgs, PriorityArg, ProveArgs, StatusArgs},
    config::{ConfigCommand, ImportArgs},
    doctor::DoctorArgs,
    help::{CompletionsArgs, ManArgs},
    kernels::{KernelsBuildArgs, KernelsCommand},
    params::{FetchArgs, GenerateArgs, ListArgs, ParamsCommand, VerifyArgs},
    sample::{DemoArgs, GenC1Args, SimulateArgs, VariantArg},
    serve::ConfigArgs,
    token::{TokenCommand, TokenNewArgs},
    watching::{
        GpuCommand, GpuListArgs, JobStateArg, JobsCommand, JobsListArgs, JobsShowArgs, SrsArgs, SrsCommand,
        SrsListArgs, WatchArgs,
    },
};

/// Proves Filecoin sectors: a daemon with a gRPC interface, and the tools around it.
#[derive(Debug, Parser)]
#[command(
    name = "cuzk-daemon",
    version,
    long_version = LONG_VERSION,
    args_conflicts_with_subcommands = true,
    after_help = AFTER_HELP
)]
pub struct Cli {
    /// Without a command the daemon is started.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`, for starting the daemon without naming the command.
    #[command(flatten)]
    pub serve: ConfigArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon (the default).
    Serve(ConfigArgs),
    /// Send a C1 output to a running daemon and fetch its proof.
    Prove(ProveArgs),
    /// Show devices, queues and loaded parameters of a running daemon.
    Status(StatusArgs),
    /// Show devices and jobs of a running daemon, live.
    Watch(WatchArgs),
    /// List jobs of a running daemon, or show one.
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Stop a queued or running job.
    Cancel(CancelArgs),
    /// List, load and release the parameters in a running daemon's memory.
    #[command(subcommand)]
    Srs(SrsCommand),
    /// List the devices of a running daemon, or the GPUs of this machine.
    #[command(subcommand)]
    Gpu(GpuCommand),
    /// Prove a bundled sector with a daemon inside this process, and verify the proof.
    Demo(DemoArgs),
    /// Make up a C1 output of any sector size, for tests and benches, without sealing anything.
    ///
    /// The output passes the verification of vanilla proofs and satisfies the circuit, because only what is opened is
    /// consistent. It PROVES NOTHING ABOUT STORAGE, and no network accepts its proof. Equal options give equal files. For
    /// 32GiB it takes about a second of one core, 20 MB of memory and 52 MB of disk.
    GenC1(GenC1Args),
    /// Simulate the engine on a machine that you describe, and print throughput and GPU use.
    ///
    /// The scheduler is the daemon's own, with a virtual clock; what a partition costs goes in. It tells what more cores,
    /// more memory or more workers a device would bring.
    Simulate(SimulateArgs),
    /// Compile GPU kernels ahead of time.
    #[command(subcommand)]
    Kernels(KernelsCommand),
    /// Fetch, make, check and list proving parameters.
    #[command(subcommand)]
    Params(ParamsCommand),
    /// Measure what a running daemon can do: throughput, latency, where the time goes, and when its devices wait.
    ///
    /// The C1 outputs are made up before the clock starts. One proof more than asked for comes first and is not counted.
    /// The timeline is complete as long as nobody else uses the daemon meanwhile.
    Bench(BenchArgs),
    /// Check this machine and configuration for what keeps proofs from being made, or makes them slow.
    ///
    /// Looks at the configuration, driver and devices, kernels, parameters, folders and disks, limits, control group, huge
    /// pages, clock, certificates and tokens, and at the addresses. Each line says what was seen and, if need be, what to do.
    /// Exit code 1 if something keeps the daemon from working. Run it as the user, and in the environment, of the daemon.
    Doctor(DoctorArgs),
    /// Check, show and translate the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Make tokens for clients.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Print a script that completes command lines in a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands.
    Man(ManArgs),
}

impl Cli {
    /// The command to run: what is named, or `serve`.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// The seed of what is made here when none is named.
pub const DEFAULT_SEED: &str = "cuzk";

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprotocol: cuzk.v1 (ProvingEngine)",
    "\nbackends: cpu",
    "\nproofs:   PoRep C2 (V1, V1_1, synthetic)",
);

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 no daemon at the address,
4 input refused, 5 try again later (queue full, draining, parameters missing,
mirror or network failing), 6 unknown job, 7 job store unusable.";
