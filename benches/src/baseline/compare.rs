//! Measurements against a class of the baseline, as a table.

use std::collections::BTreeMap;

use super::{
    file::Baseline,
    stats::Summary,
    verdict::{ATTEMPTS, Rule, Verdict},
};

/// One bench, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The bench.
    pub id: String,
    /// The mildest of its measurements.
    pub now: Summary,
    /// What was recorded.
    pub baseline: Option<Summary>,
    /// How much slower it may be.
    pub bound: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// Compares measurements with what is recorded for `class`. What seems slower is handed to `again`, which measures those
/// benches once more, up to [`ATTEMPTS`] in all: a bench is slower if it is slower each time.
///
/// # Errors
/// Those of `again`.
pub fn compare<E>(
    baseline: &Baseline,
    class: &str,
    rule: Rule,
    measured: BTreeMap<String, Summary>,
    mut again: impl FnMut(&[String]) -> Result<BTreeMap<String, Summary>, E>,
) -> Result<Vec<Row>, E> {
    let judged = |id: String, now: Summary| {
        let recorded = baseline.find(class, &id).map(|entry| entry.summary);
        Row {
            bound: recorded.map(|recorded| rule.bound(&recorded, &now)),
            verdict: recorded.map_or(Verdict::New, |recorded| rule.judge(&recorded, &now)),
            id,
            now,
            baseline: recorded,
        }
    };
    let mut rows: Vec<Row> = measured.into_iter().map(|(id, now)| judged(id, now)).collect();
    for _ in 1..ATTEMPTS {
        let doubtful = rows.iter().filter(|row| row.verdict.is_doubtful()).map(|row| row.id.clone());
        let doubtful: Vec<String> = doubtful.collect();
        if doubtful.is_empty() {
            break;
        }
        for (id, now) in again(&doubtful)? {
            if let Some(row) = rows.iter_mut().find(|row| row.id == id && now.ratio < row.now.ratio) {
                *row = judged(id, now);
            }
        }
    }
    Ok(rows)
}

/// Whether any bench is slower.
pub fn fails(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.verdict == Verdict::Slower)
}

/// The rows as a table: bench, now, baseline, change, bound, verdict.
pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0).max("bench".len());
    let mut text = format!(
        "{:width$} {:>12} {:>7} {:>12} {:>8} {:>7}  verdict\n",
        "bench", "now", "spread", "baseline", "change", "bound"
    );
    for row in rows {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        text += &format!(
            "{:width$} {:>12} {:>7} {:>12} {:>8} {:>7}  {}\n",
            row.id,
            number(row.now.ratio),
            percent(row.now.spread, ""),
            or_dash(row.baseline.map(|baseline| number(baseline.ratio))),
            or_dash(row.baseline.map(|baseline| percent(row.now.ratio / baseline.ratio - 1.0, "+"))),
            or_dash(row.bound.map(|bound| percent(bound, "+"))),
            row.verdict.word()
        );
    }
    text
}

/// Four digits, or all of a large whole number.
fn number(value: f64) -> String {
    let decimals = (3 - value.log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

fn percent(value: f64, plus: &str) -> String {
    let plus = if value >= 0.0 { plus } else { "" };
    format!("{plus}{:.1}%", 100.0 * value)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::baseline::file::Provenance;

    fn measured(ratios: &[(&str, f64)]) -> BTreeMap<String, Summary> {
        let summary = |ratio| Summary { ratio, spread: 0.01, rounds: 5 };
        ratios.iter().map(|(id, ratio)| ((*id).to_owned(), summary(*ratio))).collect()
    }

    fn baseline() -> Baseline {
        let mut baseline = Baseline::default();
        baseline.record("here", Provenance::default(), &measured(&[("a", 10.0), ("b", 10.0)]));
        baseline
    }

    fn verdicts(class: &str, now: &[(&str, f64)], again: &[&[(&str, f64)]]) -> (Vec<Verdict>, usize) {
        let mut attempts = 0;
        let rows = compare(&baseline(), class, Rule::TIME, measured(now), |_| {
            attempts += 1;
            Ok::<_, Infallible>(measured(again[attempts - 1]))
        });
        let Ok(rows) = rows;
        (rows.iter().map(|row| row.verdict).collect(), attempts)
    }

    #[test]
    fn a_slow_down_must_be_there_each_time() {
        use Verdict::{Faster, New, Same, Slower};
        assert_eq!(verdicts("here", &[("a", 10.5), ("b", 8.0), ("c", 1.0)], &[]), (vec![Same, Faster, New], 0));
        assert_eq!(verdicts("here", &[("a", 15.0), ("b", 10.0)], &[&[("a", 10.2)]]), (vec![Same, Same], 1));
        assert_eq!(verdicts("here", &[("a", 15.0)], &[&[("a", 16.0)], &[("a", 15.5)]]), (vec![Slower], 2));
        assert_eq!(verdicts("elsewhere", &[("a", 99.0)], &[]), (vec![New], 0));
    }

    #[test]
    fn the_table_has_a_line_for_each_bench() {
        let mut rows = Vec::new();
        for (class, ratio) in [("here", 15.0), ("elsewhere", 123456.0)] {
            let again = |_: &[String]| Ok::<_, Infallible>(BTreeMap::new());
            let Ok(more) = compare(&baseline(), class, Rule::TIME, measured(&[("a", ratio)]), again);
            rows.extend(more);
        }
        assert!(fails(&rows) && !fails(&rows[1..]));
        let text = table(&rows);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a", "15.00", "1.0%", "10.00", "+50.0%", "+15.0%", "SLOWER"]);
        assert_eq!(lines[2], ["a", "123456", "1.0%", "-", "-", "-", "not", "recorded"]);
        assert_eq!([number(0.01234), number(9.8765), number(9999.4)], ["0.01234", "9.877", "9999"]);
    }
}
