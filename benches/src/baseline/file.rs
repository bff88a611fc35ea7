//! `baseline.json`: what benches took, for each class of machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::Summary;

/// The one version of the format so far.
const VERSION: u32 = 1;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Of the format.
    version: u32,
    /// By class of machines: what vector instructions are worth beside scalar ones, and threads beside one, differs
    /// between processors, and a GPU is another thing altogether.
    pub classes: BTreeMap<String, Class>,
}

/// What is recorded for one class of machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Where its latest record comes from.
    pub latest: Provenance,
    /// By the id of the bench.
    pub benches: BTreeMap<String, Entry>,
}

/// Where a record comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The machine, for people.
    pub machine: String,
    /// The commit that was measured, with a plus sign if the work tree had changes.
    pub commit: String,
    /// The day, as 2026-11-30.
    pub date: String,
    /// Why it was recorded.
    pub reason: String,
}

/// What is recorded for one bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The measurement.
    #[serde(flatten)]
    pub summary: Summary,
    /// The commit that was measured.
    pub commit: String,
}

impl Default for Baseline {
    fn default() -> Self {
        Self { version: VERSION, classes: BTreeMap::new() }
    }
}

impl Baseline {
    /// Reads the file's text.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let baseline: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match baseline.version {
            VERSION => Ok(baseline),
            other => Err(format!("is of version {other}, this program reads version {VERSION}")),
        }
    }

    /// The file's text: one line a value, so that a change reads well as a diff.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers have a JSON form");
        text.push('\n');
        text
    }

    /// Puts measurements into a class in place of older ones of the same benches; others stay.
    pub fn record(&mut self, class: &str, provenance: Provenance, measured: &BTreeMap<String, Summary>) {
        let class = self.classes.entry(class.to_owned()).or_default();
        for (id, summary) in measured {
            // Six digits are more than any measurement has, and keep diffs short.
            let summary = Summary { ratio: six_digits(summary.ratio), spread: six_digits(summary.spread), ..*summary };
            class.benches.insert(id.clone(), Entry { summary, commit: provenance.commit.clone() });
        }
        class.latest = provenance;
    }

    /// What is recorded of a bench in a class.
    pub fn find(&self, class: &str, id: &str) -> Option<&Entry> {
        self.classes.get(class)?.benches.get(id)
    }
}

fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a number was printed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(id: &str, ratio: f64) -> BTreeMap<String, Summary> {
        BTreeMap::from([(id.to_owned(), Summary { ratio, spread: 0.0123456789, rounds: 5 })])
    }

    fn provenance(commit: &str) -> Provenance {
        Provenance { commit: commit.to_owned(), ..Provenance::default() }
    }

    #[test]
    fn records_replace_what_was_measured_and_keep_the_rest() {
        let mut baseline = Baseline::default();
        baseline.record("a", provenance("1"), &measured("x", 1.23456789));
        baseline.record("a", provenance("2"), &measured("y", 2.0));
        baseline.record("b", provenance("3"), &measured("x", 3.0));
        baseline.record("a", provenance("4"), &measured("y", 4.0));
        let found = |class, id| baseline.find(class, id).map(|entry| (entry.summary.ratio, entry.commit.as_str()));
        assert_eq!(found("a", "x"), Some((1.23457, "1")));
        assert_eq!(found("a", "y"), Some((4.0, "4")));
        assert_eq!(found("b", "y"), None);
        assert_eq!(baseline.classes["a"].latest.commit, "4");
        assert_eq!(Baseline::parse(&baseline.render()), Ok(baseline));
    }

    #[test]
    fn other_versions_are_refused() {
        let error = Baseline::parse(r#"{"version": 2, "classes": {}}"#).expect_err("another version");
        assert_eq!(error, "is of version 2, this program reads version 1");
        assert!(Baseline::parse("{}").is_err());
    }
}
