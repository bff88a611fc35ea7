//! Options of `doctor`.

use clap::Args;

use super::ConfigArgs;

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The configuration to check, and to check the machine for.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}
