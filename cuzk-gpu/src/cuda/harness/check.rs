//! Checks: is what a kernel computes right?

use rand_chacha::ChaCha8Rng;

use crate::cuda::gpu::Gpu;

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name: area first, as in `fq/products`.
    pub name: &'static str,
    /// Draws inputs from the generator, runs, and compares. An error says what was expected and what was found.
    pub run: fn(&Gpu, &mut ChaCha8Rng) -> Result<(), String>,
}
