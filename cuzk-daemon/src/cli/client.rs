//! Options of the commands that talk to a running daemon.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuzk_proto::v1;

use crate::listen::Target;

/// Where a running daemon is, and how it is to be spoken to. [`crate::client::open`] connects.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Address of the daemon: host:port, https://host:port (TLS) or unix:///path.
    #[arg(long, value_name = "ADDRESS", env = "CUZK_ADDR", default_value = "127.0.0.1:9820")]
    pub addr: Target,
    /// Certificates (PEM) of which one must have signed the daemon's; needed with https://.
    #[arg(long, value_name = "FILE", env = "CUZK_CLIENT_CA")]
    pub tls_ca: Option<PathBuf>,
    /// Certificate (PEM) to show to a daemon that asks for one.
    #[arg(long, value_name = "FILE", env = "CUZK_CLIENT_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key (PEM) of that certificate.
    #[arg(long, value_name = "FILE", env = "CUZK_CLIENT_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// File that holds the token for a daemon that asks for one, and nothing else.
    #[arg(long, value_name = "FILE", env = "CUZK_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
}

/// Options of `prove`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("output").required(true).multiple(true))]
pub struct ProveArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// File with the C1 output (JSON, with or without its envelope).
    #[arg(long, value_name = "FILE")]
    pub c1: PathBuf,
    /// The miner's actor id, the number in t01000.
    #[arg(long, value_name = "ID")]
    pub miner: u64,
    /// The sector number; read from the C1 envelope if absent.
    #[arg(long, value_name = "NUMBER")]
    pub sector: Option<u64>,
    /// The registered seal proof, 0 to 19; read from the C1 output if absent.
    #[arg(long, value_name = "NUMBER")]
    pub registered_proof: Option<u64>,
    /// How urgent it is.
    #[arg(long, value_enum, default_value_t = PriorityArg::Unspecified)]
    pub priority: PriorityArg,
    /// Name of the request; the same name and C1 output again attach to the same job.
    #[arg(long, value_name = "ID", default_value = "")]
    pub request_id: String,
    /// Write the proof, as raw bytes, to this file.
    #[arg(long, value_name = "FILE", group = "output")]
    pub out: Option<PathBuf>,
    /// Print the proof in hexadecimal.
    #[arg(long, group = "output")]
    pub hex: bool,
    /// Do not report progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Options of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Options of `cancel`.
#[derive(Args, Debug)]
pub struct CancelArgs {
    /// The daemon.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The job id, as `prove` and the daemon's log show it.
    #[arg(value_name = "JOB")]
    pub job: String,
}

/// [`v1::Priority`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PriorityArg {
    /// As the kind of proof has it.
    Unspecified,
    /// After all others.
    Low,
    /// As usual for PoRep.
    Normal,
    /// As usual for WindowPoSt.
    High,
    /// Before all others.
    Critical,
}

impl From<PriorityArg> for v1::Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::Unspecified => Self::Unspecified,
            PriorityArg::Low => Self::Low,
            PriorityArg::Normal => Self::Normal,
            PriorityArg::High => Self::High,
            PriorityArg::Critical => Self::Critical,
        }
    }
}
