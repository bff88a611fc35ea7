//! Progress bars for what takes long on the terminal.

use std::{sync::Mutex, time::Duration};

use cuzk_gpu::generate::Progress;
use cuzk_synth::circuit::CircuitId;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows the generation of parameters; draws nothing where standard error is no terminal.
pub(super) struct GenerateBar {
    bar: ProgressBar,
    // Reports come from one thread at a time, but the callback must be shareable.
    counting: Mutex<bool>,
}

impl GenerateBar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, counting: Mutex::new(false) }
    }

    pub(super) fn report(&self, progress: Progress) {
        match progress {
            Progress::Recording => self.bar.set_message("recording the constraint system"),
            Progress::Evaluating => self.bar.set_message("evaluating its polynomials"),
            Progress::Points { done, total } => {
                let mut counting = self.counting.lock().unwrap_or_else(|e| e.into_inner());
                if !*counting {
                    *counting = true;
                    self.bar.set_length(total);
                    self.bar.set_style(points_style());
                    self.bar.set_message("computing points");
                }
                self.bar.set_position(done);
            }
        }
    }
}

impl Drop for GenerateBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how much of a parameter file has been read.
pub(super) struct ReadBar {
    bar: ProgressBar,
}

impl ReadBar {
    pub(super) fn new(circuit: CircuitId) -> Self {
        let bar = ProgressBar::new(0).with_message(format!("reading the parameters of {circuit}"));
        bar.set_style(bytes_style());
        Self { bar }
    }

    pub(super) fn report(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }
}

impl Drop for ReadBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

pub(super) fn bytes_style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    ProgressStyle::with_template(template).expect("a legal template")
}

fn points_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % of {len}, {eta} left").expect("a legal template")
}
