//! Checks of conversions against blst.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    BadPoint, Converter,
    samples::{COMBINATIONS, Sample, Sampled, samples},
};
use crate::{
    arith::{G1, G2},
    cuda::{error::CudaError, gpu::Gpu, harness::Check, memory::DeviceBuffer, stream::Stream},
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "points/g1", run: lists::<G1> },
    Check { name: "points/g2", run: lists::<G2> },
    Check { name: "points/g1, each fault alone", run: alone::<G1> },
    Check { name: "points/g2, each fault alone", run: alone::<G2> },
    Check { name: "points/misuse", run: misuse },
];

fn text(error: CudaError) -> String {
    error.to_string()
}

/// Lists in two chunks, in place and not.
fn lists<C: Sampled>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let first = rng.r#gen::<u32>().into();
    for (count, good) in [(1, 2), (33, 1000), (3_000, 500), (3_000, 3)] {
        let samples = samples::<C>(rng, count, good);
        let cut = rng.gen_range(0..=count) * C::POINT_BYTES;
        for checks in COMBINATIONS {
            let run = |in_place: bool| {
                let stream = Stream::new(gpu)?;
                let converter = Converter::<C>::new(&stream)?;
                let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.bytes.clone()).collect();
                let from = DeviceBuffer::from_host(&stream, &bytes, "points as in a file")?;
                let apart = DeviceBuffer::new(gpu, bytes.len(), "converted points")?;
                apart.all().fill_bytes(&stream, 0xdb)?;
                let to = if in_place { &from } else { &apart };
                for (part, before) in [(0..cut, 0), (cut..bytes.len(), cut / C::POINT_BYTES)] {
                    let (from, to) = (from.all().range(part.clone())?, to.all().range(part)?);
                    converter.convert(&stream, from, to, first + before as u64, checks)?;
                }
                let found = converter.finish(&stream)?;
                converter.begin(&stream)?;
                Ok((found, to.all().to_vec(&stream)?, converter.finish(&stream)?))
            };
            for in_place in [false, true] {
                let (found, converted, after) = run(in_place).map_err(text)?;
                if after.is_some() {
                    return Err(format!("a new list begins with {after:?}"));
                }
                compare::<C>(&samples, first, found, &converted, |s: &Sample| s.found_by(checks))
                    .map_err(|error| format!("{count} points, {checks:?}, in place: {in_place}: {error}"))?;
            }
        }
    }
    Ok(())
}

/// Whether the first fault is the one that is to be found, and all points whose encoding is good are converted.
pub(super) fn compare<C: Sampled>(
    samples: &[Sample],
    first: u64,
    found: Option<BadPoint>,
    converted: &[u8],
    to_find: impl Fn(&Sample) -> Option<super::PointFault>,
) -> Result<(), String> {
    let bad = |(i, sample)| to_find(sample).map(|fault| BadPoint { index: first + i as u64, fault });
    let expected = samples.iter().enumerate().find_map(bad);
    if found != expected {
        return Err(format!("found {found:?} instead of {expected:?}"));
    }
    for (i, (sample, converted)) in samples.iter().zip(converted.chunks_exact(C::POINT_BYTES)).enumerate() {
        if sample.converted.as_ref().is_some_and(|expected| expected != converted) {
            return Err(format!("point {i}, {:x?}, became {converted:x?}", sample.bytes));
        }
    }
    Ok(())
}

fn alone<C: Sampled>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let samples = samples::<C>(rng, 300, 1);
    let run = |sample: &Sample, checks| {
        let stream = Stream::new(gpu)?;
        let converter = Converter::<C>::new(&stream)?;
        let point = DeviceBuffer::from_host(&stream, &sample.bytes, "a point")?;
        converter.convert(&stream, point.all(), point.all(), 0, checks)?;
        converter.finish(&stream)
    };
    for sample in &samples {
        for checks in COMBINATIONS {
            let found = run(sample, checks).map_err(text)?.map(|bad| bad.fault);
            if found != sample.found_by(checks) {
                let expected = sample.found_by(checks);
                return Err(format!("{checks:?}: found {found:?} instead of {expected:?} in {:x?}", sample.bytes));
            }
        }
    }
    Ok(())
}

fn misuse(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let run = || {
        let stream = Stream::new(gpu)?;
        let converter = Converter::<G1>::new(&stream)?;
        let bytes = DeviceBuffer::<u8>::new(gpu, 1000, "a check's bytes")?;
        let part = |range| bytes.all().range(range);
        let cases = [(part(0..96)?, part(0..192)?), (part(0..100)?, part(0..100)?), (part(8..104)?, part(8..104)?)];
        Ok(cases.map(|(from, to)| converter.convert(&stream, from, to, 0, super::Checks::FILE)))
    };
    for (i, result) in run().map_err(text)?.into_iter().enumerate() {
        match result {
            Err(CudaError::Misuse { .. }) => {}
            other => return Err(format!("case {i}: expected a refusal, found {other:?}")),
        }
    }
    Ok(())
}
