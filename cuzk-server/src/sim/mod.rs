//! A simulator of the engine: the same [`Core`](crate::core::Core) that serves, with a virtual clock and models of the
//! machine in place of threads, devices and proofs. It replays days of proving in milliseconds.
//!
//! * [`model`]: what a machine and the phases of a partition are like, and the machines we know
//! * [`trace`]: when which jobs arrive
//! * `processor`: CPU tasks that share cores and memory bandwidth
//! * `world`: the events, and the rules that must hold after each of them
//!
//! It answers what a change of workers, memory or scheduling would bring, and whether every rule of the core holds under
//! random arrivals and faults. It says nothing about how fast a kernel is: that goes in.

pub mod model;
mod processor;
#[cfg(test)]
mod tests;
pub mod trace;
mod world;

use std::fmt;

pub use world::{Violation, run};

use crate::core::job::Priority;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// On which machine.
    pub machine: model::Machine,
    /// Jobs by time of arrival.
    pub trace: Vec<trace::Arrival>,
    /// What goes wrong.
    pub faults: Faults,
}

/// How often things go wrong, each as a probability, and the seed of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// A synthesis panics.
    pub synthesis: f64,
    /// A device fails at a partition.
    pub device: f64,
    /// A device fails and is sick then.
    pub sick: f64,
    /// A proof does not verify.
    pub bad_proof: f64,
    /// A proof never comes back, so that the watchdog has to.
    pub hang: f64,
    /// Reviving a sick device fails.
    pub revival: f64,
    /// A job is cancelled while it runs.
    pub cancel: f64,
    /// Equal seeds give equal runs.
    pub seed: u64,
}

/// What came of it. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Jobs that got their proof.
    pub completed: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Jobs that were cancelled.
    pub cancelled: usize,
    /// Jobs that were refused at their arrival.
    pub refused: usize,
    /// Partitions proven and verified.
    pub partitions: usize,
    /// From the first synthesis, when parameters are in memory, to the last end.
    pub seconds: f64,
    /// Share of that time in which a device's lock was held, over all devices.
    pub busy: f64,
    /// Share of it in which kernels ran.
    pub kernels: f64,
    /// Longest time from arrival to end of a completed job, by priority, LOW first.
    pub longest: [f64; 4],
    /// Mean of it.
    pub mean: [f64; 4],
    /// Most kernel phases of others that a CRITICAL partition has waited for on its device once it was synthesized.
    pub critical_waits: usize,
    /// Most memory that was reserved at any time, bytes.
    pub peak_bytes: u64,
    /// Loads of parameters.
    pub loads: usize,
}

impl Report {
    /// Seconds a completed job: the reciprocal of the throughput.
    pub fn seconds_per_proof(&self) -> f64 {
        self.seconds / self.completed.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { completed, failed, cancelled, refused, partitions, .. } = self;
        writeln!(f, "jobs        {completed} completed, {failed} failed, {cancelled} cancelled, {refused} refused")?;
        writeln!(f, "partitions  {partitions} in {:.1} s", self.seconds)?;
        writeln!(f, "throughput  {:.2} s a proof", self.seconds_per_proof())?;
        writeln!(f, "GPU         lock held {:.1} %, kernels {:.1} %", 100.0 * self.busy, 100.0 * self.kernels)?;
        for priority in Priority::ALL {
            let (mean, longest) = (self.mean[priority as usize], self.longest[priority as usize]);
            if longest > 0.0 {
                writeln!(f, "{:<11} {mean:.1} s on average, {longest:.1} s at most", priority.label())?;
            }
        }
        writeln!(f, "memory      {:.1} GiB at most, {} loads of parameters", gib(self.peak_bytes), self.loads)
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
