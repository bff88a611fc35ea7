//! Configuration: one schema, four sources, and a refusal with file, line and suggestion for whatever is not understood.
//!
//! Everything here is a function of texts except [`load`], which reads the file and the environment.

mod check;
mod foreign;
mod gpu;
mod import;
mod layers;
mod problem;
mod render;
mod schema;
mod setting;
mod types;
mod units;

#[cfg(test)]
mod tests;

use std::{env, fs, path::Path};

pub use self::{
    check::check,
    gpu::PointChecks,
    import::{Import, Imported, Verdict, import},
    layers::{OTHER_VARIABLES, Override, PARAM_CACHE_VARIABLE, Settings, Sources, merge},
    problem::{Origin, Problem, Problems, Warning},
    render::{render, summary},
    schema::{
        Auth, Config, Daemon, Finish, Gpus, Http, KEYS, Key, Limits, Logging, Memory, Pipeline, Scheduler, Srs, Store,
        Synthesis, TlsFiles,
    },
    setting::{Inert, OneOrMany, Setting},
    types::{
        Affinity, DamagedStore, DeviceName, GpuPolicy, LogFormat, LogLevel, MemoryBudget, SocketMode, StoreKind,
        StorePath,
    },
    units::{ByteSize, Span, UnitError},
};

/// The reference file: every key with its default and a sentence.
pub const REFERENCE: &str = include_str!("../../../config/cuzk.toml");

/// Reads and checks the whole configuration. Without a file the defaults, the environment and the flags apply; a
/// file that is named must be there.
pub fn load(file: Option<&Path>, flags: Vec<Override>) -> Result<Settings, Problems> {
    let file = match file {
        None => None,
        Some(path) => match fs::read_to_string(path) {
            Ok(text) => Some((path.to_owned(), text)),
            Err(source) => {
                let path = path.to_owned();
                return Err(Problems(vec![Problem::Unreadable { path, source }]));
            }
        },
    };
    // A variable that is not Unicode cannot be one of ours by name; by value it is reported as a bad value.
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let variables = variables.collect();
    merge(&Sources { file, variables, flags }).and_then(check)
}
