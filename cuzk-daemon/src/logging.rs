//! The log: lines on standard error, for people or for machines.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt, util::TryInitError};

use crate::config::{LogFormat, Logging};

/// Starts logging for the whole process. Fails if it has been started already.
pub fn init(config: &Logging) -> Result<(), TryInitError> {
    // The configuration has been checked to make a filter.
    let filter = EnvFilter::new(config.level.directives());
    let registry = tracing_subscriber::registry().with(filter);
    match config.format {
        LogFormat::Text => {
            let colors = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            let layer = fmt::layer().with_writer(stderr).with_ansi(colors);
            registry.with(layer).try_init()
        }
        LogFormat::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_writer(stderr);
            registry.with(layer).try_init()
        }
    }
}
