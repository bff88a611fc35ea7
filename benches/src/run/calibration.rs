//! What every time is a multiple of. A calibration is the work of no code of ours, so it changes with the machine alone.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use blstrs::Scalar;
use rayon::prelude::*;

use crate::rooms::Calibration;

/// The buffers of the calibrations.
pub struct Calibrations {
    from: Vec<u64>,
    to: Vec<u64>,
}

/// Words copied in a pass over memory: 64 MiB, more than a core has of cache for itself.
const WORDS: usize = 8 << 20;
/// Products that a thread computes: some 2 ms.
const PRODUCTS: usize = 20_000;
/// Chains that they are in, so that products overlap as in real work.
const CHAINS: usize = 4;

impl Default for Calibrations {
    fn default() -> Self {
        Self { from: (0..WORDS as u64).collect(), to: vec![0; WORDS] }
    }
}

impl Calibrations {
    /// Runs a calibration again and again for at least so long, and says how many seconds one pass took.
    pub fn measure(&mut self, calibration: Calibration, at_least: Duration) -> f64 {
        let begin = Instant::now();
        let mut passes = 0;
        loop {
            match calibration {
                Calibration::OneThread => field_products(),
                Calibration::AllThreads => {
                    let threads = rayon::current_num_threads();
                    (0..threads).into_par_iter().with_max_len(1).for_each(|_| field_products());
                }
                Calibration::Memory => self.copy(),
            }
            passes += 1;
            let elapsed = begin.elapsed();
            if elapsed >= at_least {
                return elapsed.as_secs_f64() / f64::from(passes);
            }
        }
    }

    fn copy(&mut self) {
        let chunk = WORDS.div_ceil(4 * rayon::current_num_threads());
        self.to.par_chunks_mut(chunk).zip(self.from.par_chunks(chunk)).for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&self.to);
    }
}

/// Products of blst in the scalar field.
fn field_products() {
    let factor = black_box(Scalar::from(0x1234_5678_9abc_def0));
    let mut chains: [Scalar; CHAINS] = std::array::from_fn(|i| Scalar::from(i as u64 + 2));
    for _ in 0..PRODUCTS {
        for chain in &mut chains {
            *chain *= factor;
        }
    }
    black_box(chains);
}
