//! `config import`: a `cuzk.toml` for the public cuzk as one for this daemon, with a verdict on every key. Pure.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use serde::Deserialize;
use toml::{
    Value,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    check::check,
    foreign::{self, Converted, Fate, Foreign},
    layers::{Sources, line_of, merge, nearest_key, syntax_message},
    problem::{Origin, Problem, Problems},
    schema::{self, Config, KEYS, Key, tables},
};

/// A translated file.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Every key of the file, and those that the public cuzk takes for granted; in the order of their lines.
    pub keys: Vec<Imported>,
    /// The values taken, by row of [`KEYS`].
    values: BTreeMap<usize, Value>,
}

/// One key of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its line, counted from 1; none if it is not there, and theirs takes a default that ours does not.
    pub line: Option<usize>,
    /// `table.name`, as in the file.
    pub key: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is in the new file.
    Taken {
        /// The row of [`KEYS`].
        row: usize,
        /// What the operator should know about it.
        note: Option<String>,
    },
    /// This daemon has no need for it: why.
    NotNeeded(String),
    /// Its value cannot be used, so that the default applies: why.
    Refused(String),
    /// Neither daemon knows it; the key probably meant.
    Unknown(Option<String>),
}

/// Translates the text of a file that is called `path`.
///
/// # Errors
/// If it is not TOML.
pub fn import(path: &Path, text: &str) -> Result<Import, Problems> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().unwrap_or(0..0).start);
        let at = Origin::File { path: path.to_owned(), line };
        Problems(vec![Problem::Syntax { at, message: syntax_message(&error, text) }])
    })?;
    let mut import = Import { keys: Vec::new(), values: BTreeMap::new() };
    for (table, value) in document.get_ref() {
        let (name, line) = (table.get_ref().as_ref(), line_of(text, table.span().start));
        match value.get_ref() {
            DeValue::Table(entries) => {
                for (key, value) in entries {
                    let line = line_of(text, key.span().start);
                    let value = Value::deserialize(ValueDeserializer::from(value.clone()));
                    import.add(Some(line), name, key.get_ref(), value.map_err(|e| e.message().to_owned()));
                }
            }
            _ => import.push(Some(line), name.to_owned(), Verdict::Unknown(nearest_key("", name))),
        }
    }
    for foreign in foreign::ALL {
        let path = format!("{}.{}", foreign.table, foreign.name);
        if let Some(default) = foreign.default
            && !import.keys.iter().any(|imported| imported.key == path)
        {
            import.add(None, foreign.table, foreign.name, Ok(default.into()));
        }
    }
    import.leave_out_conflicts();
    import.keys.sort_by_key(|imported| imported.line);
    Ok(import)
}

impl Import {
    fn push(&mut self, line: Option<usize>, key: String, verdict: Verdict) {
        self.keys.push(Imported { line, key, verdict });
    }

    fn add(&mut self, line: Option<usize>, table: &str, name: &str, value: Result<Value, String>) {
        let verdict = match (foreign::find(table, name), schema::find(table, name)) {
            (None | Some(Foreign { fate: Fate::Same(_), .. }), None) => Verdict::Unknown(nearest_key(table, name)),
            (Some(Foreign { fate: Fate::NotNeeded(instead), .. }), _) => Verdict::NotNeeded((*instead).to_owned()),
            (Some(Foreign { fate: Fate::Becomes((table, name), convert, _), .. }), _) => {
                match schema::find(table, name) {
                    Some(key) => self.take(key, value.and_then(|value| convert(&value)), false),
                    None => Verdict::Unknown(None),
                }
            }
            (_, Some(Key { inert: Some(reason), .. })) => {
                Verdict::NotNeeded(reason.trim_start_matches("has no effect here: ").to_owned())
            }
            (Some(Foreign { fate: Fate::Same(convert), .. }), Some(key)) => {
                self.take(key, value.and_then(|value| convert(&value)), true)
            }
            // A key that only ours has.
            (_, Some(key)) => self.take(key, value.map(|value| Converted { value, note: None }), true),
        };
        self.push(line, format!("{table}.{name}"), verdict);
    }

    /// Takes a value if ours may have it; what has the same name wins over what is renamed.
    fn take(&mut self, key: &Key, converted: Result<Converted, String>, wins: bool) -> Verdict {
        let mut config = Config::default();
        let set = converted.and_then(|Converted { value, note }| (key.set)(&mut config, &value).map(|()| note));
        match set {
            Ok(note) => {
                let value = (key.get)(&config);
                if wins {
                    self.values.insert(key.index(), value);
                } else {
                    self.values.entry(key.index()).or_insert(value);
                }
                Verdict::Taken { row: key.index(), note }
            }
            Err(reason) => Verdict::Refused(reason),
        }
    }

    /// Takes back values that are legal one by one and not together.
    fn leave_out_conflicts(&mut self) {
        while let Err(Problems(problems)) = self.check() {
            let mut left_out = false;
            for problem in problems {
                let Problem::Conflict { key, reason, .. } = problem else { continue };
                let Some(row) = KEYS.iter().position(|known| known.path() == key) else { continue };
                left_out |= self.values.remove(&row).is_some();
                let about =
                    self.keys.iter_mut().filter(|k| matches!(k.verdict, Verdict::Taken { row: r, .. } if r == row));
                about.for_each(|imported| imported.verdict = Verdict::Refused(reason.clone()));
            }
            // Each round leaves out a value, so this ends.
            if !left_out {
                return;
            }
        }
    }

    fn check(&self) -> Result<(), Problems> {
        let file = Some(("import".into(), self.assignments(|_| Vec::new())));
        merge(&Sources { file, ..Sources::default() }).and_then(check).map(|_| ())
    }

    /// The new file. `from` is what the old one is called.
    pub fn render(&self, from: &Path) -> String {
        let from = comment(&from.display().to_string());
        let mut out = format!(
            "# Translated from {from} by `cuzk-daemon config import`; `cuzk-daemon config reference` explains every key.\n"
        );
        let notes = |row: usize| {
            let of_row = self.keys.iter().filter_map(move |imported| match &imported.verdict {
                Verdict::Taken { row: r, note: Some(note) } if *r == row => Some(format!("{}: {note}", imported.key)),
                _ => None,
            });
            of_row.collect()
        };
        let body = self.assignments(notes);
        if !body.is_empty() {
            out += &format!("\n{body}");
        }
        let left: Vec<_> = self.keys.iter().filter(|k| !matches!(k.verdict, Verdict::Taken { .. })).collect();
        if !left.is_empty() {
            out += "\n# Not taken over:\n";
            left.iter().for_each(|imported| out += &format!("# {}\n", comment(&imported.to_string())));
        }
        out
    }

    /// The tables with their values, each below its notes.
    fn assignments(&self, notes: impl Fn(usize) -> Vec<String>) -> String {
        let mut out = String::new();
        for table in tables() {
            let rows: Vec<_> = self.values.iter().filter(|(row, _)| KEYS[**row].table == table).collect();
            if rows.is_empty() {
                continue;
            }
            let gap = if out.is_empty() { "" } else { "\n" };
            writeln!(out, "{gap}[{table}]").expect("writing to a string");
            for (row, value) in rows {
                notes(*row).iter().for_each(|note| out += &format!("# {}\n", comment(note)));
                writeln!(out, "{} = {value}", KEYS[*row].name).expect("writing to a string");
            }
        }
        out
    }

    /// How many keys were taken, not needed, refused, and unknown.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for imported in &self.keys {
            counts[match imported.verdict {
                Verdict::Taken { .. } => 0,
                Verdict::NotNeeded(_) => 1,
                Verdict::Refused(_) => 2,
                Verdict::Unknown(_) => 3,
            }] += 1;
        }
        counts
    }
}

impl std::fmt::Display for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}: ", self.key)?,
            None => write!(f, "not set: {}: ", self.key)?,
        }
        match &self.verdict {
            Verdict::Taken { row, note } => {
                let (theirs, ours) = (&self.key, KEYS[*row].path());
                match (self.line, *theirs == ours) {
                    (None, _) => f.write_str("the public cuzk's default is written out")?,
                    (Some(_), true) => f.write_str("taken")?,
                    (Some(_), false) => write!(f, "taken as {ours}")?,
                }
                note.as_ref().map_or(Ok(()), |note| write!(f, "; {note}"))
            }
            Verdict::NotNeeded(why) => write!(f, "not needed: {why}"),
            Verdict::Refused(why) => write!(f, "REFUSED, the default applies: {why}"),
            Verdict::Unknown(Some(near)) => write!(f, "UNKNOWN; did you mean {near}?"),
            Verdict::Unknown(None) => f.write_str("UNKNOWN"),
        }
    }
}

/// A comment must not end before its line does.
fn comment(text: &str) -> String {
    text.replace(char::is_control, "?")
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
