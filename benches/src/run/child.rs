//! Runs a measurement in a process of its own, so that its peak memory is its own too.

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// What a measurement reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The part that is compared.
    pub seconds: f64,
    /// Other parts worth knowing, by name, in seconds.
    pub parts: Vec<(String, f64)>,
}

/// A finished measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it reported.
    pub report: Report,
    /// The most memory that it ever had resident, in bytes.
    pub peak_bytes: u64,
}

impl Report {
    /// A report of one duration.
    pub fn new(duration: Duration) -> Self {
        Self { seconds: duration.as_secs_f64(), parts: Vec::new() }
    }

    /// Adds a part.
    pub fn part(mut self, name: &str, duration: Duration) -> Self {
        self.parts.push((name.to_owned(), duration.as_secs_f64()));
        self
    }

    /// Hands it to the parent.
    pub fn print(&self) -> Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        std::io::stdout().write_all(line.as_bytes())?;
        Ok(())
    }
}

/// Runs this program again with `args`, and waits for its report.
pub fn measure(args: &[&str]) -> Result<Measured> {
    let child = Command::new(env::current_exe()?)
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {args:?}"))?;
    let (pid, mut stdout) = (child.id(), child.stdout.context("the output is piped")?);
    let mut output = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut output)?;
    let (status, peak_bytes) = wait(pid)?;
    ensure!(status == 0, "{args:?} ended with status {status}");
    let line = output.lines().last().context("no report")?;
    Ok(Measured { report: serde_json::from_str(line)?, peak_bytes })
}

/// Waits for a child and tells its exit status and its peak of resident memory, which `std` cannot.
fn wait(pid: u32) -> Result<(i32, u64)> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are to live variables, and nobody else waits for this child.
    let waited = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage) };
    ensure!(waited == pid as libc::pid_t, "wait4: {}", std::io::Error::last_os_error());
    // Linux counts in KiB.
    Ok((status, usage.ru_maxrss as u64 * 1024))
}
