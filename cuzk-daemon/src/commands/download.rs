//! How a download is shown: a bar on a terminal, else a line now and then.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use indicatif::{HumanBytes, HumanDuration, ProgressBar};

use super::progress::bytes_style;
use crate::fetch::transfer::Report;

/// Shows one file's way here.
pub(super) struct Download {
    /// Which file, in fewer words than its name has.
    name: String,
    /// `None` where standard error is no terminal.
    bar: Option<ProgressBar>,
    lines: Mutex<Lines>,
}

impl Download {
    pub(super) fn new(name: &str) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0).with_message(name.to_owned());
            bar.set_style(bytes_style());
            bar
        });
        Self { name: name.to_owned(), bar, lines: Mutex::new(Lines::new(Instant::now())) }
    }

    pub(super) fn report(&self, report: Report<'_>) {
        match report {
            Report::Reading(done, of) => self.progress("reading what is here of it", done, Some(of)),
            Report::Received(done, of) => self.progress("fetching", done, of),
            Report::Asking(url, 0) => self.say(&format!("{}: from {url}", self.name)),
            Report::Asking(url, from) => self.say(&format!("{}: from {url}, from byte {from} on", self.name)),
            Report::Failed(url, fault) => self.say(&format!("{}: {url} {fault}", self.name)),
            Report::Pausing(pause) => {
                self.say(&format!("{}: next try in {:.0} s", self.name, pause.as_secs_f64().ceil()))
            }
        }
        if let Report::Asking(_, from) = report {
            self.lines().begin(Instant::now(), from);
            if let Some(bar) = &self.bar {
                bar.set_position(from);
                bar.reset_eta();
            }
        }
    }

    fn progress(&self, doing: &str, done: u64, of: Option<u64>) {
        if let Some(bar) = &self.bar {
            if let Some(of) = of {
                bar.set_length(of);
            }
            bar.set_position(done);
        } else if let Some(line) = self.lines().line(Instant::now(), done, of) {
            self.say(&format!("{}: {doing}, {line}", self.name));
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// When a line is due, and what it says. Pure: the time is told.
#[derive(Debug)]
struct Lines {
    begun: Instant,
    /// What was here at that time.
    from: u64,
    told: Instant,
}

impl Lines {
    fn new(now: Instant) -> Self {
        Self { begun: now, from: 0, told: now }
    }

    /// Rates are counted from here.
    fn begin(&mut self, now: Instant, from: u64) {
        (self.begun, self.from) = (now, from);
    }

    fn line(&mut self, now: Instant, done: u64, of: Option<u64>) -> Option<String> {
        if now.duration_since(self.told) < BETWEEN {
            return None;
        }
        self.told = now;
        let seconds = now.duration_since(self.begun).as_secs_f64().max(1e-3);
        let rate = done.saturating_sub(self.from) as f64 / seconds;
        let so_far = match of {
            Some(of) => format!("{} of {} ({} %)", HumanBytes(done), HumanBytes(of), 100 * done / of.max(1)),
            None => HumanBytes(done).to_string(),
        };
        let left = of.filter(|_| rate > 0.0).map(|of| of.saturating_sub(done) as f64 / rate);
        // A rate close to nothing would promise more time than can be told.
        let left = left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let left = left.map_or(String::new(), |left| format!(", {} left", HumanDuration(left)));
        Some(format!("{so_far}, {}/s{left}", HumanBytes(rate as u64)))
    }
}

/// Between two lines.
const BETWEEN: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_line_now_and_then_tells_rate_and_time_left() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut lines = Lines::new(begin);
        lines.begin(at(0), 100 * MIB);
        assert_eq!(lines.line(at(14), 200 * MIB, None), None);
        let line = lines.line(at(20), 300 * MIB, Some(400 * MIB));
        assert_eq!(line.as_deref(), Some("300.00 MiB of 400.00 MiB (75 %), 10.00 MiB/s, 10 seconds left"));
        assert_eq!(lines.line(at(34), 301 * MIB, None), None);
        assert_eq!(lines.line(at(40), 500 * MIB, None).as_deref(), Some("500.00 MiB, 10.00 MiB/s"));
    }

    #[test]
    fn no_progress_promises_nothing() {
        let begin = Instant::now();
        let mut lines = Lines::new(begin);
        let line = lines.line(begin + Duration::from_secs(60), 0, Some(0)).expect("due");
        assert_eq!(line, "0 B of 0 B (0 %), 0 B/s");
    }
}
