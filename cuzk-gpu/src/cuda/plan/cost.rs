//! The cost model that chooses between plans: seconds of the kernel phase, by rates measured on an H200 and scaled to the
//! card. Only comparisons count.

use super::shape::{Card, Shape};
use crate::cuda::kernels::Arch;

/// Rates of a card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// How much faster than an H200 it computes.
    speed: f64,
    /// Bytes a second from pinned memory.
    upload: f64,
}

/// Multiprocessors of the card that was measured.
const MEASURED_SMS: f64 = 132.0;

impl Rates {
    pub(super) fn of(card: &Card) -> Self {
        // The others take the integer form of the products.
        let fp64 = [Arch::new(8, 0), Arch::new(9, 0), Arch::new(10, 0)].contains(&card.arch);
        let form = if fp64 { 1.0 } else { 0.75 };
        // PCIe 5, measured on the H200; PCIe 4 before that.
        let upload = if card.arch >= Arch::new(9, 0) { 55e9 } else { 25e9 };
        Self { speed: form * card.sms as f64 / MEASURED_SMS, upload }
    }

    /// Seconds of work that takes an H200 `seconds`.
    pub(super) fn compute(&self, seconds: f64) -> f64 {
        seconds / self.speed
    }

    /// Seconds of an upload.
    pub(super) fn upload(&self, bytes: usize) -> f64 {
        bytes as f64 / self.upload
    }

    /// The six transforms of H: 159 ms at 2^27.
    pub(super) fn quotient(&self, log_n: u32) -> f64 {
        self.compute(f64::from(log_n) * 2f64.powi(log_n as i32) * 44e-12)
    }

    /// A·w and B·w: 13 ms for 439 M entries.
    pub(super) fn products(&self, shape: &Shape) -> f64 {
        self.compute((shape.entries[0] + shape.entries[1]) as f64 * 30e-12)
    }

    /// The variables that are 1 of a query: half of them, 20 ms for 130 M.
    pub(super) fn bits(&self, points: usize) -> f64 {
        self.compute(points as f64 * 155e-12)
    }

    /// `b_g2` on the CPU, where it does not hold up the device: only its share of time that a proof alone is longer.
    pub(super) fn tail(&self, points: usize) -> f64 {
        points as f64 * 30e-9
    }
}

/// An addition in G2 takes about as long as three in G1.
pub(super) const G2_FACTOR: f64 = 3.0;
