//! Where everything lives on a device while a circuit is proven: decided before anything is allocated, from numbers alone.
//!
//! * [`shape`]: what is asked: the circuit, the card, the configuration;
//! * `sums`: the ways to do the multi-scalar multiplications;
//! * `cost`: the cost model that compares plans;
//! * `stage`: which points stay on the device, for each of those ways;
//! * `staging`: what a worker has of its own;
//! * `fixed`: what is needed in any case;
//! * `choose`: the fastest of the plans that fit;
//! * [`parts`]: which points each call takes, once the circuit is at hand;
//! * `report`: the plan as a table.
//!
//! # The kernel phase
//!
//! One arena serves a circuit on a device. H's output comes first, then the points that stay. What makes H, the sum over h,
//! the sums over the witness and that of `b_g2` follow each other in one stream, so that their workspaces overlay each
//! other behind that:
//!
//! ```text
//! | H | points | planes, second vector, two parts of the matrices             |   1. A·w, B·w and H
//! |   |        | workspace of the sum over h | two parts of h                 |   2. Σ h_i H_i
//! |   |        | workspace of the sums | two parts of each streamed query     |   3. l, a, b_g1
//! |   |        | workspace in G2 | two parts of b_g2                          |   4. b_g2, if it is computed here
//! ```
//!
//! A worker's witness has a place of its own, with A·w and B·w if they come with it, which is filled before the device is
//! locked. Then there are no matrices, and no planes of A and B in the arena.

mod choose;
mod cost;
mod fixed;
pub mod parts;
mod report;
pub mod shape;
mod stage;
mod staging;
mod sums;
#[cfg(test)]
mod tests;

use crate::cuda::{msm, ntt::table::TableShape};

pub use self::{
    fixed::LOADING_BYTES,
    parts::Parts,
    shape::{BG2, Card, Config, Room, Rows, Shape},
    staging::Staging,
};

/// A plan that fits.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// The circuit that it is for.
    pub shape: Shape,
    /// The configuration that it is for.
    pub config: Config,
    /// The points of h.
    pub h: Vector,
    /// The points of l.
    pub l: Vector,
    /// The points of a.
    pub a: Vector,
    /// The points of b in G1.
    pub b_g1: Vector,
    /// The points of b in G2; `None` if that sum is the CPU's.
    pub b_g2: Option<Vector>,
    /// The table of factors of the transforms.
    pub table: TableShape,
    /// The matrices A and B.
    pub matrices: Matrices,
    /// The sum over a part of h.
    pub h_msm: msm::Plan,
    /// The sums over a part of l, a and b_g1.
    pub witness_msm: msm::Plan,
    /// The sum over a part of b_g2.
    pub g2_msm: Option<msm::Plan>,
    /// Device and page-locked memory of each part, in bytes.
    pub lines: Vec<Line>,
    /// Device memory that may be used, in bytes.
    pub limit: usize,
    /// Kernel phase by the cost model.
    pub seconds: f64,
}

/// The points of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Name of the query.
    pub name: &'static str,
    /// How many there are.
    pub points: usize,
    /// Bytes of one in the kernels' form.
    pub point_bytes: usize,
    /// Tables of multiples, the points themselves included. More than one only if all points are resident.
    pub tables: usize,
    /// Points of a call for h; auxiliary variables of a call for the others, of which the first has the public inputs'
    /// points too. The last call may have fewer.
    pub part: usize,
    /// So many points at the beginning may stay in device memory: those of the calls whose points are all among them do.
    /// The others are in page-locked host memory.
    pub resident: usize,
    /// The most points of a call.
    pub most: usize,
}

/// Where the matrices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrices {
    /// In device memory.
    Resident,
    /// In page-locked host memory; some rows at a time, of no more than so many bytes, come into one of two buffers.
    Streamed {
        /// Bytes of a buffer.
        part_bytes: usize,
    },
    /// Nowhere: A·w and B·w come with the witness.
    Absent,
}

/// Memory of a part of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub what: String,
    /// Bytes on the device.
    pub device: usize,
    /// Bytes of page-locked host memory.
    pub pinned: usize,
}

/// There is no plan: nothing was allocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// Even the smallest plan needs more device memory.
    #[error(
        "a circuit of 2^{log_n} rows needs {} of device memory with everything streamed, and {} may be used ({}): \
         give [gpus] vram_limit more, or prove it on a larger card or on the CPU",
        report::size(*needed), report::size(*limit), whence
    )]
    Device {
        /// log2 of the circuit's domain.
        log_n: u32,
        /// Bytes of the smallest plan.
        needed: usize,
        /// Bytes that may be used.
        limit: usize,
        /// Where the limit comes from.
        whence: String,
    },
    /// What does not fit into the device does not fit into page-locked memory either.
    #[error(
        "{} of device memory may be used, so a circuit of 2^{log_n} rows needs {} of page-locked host memory for the rest, \
         and {} may be: give [memory] total_budget more, or use a larger card",
        report::size(*limit), report::size(*needed), report::size(*pinned_limit)
    )]
    Pinned {
        /// log2 of the circuit's domain.
        log_n: u32,
        /// Bytes of device memory that may be used.
        limit: usize,
        /// Bytes of page-locked memory of the plan that needs least.
        needed: usize,
        /// Bytes of page-locked memory that may be used.
        pinned_limit: usize,
    },
}

impl MemoryPlan {
    /// The fastest plan that fits. Pure; takes a few milliseconds.
    ///
    /// # Errors
    /// No plan fits, with the numbers.
    pub fn choose(shape: &Shape, card: &Card, config: &Config) -> Result<Self, NoPlan> {
        choose::choose(shape, card, config)
    }

    /// Bytes of device memory.
    pub fn device_bytes(&self) -> usize {
        self.lines.iter().map(|line| line.device).sum()
    }

    /// Bytes of page-locked host memory.
    pub fn pinned_bytes(&self) -> usize {
        self.lines.iter().map(|line| line.pinned).sum()
    }

    /// The points of all queries that the device sums over, in the order of the parameter file.
    pub fn vectors(&self) -> impl Iterator<Item = &Vector> {
        [&self.h, &self.l, &self.a, &self.b_g1].into_iter().chain(&self.b_g2)
    }
}

impl Vector {
    /// Whether all points are in device memory.
    pub fn is_resident(&self) -> bool {
        self.resident == self.points
    }

    /// Bytes in device memory, but for the buffers of parts.
    pub fn device_bytes(&self) -> usize {
        self.resident * self.tables * self.point_bytes
    }

    /// Bytes in page-locked memory at most: a call whose points are not all resident has all of them there.
    pub fn pinned_bytes(&self) -> usize {
        match self.is_resident() {
            true => 0,
            false => (self.points - self.resident + self.most).min(self.points) * self.point_bytes,
        }
    }
}
