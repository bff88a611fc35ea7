//! What is told about one thing.

use console::{Style, measure_text_width};
use serde_json::{Value, json};

use crate::client::one_line;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// The daemon works, but not as well as it could, or not for long.
    Warn,
    /// The daemon does not start, or proves nothing.
    Fail,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What it is about, in a word.
    pub(super) about: &'static str,
    pub(super) level: Level,
    /// What was seen.
    pub(super) seen: String,
    /// What to do; empty if nothing.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn ok(about: &'static str, seen: impl Into<String>) -> Self {
        Self { about, level: Level::Ok, seen: seen.into(), advice: String::new() }
    }

    pub(super) fn warn(about: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, level: Level::Warn, seen: seen.into(), advice: advice.into() }
    }

    pub(super) fn fail(about: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, level: Level::Fail, seen: seen.into(), advice: advice.into() }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "about": self.about, "level": self.level.name(), "seen": self.seen, "advice": self.advice })
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// Shown only where standard output is a terminal that has colours.
    fn style(self) -> Style {
        match self {
            Self::Ok => Style::new().green(),
            Self::Warn => Style::new().yellow(),
            Self::Fail => Style::new().red().bold(),
        }
    }
}

/// All of them, a line each, and one for what to do.
pub(super) fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| measure_text_width(finding.about)).max().unwrap_or(0);
    let mut out = String::new();
    for Finding { about, level, seen, advice } in findings {
        let name = level.style().apply_to(format!("{:<4}", level.name()));
        out += &format!("{name}  {about:<width$}  {}\n", one_line(seen));
        if !advice.is_empty() {
            out += &format!("{:6}{:width$}  → {}\n", "", "", one_line(advice));
        }
    }
    out
}

/// The levels, for tests of what is judged.
#[cfg(test)]
pub(super) fn levels(findings: &[Finding]) -> Vec<Level> {
    findings.iter().map(|finding| finding.level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_each_and_one_for_what_to_do() {
        let findings = [Finding::ok("clock", "right"), Finding::fail("driver", "none\nat all", "install it")];
        let text = console::strip_ansi_codes(&table(&findings)).into_owned();
        assert_eq!(text, "ok    clock   right\nfail  driver  none at all\n              → install it\n");
        assert_eq!(findings[1].json()["level"], "fail");
    }
}
