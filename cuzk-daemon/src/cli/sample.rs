//! Options of `demo`, `gen-c1` and `simulate`, which need no daemon.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuzk_synth::{circuit::SectorSize, registered::Variant};

use super::DEFAULT_SEED;
use crate::config::{ByteSize, UnitError};

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

impl From<VariantArg> for Variant {
    fn from(variant: VariantArg) -> Self {
        match variant {
            VariantArg::V1 => Self::V1,
            VariantArg::V1_1 => Self::V1_1,
            VariantArg::Synthetic => Self::Synthetic,
        }
    }
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
