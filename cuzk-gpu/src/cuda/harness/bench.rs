//! Benches: how fast is a kernel, beside the device's ceiling and the goal?

use std::fmt;

use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::cuda::{
    error::CudaError,
    gpu::Gpu,
    stream::{Event, Stream},
};

/// One bench.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Its name: area first, as in `fq/products`.
    pub name: &'static str,
    /// Measures, one or more sizes or shapes.
    pub run: fn(&Gpu, &mut ChaCha8Rng) -> Result<Vec<Measurement>, String>,
}

/// What is to be reached, on one H200.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At most so many seconds.
    Seconds(f64),
    /// At least so many units a second.
    Rate(f64),
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The kernel, or group of kernels.
    pub kernel: String,
    /// What it was run on.
    pub size: String,
    /// Time of one run.
    pub seconds: f64,
    /// How many units of work a run is.
    pub work: f64,
    /// What is counted, such as `products` or `B`.
    pub unit: &'static str,
    /// Units a second that the device cannot pass (design.md), if that is known.
    pub ceiling: Option<f64>,
    /// What is to be reached, if anything is.
    pub goal: Option<Goal>,
}

impl Measurement {
    /// Units a second.
    pub fn rate(&self) -> f64 {
        self.work / self.seconds
    }

    /// Rate over ceiling.
    pub fn share_of_ceiling(&self) -> Option<f64> {
        self.ceiling.map(|ceiling| self.rate() / ceiling)
    }

    /// 1 where the goal is just reached, more where it is passed.
    pub fn ratio_to_goal(&self) -> Option<f64> {
        self.goal.map(|goal| match goal {
            Goal::Seconds(seconds) => seconds / self.seconds,
            Goal::Rate(rate) => self.rate() / rate,
        })
    }

    /// As one line of JSON, derived numbers included.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "kernel": self.kernel, "size": self.size, "seconds": self.seconds, "work": self.work, "unit": self.unit,
            "rate": self.rate(), "ceiling": self.ceiling, "share_of_ceiling": self.share_of_ceiling(),
            "goal": self.goal, "ratio_to_goal": self.ratio_to_goal(),
        })
    }

    /// The line above the table.
    pub fn heading() -> String {
        format!("{:<36} {:<18} {:>10} {:>22} {:>8} {:>6}", "kernel", "size", "time", "rate", "ceiling", "goal")
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let times = |ratio: f64| format!("{ratio:.2}");
        write!(
            f,
            "{:<36} {:<18} {:>7.3} ms {:>22} {:>8} {:>6}",
            self.kernel,
            self.size,
            1e3 * self.seconds,
            format!("{} {}/s", scaled(self.rate()), self.unit),
            self.share_of_ceiling().map_or(String::new(), percent),
            self.ratio_to_goal().map_or(String::new(), times),
        )
    }
}

/// Three digits and a prefix.
fn scaled(value: f64) -> String {
    let (factor, prefix) = match value {
        v if v >= 1e12 => (1e12, "T"),
        v if v >= 1e9 => (1e9, "G"),
        v if v >= 1e6 => (1e6, "M"),
        _ => (1.0, ""),
    };
    format!("{:.2} {prefix}", value / factor).trim_end().to_owned()
}

/// Seconds that `queue` takes on the device: it queues one run into the stream; the least of `runs` runs after one that
/// warms up.
///
/// # Errors
/// What the driver reports.
pub fn time(stream: &Stream, runs: u32, mut queue: impl FnMut() -> Result<(), CudaError>) -> Result<f64, CudaError> {
    let (begin, end) = (Event::new(stream.gpu())?, Event::new(stream.gpu())?);
    let mut least = f64::INFINITY;
    for run in 0..=runs {
        begin.record(stream)?;
        queue()?;
        end.record(stream)?;
        end.wait()?;
        if run > 0 {
            least = least.min(end.since(&begin)?.as_secs_f64());
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(goal: Goal) -> Measurement {
        Measurement {
            kernel: "fq_mul".into(),
            size: "2^20".into(),
            seconds: 0.5,
            work: 19.3e9,
            unit: "products",
            ceiling: Some(77.2e9),
            goal: Some(goal),
        }
    }

    #[test]
    fn derived_numbers() {
        let of_rate = measurement(Goal::Rate(19.3e9));
        assert_eq!(
            (of_rate.rate(), of_rate.share_of_ceiling(), of_rate.ratio_to_goal()),
            (38.6e9, Some(0.5), Some(2.0))
        );
        assert_eq!(measurement(Goal::Seconds(0.25)).ratio_to_goal(), Some(0.5));
        let line = of_rate.to_string();
        assert!(line.contains("500.000 ms") && line.contains("38.60 G products/s") && line.contains("50 %"), "{line}");
        let json = of_rate.to_json();
        assert_eq!((&json["rate"], &json["goal"]["rate"]), (&38.6e9.into(), &19.3e9.into()));
    }

    #[test]
    fn prefixes() {
        assert_eq!([1.5e13, 2e9, 3e6, 12.0].map(scaled), ["15.00 T", "2.00 G", "3.00 M", "12.00"]);
    }
}
