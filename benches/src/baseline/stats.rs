//! From samples to one number: how many times the calibration a bench takes, and how far that can be trusted.

use serde::{Deserialize, Serialize};

/// One visit to a bench: its samples, each between two passes of its calibration. All in seconds.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// The bench.
    pub samples: Vec<f64>,
    /// The calibration before the first sample, between them, and after the last: one more than there are samples.
    pub calibrations: Vec<f64>,
}

impl Visit {
    /// The median of each sample over the mean of the calibrations beside it: a machine that is slowed down by others for
    /// longer than a sample slows both, and a hiccup in less than half of the samples does not count.
    pub fn ratio(&self) -> f64 {
        let beside = self.calibrations.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        let ratios: Vec<f64> =
            self.samples.iter().zip(beside).map(|(sample, calibration)| sample / calibration).collect();
        median(&ratios)
    }
}

/// A bench after all rounds of a run, or as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Times of the calibration; for instruction counts, instructions. The median over the rounds.
    pub ratio: f64,
    /// How far rounds are apart: their standard deviation over the ratio, estimated from the median of the distances to
    /// the median (times 1.4826, as for normally distributed ones).
    pub spread: f64,
    /// How many rounds.
    pub rounds: usize,
}

impl Summary {
    /// Sums up the ratios of the rounds. `None` if there is none, or any is no positive number.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let usable = !ratios.is_empty() && ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0);
        usable.then(|| {
            let ratio = median(ratios);
            let distances: Vec<f64> = ratios.iter().map(|r| (r - ratio).abs()).collect();
            Self { ratio, spread: 1.4826 * median(&distances) / ratio, rounds: ratios.len() }
        })
    }

    /// Standard error of [`Self::ratio`], relative: of a median of n normally distributed values it is about
    /// 1.2533 / √n of their standard deviation.
    pub fn error(&self) -> f64 {
        1.2533 * self.spread / (self.rounds as f64).sqrt()
    }
}

/// The middle value; the mean of the two in the middle of an even number.
///
/// # Panics
/// If there is no value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (middle, odd) = (sorted.len() / 2, sorted.len() % 2 == 1);
    if odd { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hiccup_does_not_move_the_ratio_and_a_slow_machine_slows_both() {
        let quiet = Visit { samples: vec![6.0, 6.0, 6.0], calibrations: vec![2.0; 4] };
        assert_eq!(quiet.ratio(), 3.0);
        let hiccup = Visit { samples: vec![6.0, 60.0, 6.0], calibrations: vec![2.0; 4] };
        assert_eq!(hiccup.ratio(), 3.0);
        let slowed = Visit { samples: vec![6.0, 12.0, 12.0], calibrations: vec![2.0, 2.0, 4.0, 4.0] };
        assert_eq!(slowed.ratio(), 3.0);
    }

    #[test]
    fn a_summary_is_of_positive_numbers() {
        let summary = Summary::of(&[10.0, 11.0, 9.0, 10.0, 30.0]).expect("five numbers");
        assert_eq!((summary.ratio, summary.rounds), (10.0, 5));
        assert!((summary.spread - 0.14826).abs() < 1e-12, "{}", summary.spread);
        assert!((summary.error() - 0.14826 * 1.2533 / 5f64.sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[2.0, 4.0]).map(|s| s.ratio), Some(3.0));
        for unusable in [&[][..], &[0.0], &[1.0, f64::NAN], &[f64::INFINITY], &[-1.0]] {
            assert_eq!(Summary::of(unusable), None, "{unusable:?}");
        }
    }
}
