//! The log: lines on standard error, for people or for machines.

use std::{
    io::{IsTerminal, stderr},
    sync::OnceLock,
};

use tracing_subscriber::{
    EnvFilter, Registry, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt, util::TryInitError,
};

use crate::config::{LogFormat, LogLevel, Logging};

/// The filter of the process's log, which can be exchanged.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging for the whole process. Fails if it has been started already.
pub fn init(config: &Logging) -> Result<(), TryInitError> {
    // The configuration has been checked to make a filter.
    let (filter, handle) = reload::Layer::new(EnvFilter::new(config.level.directives()));
    let registry = tracing_subscriber::registry().with(filter);
    let started = match config.format {
        LogFormat::Text => {
            let colors = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            let layer = fmt::layer().with_writer(stderr).with_ansi(colors);
            registry.with(layer).try_init()
        }
        LogFormat::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_writer(stderr);
            registry.with(layer).try_init()
        }
    };
    started.map(|()| drop(FILTER.set(handle)))
}

/// Changes what is logged from now on, in a process whose log [`init`] started.
pub fn set_level(level: &LogLevel) {
    if let Some(filter) = FILTER.get()
        && let Err(error) = filter.reload(EnvFilter::new(level.directives()))
    {
        tracing::error!("cannot change logging.level: {error}");
    }
}
