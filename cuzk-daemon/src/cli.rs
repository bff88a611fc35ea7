//! The command line, as data. What each command does is in [`crate::commands`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuzk_gpu::cuda::kernels::{Arch, arch::RELEASED};
use cuzk_proto::v1;
use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    registered::Variant,
};

use crate::{
    config::{ByteSize, Override, Problem, UnitError},
    listen::Target,
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
    /// Stop a queued or running job.
    Cancel(CancelArgs),
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
    /// Make, check and list proving parameters.
    #[command(subcommand)]
    Params(ParamsCommand),
    /// Check and show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// Where the configuration comes from.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigArgs {
    /// Configuration file (TOML); without it the defaults apply.
    #[arg(long, value_name = "FILE", env = "CUZK_CONFIG")]
    pub config: Option<PathBuf>,
    /// Set one key, over file and environment; may be repeated.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Same as --set daemon.listen=ADDRESS; may be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Same as --set srs.param_cache=DIR.
    #[arg(long, value_name = "DIR")]
    pub param_cache: Option<PathBuf>,
    /// Same as --set logging.level=LEVEL.
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// Where a running daemon is.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Address of the daemon: host:port, http://host:port or unix:///path.
    #[arg(long, value_name = "ADDRESS", env = "CUZK_ADDR", default_value = "127.0.0.1:9820")]
    pub addr: Target,
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

/// Options of `simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// GPUs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub devices: u32,
    /// CPU cores.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cores: u32,
    /// Host memory for everything.
    #[arg(long, default_value = "16GiB")]
    pub memory: ByteSize,
    /// Partitions worked on at once for each GPU.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub workers: u32,
    /// Seconds of kernels of one partition of a 32 GiB sector.
    #[arg(long, default_value_t = 0.75)]
    pub kernels: f64,
    /// Seconds of one core for one witness.
    #[arg(long, default_value_t = 0.2)]
    pub synthesis: f64,
    /// Core seconds of one b_g2 and epilogue; 0 where they run on the GPU.
    #[arg(long, default_value_t = 4.0)]
    pub finish: f64,
    /// The public daemon on its published machine instead (96 cores, 16 GB card), with so many workers a device.
    #[arg(long)]
    pub published: bool,
    /// Proofs of 32 GiB sectors to simulate.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub proofs: u32,
    /// A file of arrivals instead: a line a job, "SECONDS CIRCUIT [PRIORITY]".
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Share of partitions that fail at their device, from 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub faults: f64,
    /// Seed of the faults.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
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

/// Options of `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Directory for development parameters, kept for the next run; in the user's cache directory if absent.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Options of `gen-c1`.
#[derive(Args, Debug)]
pub struct GenC1Args {
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB.
    #[arg(long, value_name = "SIZE", value_parser = sector_size)]
    pub sector_size: SectorSize,
    /// The protocol variant. All have the same circuit. With `synthetic` the sector must be sealed after all, which is
    /// done for up to 8MiB (about 10 seconds of one core).
    #[arg(long, value_enum, default_value_t = VariantArg::V1_1)]
    pub variant: VariantArg,
    /// The miner's actor id.
    #[arg(long, value_name = "ID", default_value_t = 1000)]
    pub miner: u64,
    /// The sector number.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub sector: u64,
    /// What data, ticket and seed are derived from.
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_SEED)]
    pub seed: String,
    /// File to write: JSON in the envelope in which nodes send it.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

fn sector_size(text: &str) -> Result<SectorSize, String> {
    let size: ByteSize = text.parse().map_err(|e: UnitError| e.to_string())?;
    SectorSize::from_bytes(size.bytes())
        .ok_or_else(|| format!("no sector is of {size}; the sizes are 2KiB, 8MiB, 512MiB, 32GiB and 64GiB"))
}

/// The commands about parameters.
#[derive(Debug, Subcommand)]
pub enum ParamsCommand {
    /// Make parameters on this machine, for development networks only: whoever makes them can forge proofs.
    Generate(GenerateArgs),
    /// Check parameter files against the network's digests.
    Verify(VerifyArgs),
    /// List circuits and whether their parameters are here.
    List(ListArgs),
}

/// Options of `params generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// The circuit, such as porep-2k.
    #[arg(long)]
    pub circuit: CircuitId,
    /// Directory to write to; made if absent.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What the secret is derived from: the same seed makes the same parameters.
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_SEED)]
    pub seed: String,
}

/// The seed of what is made here when none is named.
pub const DEFAULT_SEED: &str = "cuzk";

/// Options of `params verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The configuration, which names the directory.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Only this circuit; may be repeated. All whose files are here if absent.
    #[arg(long)]
    pub circuit: Vec<CircuitId>,
}

/// Options of `params list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// The configuration, which names the directory.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// The commands about GPU kernels.
#[derive(Debug, Subcommand)]
pub enum KernelsCommand {
    /// Compile all kernels for given architectures. Needs NVRTC and no GPU; CUZK_NVRTC names the library or its folder.
    Build(KernelsBuildArgs),
}

/// Options of `kernels build`.
#[derive(Args, Debug)]
pub struct KernelsBuildArgs {
    /// Architectures, such as sm_80,sm_90; all that are supported if absent.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = RELEASED)]
    pub arch: Vec<Arch>,
    /// Directory to write to; made if absent. A daemon takes kernels from it if CUZK_KERNELS names it.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

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

/// [`Variant`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VariantArg {
    /// Registered proofs 0 to 4.
    V1,
    /// Registered proofs 5 to 9, in general use.
    #[value(name = "v1_1")]
    V1_1,
    /// Registered proofs 10 to 14 (FIP-0059).
    Synthetic,
}

impl Cli {
    /// The command to run: what is named, or `serve`.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

impl ConfigArgs {
    /// The flags as overrides, `--set` first, so that a flag of its own wins.
    pub fn overrides(&self) -> Result<Vec<Override>, Problem> {
        let mut all = self.set.iter().map(|text| Override::from_set(text)).collect::<Result<Vec<_>, _>>()?;
        let mut push = |flag: &str, key: &str, value: String| {
            all.push(Override { flag: flag.into(), key: key.into(), value });
        };
        if !self.listen.is_empty() {
            push("--listen", "daemon.listen", self.listen.join(","));
        }
        if let Some(dir) = &self.param_cache {
            // In a terminal a relative path means what it says; the configuration wants it absolute.
            let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
            push("--param-cache", "srs.param_cache", absolute.display().to_string());
        }
        if let Some(level) = &self.log_level {
            push("--log-level", "logging.level", level.clone());
        }
        Ok(all)
    }
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

impl From<VariantArg> for Variant {
    fn from(variant: VariantArg) -> Self {
        match variant {
            VariantArg::V1 => Self::V1,
            VariantArg::V1_1 => Self::V1_1,
            VariantArg::Synthetic => Self::Synthetic,
        }
    }
}

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprotocol: cuzk.v1 (ProvingEngine)",
    "\nbackends: cpu",
    "\nproofs:   PoRep C2 (V1, V1_1, synthetic)",
);

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 no daemon at the address,
4 input refused, 5 try again later (queue full, draining, parameters missing), 6 unknown job, 7 job store unusable.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let words = std::iter::once("cuzk-daemon").chain(line.split_whitespace());
        Cli::try_parse_from(words).map(Cli::into_command)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default() {
        for line in ["--config /c.toml", "serve --config /c.toml"] {
            let Ok(Command::Serve(args)) = parse(line) else {
                panic!("{line} starts the daemon");
            };
            assert_eq!(args.config, Some("/c.toml".into()));
        }
        assert!(matches!(parse(""), Ok(Command::Serve(_))));
    }

    #[test]
    fn flags_become_overrides_in_order() {
        let line = "--set gpus.policy=never --listen 127.0.0.1:1 --listen unix:///s --param-cache /p --log-level debug";
        let Ok(Command::Serve(args)) = parse(line) else {
            panic!("starts the daemon");
        };
        let overrides = args.overrides().expect("well-formed");
        let pairs: Vec<_> = overrides.iter().map(|o| (o.key.as_str(), o.value.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("gpus.policy", "never"),
                ("daemon.listen", "127.0.0.1:1,unix:///s"),
                ("srs.param_cache", "/p"),
                ("logging.level", "debug"),
            ]
        );
        let settings = crate::config::load(None, overrides).expect("legal");
        assert_eq!(settings.config.daemon.listen.0.len(), 2);
    }

    #[test]
    fn a_relative_parameter_directory_is_made_absolute() {
        let Ok(Command::Serve(args)) = parse("--param-cache params") else {
            panic!("starts the daemon");
        };
        assert!(args.overrides().is_ok_and(|o| o[0].value.starts_with('/') && o[0].value.ends_with("/params")));
    }

    #[test]
    fn prove_needs_an_output() {
        assert!(parse("prove --c1 f --miner 1000").is_err());
        for output in ["--out p", "--hex", "--out p --hex"] {
            let parsed = parse(&format!("prove --c1 f --miner 1000 --sector 42 --priority high {output}"));
            let Ok(Command::Prove(args)) = parsed else {
                panic!("{output}");
            };
            assert_eq!((args.miner, args.sector, args.registered_proof), (1000, Some(42), None));
            assert_eq!(v1::Priority::from(args.priority), v1::Priority::High);
        }
    }

    #[test]
    fn the_scripts_command_lines() {
        assert!(matches!(
            parse("params generate --circuit porep-2k --out /p"),
            Ok(Command::Params(ParamsCommand::Generate(_)))
        ));
        assert!(matches!(parse("status --json --addr unix:///s"), Ok(Command::Status(s)) if s.json));
        let parsed = parse("gen-c1 --sector-size 32GiB --variant v1_1 --seed 1 --out f");
        assert!(matches!(parsed, Ok(Command::GenC1(g)) if g.sector_size == SectorSize::Gib32));
        assert!(matches!(
            parse("kernels build --arch sm_80,sm_90 --out /k"),
            Ok(Command::Kernels(KernelsCommand::Build(args))) if args.arch == [Arch::new(8, 0), Arch::new(9, 0)]
        ));
        assert!(matches!(
            parse("kernels build --out /k"),
            Ok(Command::Kernels(KernelsCommand::Build(args))) if args.arch == RELEASED
        ));
        assert!(matches!(parse("cancel j-1"), Ok(Command::Cancel(c)) if c.job == "j-1"));
        assert!(matches!(parse("config check --config f"), Ok(Command::Config(ConfigCommand::Check(_)))));
    }

    #[test]
    fn bad_values_are_usage_errors() {
        for line in [
            "params generate --circuit porep-3k --out /p",
            "kernels build --arch sm_75 --out /k",
            "status --addr https://h:1",
            "gen-c1 --sector-size 1KiB --out f",
            "gen-c1 --sector-size 2048 --out f",
            "gen-c1 --sector-size 2KiB --out f --variant noninteractive",
            "cancel",
            "nonsense",
            "--config /c serve",
        ] {
            assert_eq!(parse(line).map(|_| ()).map_err(|e| e.exit_code()), Err(2), "{line}");
        }
    }
}
