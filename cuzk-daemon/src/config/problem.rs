//! What can be wrong with a configuration, and what is merely odd about it.

use std::{fmt, io, path::PathBuf};

/// Where a value or a fault comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing sets the key.
    Default,
    /// A line of the file, counted from 1.
    File {
        /// The file as named by the user.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A command-line flag, as the user wrote it.
    Flag(String),
}

/// One reason why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file named by the user cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not TOML, or a key or table stands in it twice.
    #[error("{at}: {message}")]
    Syntax {
        /// Where.
        at: Origin,
        /// The parser's words, with the text they are about.
        message: String,
    },
    /// No such table.
    #[error("{at}: unknown table [{table}]{}", nearest_text(nearest))]
    UnknownTable {
        /// Where.
        at: Origin,
        /// Its name.
        table: String,
        /// The table probably meant.
        nearest: Option<String>,
    },
    /// No such key.
    #[error("{at}: unknown key {key:?}{}", nearest_text(nearest))]
    UnknownKey {
        /// Where.
        at: Origin,
        /// `table.name`.
        key: String,
        /// The key probably meant.
        nearest: Option<String>,
    },
    /// The key's value has the wrong type, unit or range.
    #[error("{at}: {key}: {reason}")]
    BadValue {
        /// Where.
        at: Origin,
        /// `table.name`.
        key: String,
        /// Expected and found, in one line.
        reason: String,
    },
    /// Each value is legal, but not this one with the others or in this build.
    #[error("{at}: {key} {reason}")]
    Conflict {
        /// Where the value comes from.
        at: Origin,
        /// `table.name`.
        key: String,
        /// What is wrong and what to do, in one line.
        reason: String,
    },
    /// A `--set` flag without an equals sign.
    #[error("{at}: write --set table.key=value")]
    BadSet {
        /// The flag.
        at: Origin,
    },
}

/// Everything that is wrong with a configuration, one line each.
#[derive(Debug)]
pub struct Problems(pub Vec<Problem>);

/// Something the operator should hear about although the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it comes from.
    pub at: Origin,
    /// The key or variable.
    pub name: String,
    /// What about it.
    pub text: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.at, self.name, self.text)
    }
}

fn nearest_text(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name:?}?"),
        None => "; `cuzk-daemon config print` lists all keys".to_owned(),
    }
}
