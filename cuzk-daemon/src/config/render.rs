//! The effective configuration as a `cuzk.toml` that reads back to the same values.

use std::fmt::Write;

use super::{
    layers::Settings,
    schema::{KEYS, tables},
};

/// All keys with their values, and behind each where it came from.
pub fn render(settings: &Settings) -> String {
    let mut out = String::new();
    for table in tables() {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &format!("[{table}]\n");
        for key in KEYS.iter().filter(|key| key.table == table) {
            let assignment = format!("{} = {}", key.name, (key.get)(&settings.config));
            // A comment must not end before its line does, whatever the path of the file.
            let origin = settings.origin(key).to_string().replace(char::is_control, "?");
            writeln!(out, "{assignment:<COLUMN$}  # {origin}").expect("writing to a string");
        }
    }
    out
}

/// One line with every value that is not the default.
pub fn summary(settings: &Settings) -> String {
    let changed = KEYS.iter().filter(|key| *settings.origin(key) != super::Origin::Default).map(|key| {
        let (path, value) = (key.path(), (key.get)(&settings.config));
        format!("{path}={value} ({})", settings.origin(key))
    });
    let changed: Vec<_> = changed.collect();
    match changed.is_empty() {
        true => "all defaults".to_owned(),
        false => changed.join(", "),
    }
}

/// Where the origins begin, unless the value is longer.
const COLUMN: usize = 48;
