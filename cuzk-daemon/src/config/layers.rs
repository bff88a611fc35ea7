//! Lays flag over environment over file over default, and remembers where each value came from.
//!
//! Pure: the file's text, the environment and the flags come in as values.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{
    Value,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    foreign,
    problem::{Origin, Problem, Problems, Warning},
    schema::{self, Config, KEYS, Key},
};

/// Variables with our prefix that are no configuration keys.
pub const OTHER_VARIABLES: [&str; 9] = [
    "CUZK_CONFIG",
    "CUZK_ADDR",
    "CUZK_CLIENT_CA",
    "CUZK_CLIENT_CERT",
    "CUZK_CLIENT_KEY",
    "CUZK_TOKEN_FILE",
    "CUZK_CPU_BACKEND",
    "CUZK_KERNELS",
    "CUZK_NVRTC",
];

/// The variable that names the parameter directory for all Filecoin programs. It stands below the file: it says
/// where this machine keeps the files, not what this daemon is to do.
pub const PARAM_CACHE_VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// Everything that can set a key.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file's name and text.
    pub file: Option<(PathBuf, String)>,
    /// The environment.
    pub variables: Vec<(String, String)>,
    /// Flags, in the order given; the last one wins.
    pub flags: Vec<Override>,
}

/// One flag that sets a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// As the user wrote it, for messages.
    pub flag: String,
    /// `table.name`.
    pub key: String,
    /// The value's text.
    pub value: String,
}

/// A configuration with each value's origin.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The values in force.
    pub config: Config,
    /// What the operator should hear.
    pub warnings: Vec<Warning>,
    /// An origin for each row of [`KEYS`].
    origins: Vec<Origin>,
}

impl Override {
    /// Reads `table.key=value`.
    pub fn from_set(text: &str) -> Result<Self, Problem> {
        let flag = format!("--set {text}");
        match text.split_once('=') {
            Some((key, value)) => Ok(Self { flag, key: key.trim().to_owned(), value: value.trim().to_owned() }),
            None => Err(Problem::BadSet { at: Origin::Flag(flag) }),
        }
    }
}

impl Settings {
    /// Where the value of a key came from.
    pub fn origin(&self, key: &Key) -> &Origin {
        &self.origins[key.index()]
    }

    fn mark(&mut self, key: &Key, origin: Origin) {
        if let Some(reason) = key.inert {
            self.warnings.push(Warning { at: origin.clone(), name: key.path(), text: reason.to_owned() });
        }
        self.origins[key.index()] = origin;
    }

    fn set_text(&mut self, key: &Key, text: &str, origin: Origin) -> Result<(), Problem> {
        (key.set_text)(&mut self.config, text).map_err(|reason| Problem::BadValue {
            at: origin.clone(),
            key: key.path(),
            reason,
        })?;
        self.mark(key, origin);
        Ok(())
    }
}

/// Reads all sources, lowest first, and reports everything that is wrong with any of them.
pub fn merge(sources: &Sources) -> Result<Settings, Problems> {
    let mut settings =
        Settings { config: Config::default(), warnings: Vec::new(), origins: vec![Origin::Default; KEYS.len()] };
    let mut problems = Vec::new();
    apply_param_cache_variable(&mut settings, sources, &mut problems);
    if let Some((path, text)) = &sources.file {
        apply_file(&mut settings, path, text, &mut problems);
    }
    apply_variables(&mut settings, sources, &mut problems);
    apply_flags(&mut settings, sources, &mut problems);
    match problems.is_empty() {
        true => Ok(settings),
        false => Err(Problems(problems)),
    }
}

fn apply_param_cache_variable(settings: &mut Settings, sources: &Sources, problems: &mut Vec<Problem>) {
    let found = sources.variables.iter().find(|(name, _)| name == PARAM_CACHE_VARIABLE);
    let (Some((name, value)), Some(key)) = (found, schema::find("srs", "param_cache")) else {
        return;
    };
    problems.extend(settings.set_text(key, value, Origin::Variable(name.clone())).err());
}

fn apply_file(settings: &mut Settings, path: &Path, text: &str, problems: &mut Vec<Problem>) {
    let at = |offset: usize| Origin::File { path: path.to_path_buf(), line: line_of(text, offset) };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        // Only the first fault: what a parser finds behind it is mostly its own echo.
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            problems.push(Problem::Syntax { at: at(span.start), message: syntax_message(&error, text) });
            return;
        }
    };
    for (table, value) in document.get_ref() {
        let (name, offset) = (table.get_ref().as_ref(), table.span().start);
        let known = schema::tables().contains(&name);
        match value.get_ref() {
            DeValue::Table(entries) if known => {
                apply_table(settings, name, entries, &at, problems);
            }
            DeValue::Table(_) => problems.push(Problem::UnknownTable {
                at: at(offset),
                table: name.to_owned(),
                nearest: nearest(name, schema::tables().into_iter().map(str::to_owned)),
            }),
            _ if known => problems.push(Problem::BadValue {
                at: at(offset),
                key: name.to_owned(),
                reason: format!("expected a table; write [{name}] on a line of its own"),
            }),
            _ => problems.push(Problem::UnknownKey {
                at: at(offset),
                key: name.to_owned(),
                nearest: nearest_key("", name),
            }),
        }
    }
}

fn apply_table(
    settings: &mut Settings,
    table: &str,
    entries: &DeTable<'_>,
    at: &dyn Fn(usize) -> Origin,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in entries {
        let origin = at(name.span().start);
        let name = name.get_ref().as_ref();
        let Some(key) = schema::find(table, name) else {
            match foreign::find(table, name).and_then(|foreign| foreign.instead()) {
                Some(instead) => settings.warnings.push(Warning {
                    at: origin,
                    name: format!("{table}.{name}"),
                    text: format!("is not used by this daemon: {instead}"),
                }),
                None => problems.push(Problem::UnknownKey {
                    at: origin,
                    key: format!("{table}.{name}"),
                    nearest: nearest_key(table, name),
                }),
            }
            continue;
        };
        let set = Value::deserialize(ValueDeserializer::from(value.clone()))
            .map_err(|error| error.message().to_owned())
            .and_then(|value| (key.set)(&mut settings.config, &value));
        match set {
            Ok(()) => settings.mark(key, origin),
            Err(reason) => problems.push(Problem::BadValue { at: origin, key: key.path(), reason }),
        }
    }
}

fn apply_variables(settings: &mut Settings, sources: &Sources, problems: &mut Vec<Problem>) {
    for (name, value) in &sources.variables {
        if !name.starts_with("CUZK_") || OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let origin = Origin::Variable(name.clone());
        match KEYS.iter().find(|key| key.variable() == *name) {
            Some(key) => problems.extend(settings.set_text(key, value, origin).err()),
            // Only a warning: variables are inherited, and another program's must not keep this one from starting.
            None => settings.warnings.push(Warning {
                at: origin,
                name: name.clone(),
                text: match nearest(name, all_variables()) {
                    Some(near) => format!("is not known and does nothing; did you mean {near}?"),
                    None => "is not known and does nothing".to_owned(),
                },
            }),
        }
    }
}

fn apply_flags(settings: &mut Settings, sources: &Sources, problems: &mut Vec<Problem>) {
    for flag in &sources.flags {
        let origin = Origin::Flag(flag.flag.clone());
        let (table, name) = flag.key.split_once('.').unwrap_or(("", &flag.key));
        match schema::find(table, name) {
            Some(key) => problems.extend(settings.set_text(key, &flag.value, origin).err()),
            None => problems.push(Problem::UnknownKey {
                at: origin,
                key: flag.key.clone(),
                nearest: nearest_key(table, name),
            }),
        }
    }
}

/// The parser's words and the piece of text they are about.
pub(super) fn syntax_message(error: &toml::de::Error, text: &str) -> String {
    let about = error
        .span()
        .and_then(|span| text.get(span))
        .and_then(|piece| piece.lines().next())
        .map(str::trim)
        .filter(|piece| !piece.is_empty());
    match about {
        Some(piece) => format!("{}: {piece}", error.message()),
        None => error.message().to_owned(),
    }
}

/// The line of a byte offset, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// The key probably meant: one of that name in another table, or the most similar of the same table, or of all.
pub(super) fn nearest_key(table: &str, name: &str) -> Option<String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Some(key.path());
    }
    let of_table = KEYS.iter().filter(|key| key.table == table);
    nearest(name, of_table.map(|key| key.name.to_owned()))
        .map(|name| format!("{table}.{name}"))
        .or_else(|| nearest(&format!("{table}.{name}"), KEYS.iter().map(Key::path)))
}

/// The most similar name, if one is similar enough to be what was meant.
fn nearest(name: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    candidates
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn all_variables() -> impl Iterator<Item = String> {
    KEYS.iter().map(Key::variable).chain(OTHER_VARIABLES.map(str::to_owned))
}

/// Jaro-Winkler similarity from which on a suggestion helps more than it misleads: a letter or two in a word.
const SIMILAR: f64 = 0.85;
