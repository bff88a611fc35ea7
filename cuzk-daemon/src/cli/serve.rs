//! Options of `serve`, and where every command that needs a configuration finds it.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Override, Problem};

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
