//! Measurements from elsewhere, one JSON object a line, so that a program on another machine can write them as it goes:
//!
//! ```json
//! {"class": "gpu NVIDIA H200", "id": "ntt/cuda/fr/2^22", "value": 0.00123, "calibration": 0.00045}
//! ```
//!
//! One line is one round: `value` and `calibration` were measured side by side, in one unit. A bench has as many lines as
//! rounds, in any order; several classes may be in one file. Without `calibration` the value stands for itself, which is
//! right for times on a GPU (its clock is its own) and for counts. Lines that are empty or begin with `#` are skipped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The ratios of the rounds, by class and bench.
pub type Rounds = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    class: String,
    id: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<f64>,
}

/// Reads such lines.
///
/// # Errors
/// The first line that is wrong, and what is wrong with it.
pub fn parse(text: &str) -> Result<Rounds, String> {
    let mut ratios = Rounds::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line: Line = serde_json::from_str(line).map_err(|e| format!("line {number}: {e}"))?;
        let ratio = line.value / line.calibration.unwrap_or(1.0);
        if !(ratio.is_finite() && ratio > 0.0) {
            return Err(format!("line {number}: value and calibration of {} must be positive", line.id));
        }
        ratios.entry(line.class).or_default().entry(line.id).or_default().push(ratio);
    }
    Ok(ratios)
}

/// Such lines of the rounds of one class, ratios as values.
pub fn render(class: &str, rounds: &BTreeMap<String, Vec<f64>>) -> String {
    let mut text = String::new();
    for (id, ratios) in rounds {
        for &value in ratios {
            let line = Line { class: class.to_owned(), id: id.clone(), value, calibration: None };
            text += &serde_json::to_string(&line).expect("strings and numbers have a JSON form");
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_bench_are_its_rounds() {
        let text = r#"
            # two rounds and another bench
            {"class": "gpu X", "id": "ntt", "value": 4.0, "calibration": 2.0}
            {"class": "gpu X", "id": "msm", "value": 7.0}
            {"class": "gpu X", "id": "ntt", "value": 8.0, "calibration": 2.0}
        "#;
        let measured = parse(text).expect("good lines");
        assert_eq!(measured["gpu X"]["ntt"], [2.0, 4.0]);
        assert_eq!(measured["gpu X"]["msm"], [7.0]);
        assert_eq!(parse(&render("gpu X", &measured["gpu X"])), Ok(measured));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = [
            (r#"{"class": "x", "id": "y"}"#, "line 1: missing field `value`"),
            (r#"{"class": "x", "id": "y", "value": 0}"#, "line 1: value and calibration of y must be positive"),
            (r#"{"class": "x", "id": "y", "value": 1, "unit": "s"}"#, "line 1: unknown field `unit`"),
            ("\n[]", "line 2: "),
        ];
        for (text, reason) in wrong {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
