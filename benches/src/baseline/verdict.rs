//! The rule that tells a slow-down from noise.
//!
//! A change is now / baseline. Both are medians with a standard error ([`Summary::error`]), so the change of unchanged code
//! has the relative error e = √(e_baseline² + e_now²), and the bound is **1 + max(floor, 4 e)**. For normally distributed
//! errors 4 e is passed by chance 3 times in 100,000; the spread is itself an estimate from a few rounds, which makes that
//! some ten times more likely, and what differs from one run of the program to the next (where its memory lies) is in no
//! run's spread: hence the floor, and hence a bench beyond its bound is measured again, and again: only what is beyond in
//! all [`ATTEMPTS`] is slower. The test `simulation` counts what comes out on a noisy machine.

use super::stats::Summary;

/// How often a bench is measured before it is called slower.
pub const ATTEMPTS: usize = 3;

/// What the comparison says of a bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not recorded for machines of this class.
    New,
    /// Slower beyond the bound: the only one that fails a comparison.
    Slower,
    /// Slower by more than [`Rule::limit`], but measured so badly that it may be noise.
    Unclear,
    /// Within the bound.
    Same,
    /// Faster beyond the bound: worth recording.
    Faster,
}

/// How a kind of measurement is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The bound is never nearer to 1 than this.
    pub floor: f64,
    /// Bounds above this are too wide to catch a slow-down of 1.5 for certain.
    pub limit: f64,
}

impl Rule {
    /// For ratios of times.
    pub const TIME: Self = Self { floor: 0.15, limit: 0.35 };
    /// For instruction counts. They repeat to one in ten thousand; where there are hash tables, with their random seeds, to
    /// one or two in a hundred.
    pub const COUNT: Self = Self { floor: 0.03, limit: 0.35 };

    /// Standard errors in a bound.
    const ERRORS: f64 = 4.0;

    /// By how much, relatively, a bench may be slower than its baseline.
    pub fn bound(&self, baseline: &Summary, now: &Summary) -> f64 {
        (Self::ERRORS * baseline.error().hypot(now.error())).max(self.floor)
    }

    /// Compares one measurement with the baseline.
    pub fn judge(&self, baseline: &Summary, now: &Summary) -> Verdict {
        let (change, bound) = (now.ratio / baseline.ratio, self.bound(baseline, now));
        match change {
            _ if change > 1.0 + bound => Verdict::Slower,
            _ if change > 1.0 + self.limit => Verdict::Unclear,
            _ if change < 1.0 / (1.0 + bound) => Verdict::Faster,
            _ => Verdict::Same,
        }
    }
}

impl Verdict {
    /// Whether it should be measured again before anybody believes it.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Self::Slower | Self::Unclear)
    }

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "not recorded",
            Self::Slower => "SLOWER",
            Self::Unclear => "unclear",
            Self::Same => "same",
            Self::Faster => "faster",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(ratio: f64, spread: f64) -> Summary {
        Summary { ratio, spread, rounds: 5 }
    }

    #[test]
    fn the_bound_follows_the_spread_above_the_floor() {
        let rule = Rule::TIME;
        assert_eq!(rule.bound(&summary(1.0, 0.0), &summary(1.0, 0.01)), rule.floor);
        let wide = rule.bound(&summary(1.0, 0.1), &summary(1.0, 0.1));
        assert!((wide - 4.0 * 1.2533 * 0.1 * (2.0f64 / 5.0).sqrt()).abs() < 1e-12, "{wide}");
    }

    #[test]
    fn verdicts_on_both_sides_of_the_bound() {
        let judge = |change, spread| Rule::TIME.judge(&summary(10.0, 0.01), &summary(10.0 * change, spread));
        assert_eq!(judge(1.5, 0.01), Verdict::Slower);
        assert_eq!(judge(1.16, 0.01), Verdict::Slower);
        assert_eq!(judge(1.14, 0.01), Verdict::Same);
        assert_eq!(judge(0.88, 0.01), Verdict::Same);
        assert_eq!(judge(0.86, 0.01), Verdict::Faster);
        // Rounds a third apart: 1.5 may be chance, 3 is not.
        assert_eq!(judge(1.5, 0.33), Verdict::Unclear);
        assert_eq!(judge(3.0, 0.33), Verdict::Slower);
        assert_eq!(Rule::COUNT.judge(&summary(1e6, 0.0), &summary(1.04e6, 0.0)), Verdict::Slower);
    }
}
