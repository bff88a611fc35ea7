//! Options of the commands that show what a running daemon is doing.

use clap::{Args, Subcommand, ValueEnum};
use cuzk_proto::v1;
use cuzk_synth::circuit::CircuitId;

use super::ClientArgs;

/// Options of `watch`.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Jobs to show at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub jobs: u32,
}

/// The commands about jobs.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List unfinished jobs, and ended ones that the daemon still remembers.
    List(JobsListArgs),
    /// Show one job with all its partitions.
    Show(JobsShowArgs),
}

/// Options of `jobs list`.
#[derive(Args, Debug)]
pub struct JobsListArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Only jobs in this state; may be repeated.
    #[arg(long, value_enum)]
    pub state: Vec<JobStateArg>,
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Options of `jobs show`.
#[derive(Args, Debug)]
pub struct JobsShowArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The job id, as `jobs list`, `prove` and the daemon's log show it.
    #[arg(value_name = "JOB")]
    pub job: String,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// The commands about parameters in a daemon's memory.
#[derive(Debug, Subcommand)]
pub enum SrsCommand {
    /// List the parameters that are loaded, being loaded, and those that could be.
    List(SrsListArgs),
    /// Load the parameters of a circuit before the first job needs them.
    Preload(SrsArgs),
    /// Release the parameters of a circuit, at once or when the last job that holds them ends.
    Evict(SrsArgs),
}

/// Options of `srs list`.
#[derive(Args, Debug)]
pub struct SrsListArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Options of `srs preload` and `srs evict`.
#[derive(Args, Debug)]
pub struct SrsArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The circuit, such as porep-32g.
    #[arg(value_name = "CIRCUIT")]
    pub circuit: CircuitId,
    /// Do not report progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The commands about GPUs.
#[derive(Debug, Subcommand)]
pub enum GpuCommand {
    /// List the devices of a daemon and what they do, or the GPUs of this machine.
    List(GpuListArgs),
}

/// Options of `gpu list`.
#[derive(Args, Debug)]
pub struct GpuListArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Look at this machine and ask no daemon.
    #[arg(long)]
    pub local: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// [`v1::JobState`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobStateArg {
    /// Waits for its first synthesis.
    Queued,
    /// Is being worked at.
    Running,
    /// Has a proof.
    Completed,
    /// Could not be proven.
    Failed,
    /// Was stopped.
    Cancelled,
}

impl From<JobStateArg> for v1::JobState {
    fn from(state: JobStateArg) -> Self {
        match state {
            JobStateArg::Queued => Self::JobQueued,
            JobStateArg::Running => Self::JobRunning,
            JobStateArg::Completed => Self::JobCompleted,
            JobStateArg::Failed => Self::JobFailed,
            JobStateArg::Cancelled => Self::JobCancelled,
        }
    }
}
