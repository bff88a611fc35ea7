//! Following a job while it is proven: bars in a terminal, lines elsewhere.

use std::io::IsTerminal;

use cuzk_proto::v1::{Job, JobState};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::text;

/// Shows how far a job is. What it shows goes to standard error.
pub(super) enum Follow {
    /// Nothing is to be shown.
    Quiet,
    /// A bar for each phase.
    Bars(Bars),
    /// A line when something has changed.
    Lines {
        /// What was told last.
        last: String,
    },
}

/// Partitions synthesized, and partitions proven.
pub(super) struct Bars {
    all: MultiProgress,
    state: ProgressBar,
    synthesis: ProgressBar,
    proofs: ProgressBar,
}

impl Follow {
    /// As fits what standard error is.
    pub(super) fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Bars(Bars::new()),
            (false, false) => Self::Lines { last: String::new() },
        }
    }

    /// Shows a picture.
    pub(super) fn show(&mut self, job: &Job) {
        match self {
            Self::Quiet => {}
            Self::Bars(bars) => bars.show(job),
            Self::Lines { last } => {
                let line = line(job);
                if *last != line {
                    eprintln!("{line}");
                    *last = line;
                }
            }
        }
    }

    /// Takes what is drawn away.
    pub(super) fn end(&self) {
        if let Self::Bars(bars) = self {
            // The terminal may have gone.
            let _ = bars.all.clear();
        }
    }
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let add = |bar: ProgressBar, style: &str| {
            bar.set_style(ProgressStyle::with_template(style).expect("a legal template"));
            all.add(bar)
        };
        let state = add(ProgressBar::new_spinner(), "{spinner} {wide_msg}");
        state.enable_steady_tick(std::time::Duration::from_millis(200));
        // A bar of one width, and words that are cut: lines that wrap could not be drawn over.
        let bar = "{prefix:<10} {bar:16} {pos} of {len} {wide_msg}";
        let synthesis = add(ProgressBar::new(0).with_prefix("synthesis"), bar);
        let proofs = add(ProgressBar::new(0).with_prefix("proofs"), bar);
        Self { all, state, synthesis, proofs }
    }

    fn show(&self, job: &Job) {
        let counts = job.stages.unwrap_or_default();
        let of = u64::from(text::partitions(job));
        self.state.set_message(headline(job));
        self.synthesis.set_length(of);
        self.synthesis.set_position(u64::from(counts.ready + counts.proving + counts.proved));
        self.proofs.set_length(of);
        self.proofs.set_position(u64::from(counts.proved));
        self.proofs.set_message(phases(job));
    }
}

/// A picture in a line.
fn line(job: &Job) -> String {
    let phases = phases(job);
    let phases = if phases.is_empty() { phases } else { format!(" ({phases})") };
    format!("{}{phases}", headline(job))
}

fn headline(job: &Job) -> String {
    match job.state() {
        JobState::JobQueued if job.srs_load_ms > 0 && job.queue_position == 0 => {
            format!("job {}: parameters are being loaded", job.job_id)
        }
        JobState::JobQueued => format!("job {}: queued, {} ahead of it", job.job_id, job.queue_position),
        state => format!("job {}: {}: {}", job.job_id, text::state_name(state), text::stages(job)),
    }
}

/// What devices do with it, each phase once.
fn phases(job: &Job) -> String {
    let mut names: Vec<&str> =
        job.partitions.iter().map(|p| p.phase.as_str()).filter(|phase| !phase.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{Partition, StageCounts};

    use super::*;

    #[test]
    fn a_line_says_where_the_partitions_are() {
        let phase = |phase: &str| Partition { phase: phase.into(), ..Partition::default() };
        let mut job = Job {
            job_id: "s-1".into(),
            state: JobState::JobRunning.into(),
            stages: Some(StageCounts { proving: 2, proved: 1, waiting: 7, ..StageCounts::default() }),
            partitions: vec![phase("stage"), phase("lock_hold"), phase("stage"), phase("")],
            ..Job::default()
        };
        assert_eq!(line(&job), "job s-1: running: 1 proved, 2 proving, 7 waiting (lock_hold, stage)");
        job.state = JobState::JobQueued.into();
        job.queue_position = 4;
        job.partitions.clear();
        assert_eq!(line(&job), "job s-1: queued, 4 ahead of it");
        (job.queue_position, job.srs_load_ms) = (0, 3);
        assert_eq!(line(&job), "job s-1: parameters are being loaded");
    }
}
