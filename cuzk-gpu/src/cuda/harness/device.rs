//! Checks and benches of the device layer itself.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Bench, Check, Measurement, time};
use crate::cuda::{
    arena::{Arena, Layout},
    gpu::Gpu,
    launch::{Args, Grid},
    memory::{DeviceBuffer, PinnedBuffer},
    stream::{Event, Stream},
};

/// Its checks.
pub const CHECKS: &[Check] = &[
    Check { name: "device/launch", run: launch },
    Check { name: "device/wrong arguments", run: wrong_arguments },
    Check { name: "device/copies", run: copies },
    Check { name: "device/streams", run: streams },
    Check { name: "device/out of memory", run: out_of_memory },
];

/// Its benches.
pub const BENCHES: &[Bench] = &[Bench { name: "device/copies", run: copy_rates }];

fn launch(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let (len, start) = (rng.gen_range(1..100_000), rng.r#gen::<u64>() >> 1);
    count(gpu, len, start).map_err(|e| e.to_string())?.iter().zip(start..).enumerate().try_for_each(
        |(i, (found, expected))| match *found == expected {
            true => Ok(()),
            false => Err(format!("item {i} of {len}: {found} instead of {expected}")),
        },
    )
}

fn count(gpu: &Gpu, len: u32, start: u64) -> Result<Vec<u64>, crate::cuda::CudaError> {
    let stream = Stream::new(gpu)?;
    let mut layout = Layout::new();
    layout.add::<u8>(1);
    let region = layout.add::<u64>(len as usize);
    let arena = Arena::new(gpu, &layout, "a check's arena")?;
    let out = arena.slice(region)?;
    out.fill_bytes(&stream, 0xdb)?;
    let args = Args::new().slice(out).value(len).value(start);
    // SAFETY: the kernel writes `len` words, which is what `out` has.
    unsafe { gpu.function("probe", "probe_count")?.launch(&stream, Grid::cover(len as usize, 128), &args)? };
    out.to_vec(&stream)
}

fn wrong_arguments(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let run = || {
        let stream = Stream::new(gpu)?;
        let kernel = gpu.function("probe", "probe_count")?;
        let out = DeviceBuffer::<u64>::new(gpu, 1, "one word")?;
        for args in [Args::new().slice(out.all()), Args::new().slice(out.all()).value(1u64).value(1u64)] {
            // SAFETY: nothing is launched: the arguments are refused.
            let error = unsafe { kernel.launch(&stream, Grid::new(1, 1), &args) }.err().map(|e| e.to_string());
            match error {
                Some(error) if error.contains("[8, 4, 8]") => {}
                other => return Ok(Err(format!("expected a refusal that tells the sizes, found {other:?}"))),
            }
        }
        Ok::<_, crate::cuda::CudaError>(match gpu.function("probe", "no_such_kernel") {
            Err(error) if error.to_string().contains("CUDA_ERROR_NOT_FOUND") => Ok(()),
            other => Err(format!("expected CUDA_ERROR_NOT_FOUND, found {other:?}")),
        })
    };
    run().map_err(|e| e.to_string())?
}

fn copies(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let values: Vec<u64> = (0..rng.gen_range(1..5_000)).map(|_| rng.r#gen()).collect();
    let run = || {
        let stream = Stream::new(gpu)?;
        let mut pinned = PinnedBuffer::<u64>::new(gpu, values.len(), "a check's copy")?;
        pinned.copy_from_slice(&values);
        let first = DeviceBuffer::from_host(&stream, &pinned, "first")?;
        let second = DeviceBuffer::new(gpu, values.len(), "second")?;
        second.all().copy_from(&stream, first.all())?;
        let middle = second.all().range(1..)?.to_vec(&stream)?;
        pinned.fill(0);
        second.all().download(&stream, &mut pinned)?;
        Ok::<_, crate::cuda::CudaError>((pinned.to_vec(), middle))
    };
    let (all, middle) = run().map_err(|e| e.to_string())?;
    match all == values && middle == values[1..] {
        true => Ok(()),
        false => Err(format!("{} words came back changed", values.len())),
    }
}

/// Work in one stream that waits for another's event sees what the other wrote.
fn streams(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let start = rng.r#gen::<u64>() >> 1;
    let len = 1 << 22;
    let run = || {
        let (first, second) = (Stream::new(gpu)?, Stream::new(gpu)?);
        let (from, to) = (DeviceBuffer::<u64>::new(gpu, len, "from")?, DeviceBuffer::new(gpu, len, "to")?);
        let done = Event::new(gpu)?;
        from.all().fill_bytes(&first, 0xdb)?;
        let args = Args::new().slice(from.all()).value(len as u32).value(start);
        // SAFETY: the kernel writes `len` words, which is what `from` has.
        unsafe { gpu.function("probe", "probe_count")?.launch(&first, Grid::cover(len, 128), &args)? };
        done.record(&first)?;
        second.wait_for(&done)?;
        to.all().copy_from(&second, from.all())?;
        to.all().range(len - 1..)?.to_vec(&second)
    };
    match run().map_err(|e| e.to_string())?[..] {
        [last] if last == start + len as u64 - 1 => Ok(()),
        ref other => Err(format!("the last word is {other:?} instead of {}", start + len as u64 - 1)),
    }
}

fn out_of_memory(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let bytes = gpu.info().memory + 1;
    match DeviceBuffer::<u8>::new(gpu, bytes, "more than there is") {
        Err(crate::cuda::CudaError::OutOfMemory { .. }) => Ok(()),
        other => Err(format!("expected an error about {bytes} bytes, found {other:?}")),
    }
}

fn copy_rates(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    const BYTES: usize = 1 << 28;
    let run = || {
        let stream = Stream::new(gpu)?;
        let mut pinned = PinnedBuffer::<u8>::new(gpu, BYTES, "a bench's copy")?;
        let device = DeviceBuffer::<u8>::new(gpu, BYTES, "a bench's copy")?;
        // SAFETY: both buffers live until `time` has waited for the copies, and nobody reads or writes them meanwhile.
        let up = time(&stream, 5, || unsafe { device.all().upload_async(&stream, &pinned) })?;
        // SAFETY: as above.
        let down = time(&stream, 5, || unsafe { device.all().download_async(&stream, &mut pinned) })?;
        Ok::<_, crate::cuda::CudaError>([("copy to the device", up), ("copy to the host", down)])
    };
    let rows = run().map_err(|e| e.to_string())?.map(|(kernel, seconds)| Measurement {
        kernel: kernel.to_owned(),
        size: "256 MiB, pinned".to_owned(),
        seconds,
        work: BYTES as f64,
        unit: "B",
        ceiling: None,
        goal: None,
    });
    Ok(rows.to_vec())
}
