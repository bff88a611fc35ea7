//! The ratios of what criterion measured last, between implementations of the same group and size.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The implementation that others are compared with.
pub const REFERENCE: &str = "bellperson";

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    /// In nanoseconds.
    point_estimate: f64,
}

/// One measured operation: nanoseconds by implementation.
pub type Row = BTreeMap<String, f64>;

/// All medians below criterion's folder, by group and size.
pub fn collect(folder: &Path) -> Result<BTreeMap<(String, String), Row>> {
    let mut rows = BTreeMap::<_, Row>::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name == "new") {
                let benchmark: Benchmark = serde_json::from_slice(&fs::read(path.join("benchmark.json"))?)?;
                let estimates: Estimates = serde_json::from_slice(&fs::read(path.join("estimates.json"))?)?;
                if let Some((group, implementation, size)) = parts(&benchmark.full_id) {
                    let row = rows.entry((group, size)).or_default();
                    row.insert(implementation, estimates.median.point_estimate);
                }
            } else if path.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(rows)
}

/// Group, implementation and size of an id.
fn parts(id: &str) -> Option<(String, String, String)> {
    let mut parts = id.split('/').map(str::to_owned);
    let parts = (parts.next()?, parts.next()?, parts.next()?);
    Some(parts)
}

/// A line for each operation: the reference's time, and the others' with their ratio to it.
pub fn table(rows: &BTreeMap<(String, String), Row>) -> String {
    let mut text = String::new();
    for ((group, size), row) in rows {
        let reference = row.get(REFERENCE);
        let columns: Vec<String> = row
            .iter()
            .map(|(name, ns)| match reference {
                Some(reference) if name != REFERENCE => {
                    format!("{name} {:.3} ms ({:.3})", ns / 1e6, ns / reference)
                }
                _ => format!("{name} {:.3} ms", ns / 1e6),
            })
            .collect();
        text += &format!("{group:<20} {size:<6} {}\n", columns.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_reference_of_the_same_size() {
        let row = |pairs: &[(&str, f64)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<Row>();
        let rows = BTreeMap::from([
            (("msm".to_owned(), "2^14".to_owned()), row(&[("ifma", 2e6), ("bellperson", 8e6)])),
            (("rows".to_owned(), "2KiB".to_owned()), row(&[("cuzk", 1e6)])),
        ]);
        let text = table(&rows);
        assert!(text.contains("bellperson 8.000 ms, ifma 2.000 ms (0.250)"), "{text}");
        assert!(text.contains("rows                 2KiB   cuzk 1.000 ms\n"), "{text}");
        assert_eq!(parts("a/b"), None);
    }
}
