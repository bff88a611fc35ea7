//! The operations, run on a device.

use rand_chacha::ChaCha8Rng;

use super::ops::OPS;
use crate::cuda::{
    error::CudaError,
    gpu::Gpu,
    harness::Check,
    launch::{Args, Grid},
    memory::DeviceBuffer,
    stream::Stream,
};

/// Checks of fields and curves.
pub const CHECKS: &[Check] = &[
    Check { name: "field/fq integer", run: |gpu, rng| check(gpu, rng, "fq_") },
    Check { name: "field/fq2 integer", run: |gpu, rng| check(gpu, rng, "fq2_") },
    Check { name: "field/fq hybrid", run: |gpu, rng| check(gpu, rng, "fqh_") },
    Check { name: "field/fq hybrid, extreme limbs", run: |gpu, rng| check(gpu, rng, "limbs_") },
    Check { name: "field/fr", run: |gpu, rng| check(gpu, rng, "fr_") },
    Check { name: "field/fr hybrid", run: |gpu, rng| check(gpu, rng, "frh_") },
    Check { name: "curve/g1", run: |gpu, rng| check(gpu, rng, "g1_") },
    Check { name: "curve/g2", run: |gpu, rng| check(gpu, rng, "g2_") },
];

/// A few warps, and one that is not full.
const COUNT: usize = 3000 + 7;

fn check(gpu: &Gpu, rng: &mut ChaCha8Rng, prefix: &str) -> Result<(), String> {
    OPS.iter()
        .filter(|op| op.name.starts_with(prefix))
        .try_for_each(|op| op.check(rng, COUNT, |a, b| run(gpu, op.name, a, b, op.words[2]).map_err(|e| e.to_string())))
}

fn run(gpu: &Gpu, name: &str, a: &[u32], b: &[u32], words: usize) -> Result<Vec<u32>, CudaError> {
    let stream = Stream::new(gpu)?;
    let a = DeviceBuffer::from_host(&stream, a, "first operands")?;
    let b = DeviceBuffer::from_host(&stream, b, "second operands")?;
    let out = DeviceBuffer::<u32>::new(gpu, COUNT * words, "results")?;
    out.all().fill_bytes(&stream, 0xdb)?;
    let args = Args::new().slice(a.all()).slice(b.all()).slice(out.all()).value(COUNT as u32);
    let kernel = gpu.function("field_check", &format!("check_{name}"))?;
    // SAFETY: the kernel reads and writes COUNT items of the sizes that `Op::words` has, which a test compares with the
    // header; the buffers have them.
    unsafe { kernel.launch(&stream, Grid::cover(COUNT, 128), &args)? };
    out.all().to_vec(&stream)
}
