//! When which jobs arrive: made up, or read from a file.

use std::num::ParseFloatError;

use cuzk_synth::circuit::{CircuitId, CircuitKind, SectorSize};

use crate::core::job::Priority;

/// A job comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When, in seconds.
    pub at: f64,
    /// What is to be proven.
    pub circuit: CircuitId,
    /// How urgent it is.
    pub priority: Priority,
}

impl Arrival {
    /// How many partitions the circuit's proofs have.
    pub fn partitions(&self) -> usize {
        match (self.circuit.kind, self.circuit.size) {
            (CircuitKind::Porep, SectorSize::Gib32 | SectorSize::Gib64) => 10,
            _ => 1,
        }
    }
}

/// `count` proofs of 32 GiB sectors, of which never more than `at_once` are unfinished, as a node sends them that submits
/// the next when one is done. Here: all at the start, `at_once` of them at once and one each `pause` seconds then.
pub fn stream(count: usize, at_once: usize, pause: f64) -> Vec<Arrival> {
    let circuit = CircuitId::porep(SectorSize::Gib32);
    let at = |n: usize| n.saturating_sub(at_once) as f64 * pause;
    (0..count).map(|n| Arrival { at: at(n), circuit, priority: Priority::Normal }).collect()
}

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}; expected: SECONDS CIRCUIT [PRIORITY], such as \"12.5 porep-32g high\"")]
pub struct TraceError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads a trace: a line a job with seconds, circuit and priority (NORMAL if absent); empty lines and `#` are skipped.
pub fn parse(text: &str) -> Result<Vec<Arrival>, TraceError> {
    let mut arrivals = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            arrivals.push(arrival(&words).map_err(|reason| TraceError { line: n + 1, reason })?);
        }
    }
    arrivals.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(arrivals)
}

fn arrival(words: &[&str]) -> Result<Arrival, String> {
    let (at, circuit, priority) = match words {
        [at, circuit] => (at, circuit, "normal"),
        [at, circuit, priority] => (at, circuit, *priority),
        _ => return Err(format!("{} words", words.len())),
    };
    let at: f64 = at.parse().map_err(|e: ParseFloatError| format!("{at:?}: {e}"))?;
    if !(0.0..1e9).contains(&at) {
        return Err(format!("{at} is no time"));
    }
    let known = Priority::ALL.into_iter().find(|p| p.label() == priority.to_ascii_lowercase());
    Ok(Arrival {
        at,
        circuit: circuit.parse().map_err(|e| format!("{e}"))?,
        priority: known.ok_or_else(|| format!("{priority:?} is no priority"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_in_order_of_time() {
        let read = parse("# two jobs\n\n7 porep-2k LOW\n1.5 porep-32g # the first\n").expect("legal");
        let seen: Vec<_> = read.iter().map(|a| (a.at, a.priority, a.partitions())).collect();
        assert_eq!(seen, [(1.5, Priority::Normal, 10), (7.0, Priority::Low, 1)]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for text in
            ["x porep-2k", "1 porep-3k", "1 porep-2k soon", "1", "-1 porep-2k", "1 porep-2k low now", "NaN porep-2k"]
        {
            let error = parse(&format!("0 porep-2k\n{text}\n")).expect_err(text);
            assert_eq!(error.line, 2, "{error}");
        }
    }
}
