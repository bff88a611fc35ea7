//! How fast points are converted and checked.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Checks, Converter, samples::Sampled};
use crate::{
    arith::{G1, G2},
    cuda::{
        error::CudaError,
        gpu::Gpu,
        harness::{Bench, Measurement, time},
        memory::DeviceBuffer,
        stream::Stream,
    },
};

/// The benches.
pub const BENCHES: &[Bench] = &[
    Bench { name: "points/g1", run: |gpu, rng| rates::<G1>(gpu, rng, 24) },
    Bench { name: "points/g2", run: |gpu, rng| rates::<G2>(gpu, rng, 23) },
];

/// Bytes a second that an H200's memory gives.
const MEMORY: f64 = 4.8e12;

/// A few points, repeated.
fn rates<C: Sampled>(gpu: &Gpu, rng: &mut ChaCha8Rng, log_len: u32) -> Result<Vec<Measurement>, String> {
    let few: Vec<Vec<u8>> = (0..64).map(|_| C::bytes(&C::random(rng))).collect();
    let part: Vec<u8> = (0..1 << 16).flat_map(|_| few[rng.gen_range(0..few.len())].clone()).collect();
    let run = || {
        let stream = Stream::new(gpu)?;
        let converter = Converter::<C>::new(&stream)?;
        let from = DeviceBuffer::<u8>::new(gpu, C::POINT_BYTES << log_len, "points as in a file")?;
        for i in 0..from.len() / part.len() {
            from.all().range(i * part.len()..(i + 1) * part.len())?.upload(&stream, &part)?;
        }
        let to = DeviceBuffer::<u8>::new(gpu, from.len(), "converted points")?;
        let row = |name: &str, log_len: u32, checks, ceiling| {
            let bytes = ..C::POINT_BYTES << log_len;
            let (from, to) = (from.all().range(bytes)?, to.all().range(bytes)?);
            let seconds = time(&stream, 3, || converter.convert(&stream, from, to, 0, checks))?;
            Ok::<_, CudaError>(Measurement {
                kernel: format!("points {}, {name}", C::SUFFIX),
                size: format!("2^{log_len}"),
                seconds,
                work: f64::from(1 << log_len),
                unit: "points",
                ceiling,
                goal: None,
            })
        };
        let plain = Checks { no_identity: true, curve: false, subgroup: false };
        let rows = vec![
            row("converted", log_len, plain, Some(MEMORY / (2 * C::POINT_BYTES) as f64))?,
            row("and on the curve", log_len, Checks::FILE, None)?,
            row("and in the group", log_len - 3, Checks { subgroup: true, ..Checks::FILE }, None)?,
        ];
        match converter.finish(&stream)? {
            None => Ok(rows),
            Some(bad) => Err(gpu.misuse(format!("{bad:?} among good points"))),
        }
    };
    run().map_err(|error: CudaError| error.to_string())
}
