//! A cumulative histogram over fixed bounds. It only ever grows, so rates over it are true.

use std::time::Duration;

/// Upper bounds in seconds, a factor of about 3 apart: from one small kernel to a full CPU proof.
pub(super) const BOUNDS_SECONDS: [f64; 13] =
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];

/// Counts of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Observations in each bucket by itself; what is above the last bound is only in `count`.
    buckets: [u64; BOUNDS_SECONDS.len()],
    count: u64,
    sum: Duration,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS_SECONDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// For each bound, how many observations were not above it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        BOUNDS_SECONDS.iter().zip(&self.buckets).scan(0, |below, (bound, in_bucket)| {
            *below += in_bucket;
            Some((*bound, *below))
        })
    }

    /// All observations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_cumulative() {
        let mut h = Histogram::default();
        for ms in [1, 2, 2, 50, 5_000_000] {
            h.observe(Duration::from_millis(ms));
        }
        let counts: Vec<u64> = h.cumulative().map(|(_, n)| n).collect();
        assert_eq!(counts[..5], [1, 3, 3, 3, 4], "the bound itself is inside");
        assert_eq!(counts.last(), Some(&4), "5000 s is above every bound");
        assert_eq!((h.count(), h.sum()), (5, Duration::from_millis(5_000_055)));
    }
}
