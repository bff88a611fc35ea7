//! The radix sort.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::Outcome;
use crate::{
    arith::G1,
    cuda::{
        Args, CudaError, DeviceBuffer, Gpu, Grid, Stream,
        msm::{
            kernels::{Kernels, SortPass},
            plan::SORT_TILE,
        },
    },
};

/// Stable, for sizes around a tile, keys of few and of many bits, equal keys.
pub(super) fn sort(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    for n in [1, 2, 31, 511, SORT_TILE - 1, SORT_TILE, SORT_TILE + 1, 1_234_567] {
        for (bits, kinds) in [(24, 24), (24, 3), (8, 8), (16, 0)] {
            let keys: Vec<u32> =
                (0..n).map(|_| (rng.r#gen::<u32>() >> (32 - kinds).min(31)) << (bits - kinds).min(8)).collect();
            let mut expected: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
            expected.sort_by_key(|pair| pair.0 & ((1 << bits) - 1));
            let found = sort_on_device(gpu, &keys, (bits as u32).div_ceil(8)).map_err(|e| e.to_string())?;
            if let Some(place) = (0..n).find(|&i| found[i] != expected[i]) {
                let (found, expected) = (found[place], expected[place]);
                return Err(format!("{n} pairs, {bits} bits: at {place} {found:?} instead of {expected:?}"));
            }
        }
    }
    Ok(())
}

fn sort_on_device(gpu: &Gpu, keys: &[u32], passes: u32) -> Result<Vec<(u32, u32)>, CudaError> {
    let stream = Stream::new(gpu)?;
    let kernels = Kernels::load::<G1>(gpu)?;
    let n = keys.len();
    let values: Vec<u32> = (0..n as u32).collect();
    let upload = |words: &[u32]| DeviceBuffer::from_host(&stream, words, "a check's pairs");
    let buffers = [[upload(keys)?, upload(&values)?], [upload(keys)?, upload(&values)?]];
    let counts = DeviceBuffer::<u32>::new(gpu, 4 * 256, "counts")?;
    let ticket = DeviceBuffer::<u32>::new(gpu, 1, "a ticket")?;
    let count = DeviceBuffer::from_host(&stream, &[n as u32], "a count")?;
    let status = DeviceBuffer::<u64>::new(gpu, (n + SORT_TILE).div_ceil(SORT_TILE) * 256, "status")?;
    counts.all().fill_bytes(&stream, 0)?;
    let args = Args::new().slice(buffers[0][0].all()).value(n as u32).value(passes).slice(counts.all());
    let both = |i: u32| [buffers[i as usize % 2][0].all(), buffers[i as usize % 2][1].all()];
    // SAFETY: every buffer has `n` words, or what the kernels ask for beside them.
    unsafe {
        gpu.function("sort", "sort_count")?.launch(&stream, Grid::new(200, 256), &args)?;
        kernels.sort_scan.launch(&stream, Grid::new(passes, 256), &Args::new().slice(counts.all()))?;
        for pass in 0..passes {
            ticket.all().fill_bytes(&stream, 0)?;
            kernels.sort_pass(
                &stream,
                SortPass {
                    from: both(pass),
                    to: both(pass + 1),
                    // As many as the count says, even if there could be more.
                    most: n + SORT_TILE,
                    count: count.all().address(),
                    pass,
                    first: counts.all().range(256 * pass as usize..)?,
                    status: status.all(),
                    ticket: ticket.all().address(),
                },
            )?;
        }
    }
    let [keys, values] = both(passes).map(|slice| slice.to_vec(&stream));
    Ok(keys?.into_iter().zip(values?).collect())
}
