//! Which mirror is asked next, and after how long: in the operator's order, and away from those that fail. Pure.

use std::time::Duration;

use super::answer::Fault;

/// How patient to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Tries in a row that bring nothing, after which a mirror is left alone for good.
    pub tries: u32,
    /// The pause after the first of them; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause, also if a mirror asks for more.
    pub longest_pause: Duration,
    /// Bytes that make a try one that brought something.
    pub progress: u64,
}

impl Default for Pace {
    /// A mirror that is away for two minutes is waited for.
    fn default() -> Self {
        Self {
            tries: 8,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            progress: 1 << 20,
        }
    }
}

/// The next step after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ask a mirror.
    Ask {
        /// By its place in the list.
        mirror: usize,
        /// After this pause.
        after: Duration,
    },
    /// No mirror is left.
    GiveUp {
        /// Whether any of them may do better later.
        passing: bool,
    },
}

/// The mirrors' record for one file.
#[derive(Clone, Debug)]
pub struct Course {
    pace: Pace,
    mirrors: Vec<Standing>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Tries in a row that brought nothing.
    failures: u32,
    /// Wrong files put together from several answers.
    mixtures: u32,
    /// Not asked again.
    is_out: bool,
    /// Its latest fault was one that may pass.
    passing: bool,
}

impl Course {
    /// Nobody has been asked yet; the first is the first to be asked.
    pub fn new(mirrors: usize, pace: Pace) -> Self {
        Self { pace, mirrors: vec![Standing::default(); mirrors] }
    }

    /// What to do after a try with a mirror that brought so many bytes and then failed. `jitter` lies between 0 and 1: it
    /// keeps many who were cut off together from coming back together.
    pub fn failed(&mut self, mirror: usize, received: u64, fault: &Fault, jitter: f64) -> Turn {
        let pace = self.pace;
        let standing = &mut self.mirrors[mirror];
        standing.passing = fault.passing;
        standing.failures = if received >= pace.progress { 0 } else { standing.failures + 1 };
        standing.is_out |= !fault.passing || standing.failures >= pace.tries;
        let went_on = standing.failures == 0;
        let next = match went_on && !standing.is_out {
            true => Some(mirror),
            false => self.best(),
        };
        match next {
            None => Turn::GiveUp { passing: self.mirrors.iter().any(|standing| standing.passing) },
            // Somebody who has not failed yet need not be waited for.
            Some(other) if other != mirror && self.mirrors[other].failures == 0 => {
                Turn::Ask { mirror: other, after: Duration::ZERO }
            }
            Some(next) => {
                let asked_for = fault.wait.filter(|_| next == mirror).unwrap_or_default();
                let after = self.pause(self.mirrors[next].failures, jitter).max(asked_for).min(pace.longest_pause);
                Turn::Ask { mirror: next, after }
            }
        }
    }

    /// What to do after a mirror has given a whole file with a wrong digest. One whose bytes came in several answers may
    /// be a mixture of versions: that is tried once more, from the beginning.
    pub fn gave_wrong_file(&mut self, mirror: usize, in_one_piece: bool) -> Turn {
        let standing = &mut self.mirrors[mirror];
        if !in_one_piece && standing.mixtures == 0 {
            standing.mixtures += 1;
            return Turn::Ask { mirror, after: Duration::ZERO };
        }
        (standing.is_out, standing.passing) = (true, false);
        match self.best() {
            Some(mirror) => Turn::Ask { mirror, after: Duration::ZERO },
            None => Turn::GiveUp { passing: self.mirrors.iter().any(|standing| standing.passing) },
        }
    }

    /// The one with the fewest failures, the first of them in the operator's order.
    fn best(&self) -> Option<usize> {
        let left = self.mirrors.iter().enumerate().filter(|(_, standing)| !standing.is_out);
        left.min_by_key(|(_, standing)| standing.failures).map(|(mirror, _)| mirror)
    }

    /// Doubles with each failure; between half and the whole of that.
    fn pause(&self, failures: u32, jitter: f64) -> Duration {
        let doubled = self.pace.first_pause.saturating_mul(1 << failures.saturating_sub(1).min(20));
        doubled.min(self.pace.longest_pause).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn course(mirrors: usize, tries: u32) -> Course {
        Course::new(mirrors, Pace { tries, first_pause: S, longest_pause: 10 * S, progress: 100 })
    }

    fn cut() -> Fault {
        Fault::passing("cut")
    }

    fn ask(mirror: usize, after: Duration) -> Turn {
        Turn::Ask { mirror, after }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let mut course = course(1, 6);
        let turns: Vec<_> = (0..6).map(|_| course.failed(0, 0, &cut(), 1.0)).collect();
        let pauses = [S, 2 * S, 4 * S, 8 * S, 10 * S].map(|after| ask(0, after));
        assert_eq!(turns[..5], pauses);
        assert_eq!(turns[5], Turn::GiveUp { passing: true });
    }

    #[test]
    fn jitter_takes_up_to_half() {
        for (jitter, after) in [(0.0, S / 2), (0.5, S * 3 / 4), (7.0, S), (-1.0, S / 2)] {
            assert_eq!(course(1, 6).failed(0, 0, &cut(), jitter), ask(0, after));
        }
    }

    #[test]
    fn who_brings_something_is_asked_again_for_ever() {
        let mut course = course(2, 2);
        assert_eq!(course.failed(0, 99, &cut(), 1.0), ask(1, Duration::ZERO));
        for _ in 0..20 {
            assert_eq!(course.failed(1, 100, &cut(), 1.0), ask(1, S));
        }
    }

    #[test]
    fn others_are_tried_in_order_and_by_failure() {
        let mut course = course(3, 3);
        assert_eq!(course.failed(0, 0, &cut(), 1.0), ask(1, Duration::ZERO));
        assert_eq!(course.failed(1, 0, &Fault::lasting("404"), 1.0), ask(2, Duration::ZERO));
        assert_eq!(course.failed(2, 0, &cut(), 1.0), ask(0, S));
        assert_eq!(course.failed(0, 0, &cut(), 1.0), ask(2, S));
        assert_eq!(course.failed(2, 0, &cut(), 1.0), ask(0, 2 * S));
        assert_eq!(course.failed(0, 0, &cut(), 1.0), ask(2, 2 * S));
        assert_eq!(course.failed(2, 0, &cut(), 1.0), Turn::GiveUp { passing: true });
    }

    #[test]
    fn a_mirror_may_ask_for_a_longer_pause_but_not_for_any() {
        let wait = |s| Fault { wait: Some(s * S), ..cut() };
        assert_eq!(course(1, 3).failed(0, 0, &wait(5), 1.0), ask(0, 5 * S));
        assert_eq!(course(1, 3).failed(0, 0, &wait(3600), 1.0), ask(0, 10 * S));
        // Nobody waits for one in order to ask another.
        assert_eq!(course(2, 3).failed(0, 0, &wait(5), 1.0), ask(1, Duration::ZERO));
    }

    #[test]
    fn what_never_passes_ends_at_once() {
        assert_eq!(course(1, 9).failed(0, 0, &Fault::lasting("404"), 1.0), Turn::GiveUp { passing: false });
        // Also after it has brought much.
        assert_eq!(course(1, 9).failed(0, 1000, &Fault::lasting("404"), 1.0), Turn::GiveUp { passing: false });
    }

    #[test]
    fn a_wrong_file_is_the_mirrors_fault_only_in_one_piece() {
        let mut course = course(2, 3);
        assert_eq!(course.gave_wrong_file(0, false), ask(0, Duration::ZERO));
        assert_eq!(course.gave_wrong_file(0, false), ask(1, Duration::ZERO));
        assert_eq!(course.gave_wrong_file(1, true), Turn::GiveUp { passing: false });
    }
}
