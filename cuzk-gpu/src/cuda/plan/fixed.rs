//! What a plan needs whatever it does with points.

use super::{Card, Config, Line, Matrices, Shape, Staging, cost::Rates, stage::Choice};
use crate::cuda::{
    arena::Layout,
    fr::Element,
    ntt::{plan::padded_len, table::TableShape},
    spmv::matrix,
};

/// Page-locked buffers through which parameters pass while they are loaded, and as much on the device.
pub const LOADING_BYTES: usize = 256 << 20;
/// Constants, kernels' arguments, results: everything small.
const SMALL: usize = 32 << 20;

/// See the lines for what is what. Bytes.
pub(super) struct Fixed {
    shape: Shape,
    workers: usize,
    /// Of device memory, reserve taken off.
    pub limit: usize,
    /// Where the limit comes from.
    pub whence: String,
    h: usize,
    quotient: usize,
    tables: Vec<TableShape>,
    /// Of each worker: device memory, and the page-locked copy of what is staged.
    worker: usize,
    staged: usize,
    matrices: usize,
}

impl Matrices {
    /// Streamed, in parts that are large enough for the bus.
    pub(super) const STREAMED: Self = Self::Streamed { part_bytes: 64 << 20 };
}

impl Fixed {
    pub(super) fn of(shape: &Shape, card: &Card, config: &Config) -> Self {
        let most = config.vram_limit.map_or(card.memory, |limit| limit.min(card.memory));
        let source = if most < card.memory { "[gpus] vram_limit" } else { "free memory" };
        let whence = format!("{source}, less the reserve of {}", super::report::size(config.reserve));
        let mut worker = Layout::new();
        let staging = Staging::plan(&mut worker, shape, config.rows);
        let mut layout = Layout::new();
        let h = layout.add::<Element>(padded_len(shape.log_n));
        let h_bytes = layout.bytes();
        staging.workspace(h, &mut layout, shape);
        Self {
            shape: *shape,
            workers: config.workers,
            limit: most.saturating_sub(config.reserve),
            whence,
            h: h_bytes,
            quotient: layout.bytes() - h_bytes,
            tables: tables(shape.log_n),
            worker: worker.bytes(),
            staged: staging.host_bytes(),
            matrices: shape.entries.iter().map(|&entries| matrix::bytes(shape.rows, entries)).sum(),
        }
    }

    /// The tables of factors that there are to choose from.
    pub(super) fn tables(&self) -> &[TableShape] {
        &self.tables
    }

    /// Device memory that a combination of choices needs at least.
    pub(super) fn needed<'a>(
        &self,
        (table, matrices): (TableShape, Matrices),
        choices: impl Iterator<Item = &'a Choice<'a>> + Clone,
    ) -> usize {
        let scratch = choices.clone().map(|choice| choice.scratch).max().unwrap_or(0);
        let kept: usize = choices.map(|choice| choice.kept).sum();
        let phase = self.h + scratch.max(self.quotient);
        phase + kept + table.bytes() + self.workers * self.worker + self.on_device(matrices) + SMALL
    }

    /// Page-locked memory without that of points.
    pub(super) fn pinned(&self, matrices: Matrices) -> usize {
        let rows = if matches!(matrices, Matrices::Streamed { .. }) { self.matrices } else { 0 };
        LOADING_BYTES + self.workers * self.staged + rows
    }

    /// Seconds of A·w, B·w and H.
    pub(super) fn first_stage(&self, (table, matrices): (TableShape, Matrices), rates: &Rates) -> f64 {
        let products = match matrices {
            Matrices::Resident => rates.products(&self.shape),
            Matrices::Streamed { .. } => rates.products(&self.shape).max(rates.upload(self.matrices)),
            Matrices::Absent => 0.0,
        };
        // Layers whose factors are not in the table cost a product more.
        let log_n = self.shape.log_n;
        let more = f64::from(log_n.saturating_sub(table.log_direct())) / f64::from(log_n.max(1));
        products + rates.quotient(log_n) * (1.0 + more)
    }

    /// Seconds that the CPU takes for `b_g2`.
    pub(super) fn tail(&self, rates: &Rates) -> f64 {
        rates.tail(self.shape.b_points)
    }

    /// The lines but for points.
    pub(super) fn lines(&self, (table, matrices): (TableShape, Matrices), choices: &[Choice<'_>]) -> Vec<Line> {
        let scratch = choices.iter().map(|choice| choice.scratch).max().unwrap_or(0).max(self.quotient);
        let line = |what: &str, device, pinned| Line { what: what.to_owned(), device, pinned };
        let rows = match matrices {
            Matrices::Resident => "matrices A and B",
            Matrices::Streamed { .. } => "matrices A and B, streamed",
            Matrices::Absent => "matrices (rows come with the witness)",
        };
        let whole = table.log_direct() >= self.shape.log_n;
        let factors = if whole { "table of factors" } else { "table of factors, two levels" };
        vec![
            line(factors, table.bytes(), 0),
            line("vector of H", self.h, 0),
            line("workspace", scratch, 0),
            line(
                &format!("witnesses of {} workers", self.workers),
                self.workers * self.worker,
                self.workers * self.staged,
            ),
            line(rows, self.on_device(matrices), self.pinned(matrices) - self.pinned(Matrices::Absent)),
            line("constants and results", SMALL, 0),
            line("buffers for loading", 0, LOADING_BYTES),
        ]
    }

    fn on_device(&self, matrices: Matrices) -> usize {
        match matrices {
            Matrices::Resident => self.matrices,
            Matrices::Streamed { part_bytes } => 2 * part_bytes,
            Matrices::Absent => 0,
        }
    }
}

/// A whole table; and two smaller ones of two levels, with a quarter of its entries and so few that they hardly count.
fn tables(log_n: u32) -> Vec<TableShape> {
    let two_levels = |less: u32| TableShape::two_levels(log_n, log_n.saturating_sub(less));
    let mut tables = vec![TableShape::whole(log_n), two_levels(2), two_levels(6)];
    tables.dedup();
    tables
}
