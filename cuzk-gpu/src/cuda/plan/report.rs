//! The plan in words.

use std::fmt;

use super::{Line, MemoryPlan};

impl fmt::Display for MemoryPlan {
    /// A table, a line for each part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.shape.log_n;
        writeln!(f, "memory plan for 2^{rows} rows, {} workers: kernels {:.3} s", self.config.workers, self.seconds)?;
        writeln!(f, "  {:<48} {:>11} {:>11}", "", "device", "page-locked")?;
        for Line { what, device, pinned } in &self.lines {
            writeln!(f, "  {what:<48} {:>11} {:>11}", cell(*device), cell(*pinned))?;
        }
        writeln!(f, "  {:<48} {:>11} {:>11}", "all", size(self.device_bytes()), size(self.pinned_bytes()))?;
        write!(f, "  {:<48} {:>11} {:>11}", "limit", size(self.limit), size(self.config.pinned_limit))
    }
}

fn cell(bytes: usize) -> String {
    if bytes == 0 { "-".to_owned() } else { size(bytes) }
}

/// Bytes for people.
pub(super) fn size(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    match mib {
        1024.0.. => format!("{:.2} GiB", mib / 1024.0),
        _ => format!("{mib:.1} MiB"),
    }
}
