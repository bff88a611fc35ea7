//! Checks of transforms and of the quotient against the CPU.

use std::ops::RangeInclusive;

use blstrs::Scalar;
use ff::Field;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Ntt, Planes, Points, Quotient, bit_reversed, plan::padded_len, quotient::Workspace, table::root_of_unity};
use crate::{
    arith::{
        Backend,
        fr_vec::{FrVec, quotient_h},
    },
    cuda::{
        arena::{Arena, Layout},
        error::CudaError,
        fr::{Element, from_plain, montgomery, plain},
        gpu::Gpu,
        harness::Check,
        memory::DeviceBuffer,
        stream::Stream,
    },
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "ntt/small sizes", run: |gpu, rng| every_size(gpu, rng, 0..=11) },
    Check { name: "ntt/medium sizes", run: |gpu, rng| every_size(gpu, rng, 12..=16) },
    Check { name: "ntt/large sizes", run: large_sizes },
    Check { name: "ntt/misuse", run: misuse },
    Check { name: "quotient/small sizes", run: |gpu, rng| every_quotient(gpu, rng, 0..=11) },
    Check { name: "quotient/medium sizes", run: |gpu, rng| every_quotient(gpu, rng, 12..=16) },
    Check { name: "quotient/large sizes", run: large_quotients },
    Check { name: "quotient/100 runs", run: repeated_quotient },
    Check { name: "quotient/too many exceptions", run: too_many_exceptions },
];

/// 0, 1 and -1 among random elements.
pub(super) fn random(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.gen_range(0..8) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        _ => Scalar::random(rng),
    }
}

/// As A·w is: nearly always 0, 1, 2 or -1.
fn mostly_small(rng: &mut ChaCha8Rng) -> Scalar {
    match rng.gen_range(0..100) {
        0..49 => Scalar::ZERO,
        49..68 => Scalar::ONE,
        68..92 => Scalar::from(2),
        92..98 => -Scalar::ONE,
        98 => Scalar::from(rng.gen_range(3..9)),
        _ => Scalar::random(rng),
    }
}

/// Many values from one generator, in parallel.
fn vector(len: usize, rng: &mut ChaCha8Rng, value: fn(&mut ChaCha8Rng) -> Scalar) -> Vec<Scalar> {
    let seed = rng.next_u64();
    let mut values = vec![Scalar::ZERO; len];
    values.par_chunks_mut(1 << 12).enumerate().for_each(|(i, values)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (i as u64) << 32);
        values.fill_with(|| value(&mut rng));
    });
    values
}

/// The values at `points` of a polynomial, in bit-reversed order: layer by layer, as the definition says.
pub(super) fn transform(coefficients: &[Scalar], points: Points) -> Vec<Scalar> {
    let log_n = coefficients.len().trailing_zeros();
    let mut x = coefficients.to_vec();
    for layer in 0..log_n {
        let distance = x.len() >> (layer + 1);
        for (block, values) in x.chunks_mut(2 * distance).enumerate() {
            let index = block + if points == Points::Coset { 1 << layer } else { 0 };
            let factor = (0..=layer)
                .filter(|bit| index >> bit & 1 == 1)
                .fold(Scalar::ONE, |product, bit| product * root_of_unity(bit + 2));
            let (low, high) = values.split_at_mut(distance);
            for (u, v) in low.iter_mut().zip(high) {
                let t = *v * factor;
                (*u, *v) = (*u + t, *u - t);
            }
        }
    }
    x
}

/// The point whose value is at place `i`.
fn point(i: usize, log_n: u32, points: Points) -> Scalar {
    let power = root_of_unity(log_n).pow_vartime([bit_reversed(i, log_n) as u64]);
    match points {
        Points::Domain => power,
        Points::Coset => power * root_of_unity(log_n + 1),
    }
}

/// Horner's rule, in parallel.
fn evaluate(coefficients: &[Scalar], z: Scalar) -> Scalar {
    const CHUNK: usize = 1 << 12;
    let parts = coefficients.par_chunks(CHUNK).map(|chunk| chunk.iter().rev().fold(Scalar::ZERO, |sum, c| sum * z + c));
    let step = z.pow_vartime([CHUNK as u64]);
    parts.collect::<Vec<_>>().iter().rev().fold(Scalar::ZERO, |sum, part| sum * step + part)
}

fn padded(values: &[Scalar], log_n: u32) -> Vec<Element> {
    let mut elements = vec![[0xdbdb_dbdb; 8]; padded_len(log_n)];
    elements.par_iter_mut().zip(values).for_each(|(element, value)| *element = plain(value));
    elements
}

fn scalars(elements: &[Element]) -> Result<Vec<Scalar>, String> {
    elements
        .par_iter()
        .enumerate()
        .map(|(i, &e)| from_plain(e).ok_or_else(|| format!("element {i} is not canonical: {e:08x?}")))
        .collect()
}

fn compare(what: impl Fn() -> String, found: &[Scalar], expected: &[Scalar]) -> Result<(), String> {
    match found.par_iter().zip(expected).position_first(|(f, e)| f != e) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!("{}: {} elements instead of {}", what(), found.len(), expected.len())),
        Some(i) => Err(format!("{}: element {i} is {} instead of {}", what(), found[i], expected[i])),
    }
}

fn text(error: CudaError) -> String {
    error.to_string()
}

/// Every value of every size.
fn every_size(gpu: &Gpu, rng: &mut ChaCha8Rng, sizes: RangeInclusive<u32>) -> Result<(), String> {
    let stream = Stream::new(gpu).map_err(text)?;
    let ntt = Ntt::new(&stream, *sizes.end()).map_err(text)?;
    for log_n in sizes {
        let buffer = DeviceBuffer::<Element>::new(gpu, padded_len(log_n), "a check's vector").map_err(text)?;
        for points in [Points::Domain, Points::Coset] {
            let x = vector(1 << log_n, rng, random);
            buffer.all().upload(&stream, &padded(&x, log_n)).map_err(text)?;
            ntt.forward(&stream, buffer.all(), log_n, points).map_err(text)?;
            let y = scalars(&buffer.all().to_vec(&stream).map_err(text)?[..x.len()])?;
            compare(|| format!("2^{log_n}, forward, {points:?}"), &y, &transform(&x, points))?;
            // From other values, so that a forward and an inverse transform that do nothing are noticed.
            let y = vector(1 << log_n, rng, random);
            buffer.all().upload(&stream, &padded(&y, log_n)).map_err(text)?;
            ntt.inverse(&stream, buffer.all(), log_n, points).map_err(text)?;
            let x = scalars(&buffer.all().to_vec(&stream).map_err(text)?[..y.len()])?;
            let n = Scalar::from(1 << log_n);
            let expected: Vec<Scalar> = y.iter().map(|y| y * n).collect();
            compare(|| format!("2^{log_n}, inverse, {points:?}"), &transform(&x, points), &expected)?;
        }
    }
    Ok(())
}

/// Some values of each size, and all of them there and back.
fn large_sizes(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let stream = Stream::new(gpu).map_err(text)?;
    let ntt = Ntt::new(&stream, 25).map_err(text)?;
    for log_n in [17, 18, 19, 20, 21, 22, 23, 24, 25] {
        let buffer = DeviceBuffer::<Element>::new(gpu, padded_len(log_n), "a check's vector").map_err(text)?;
        let x = vector(1 << log_n, rng, random);
        for points in [Points::Domain, Points::Coset] {
            buffer.all().upload(&stream, &padded(&x, log_n)).map_err(text)?;
            ntt.forward(&stream, buffer.all(), log_n, points).map_err(text)?;
            let places = [0, 1, (1 << log_n) - 1, rng.gen_range(0..1 << log_n), rng.gen_range(0..1 << log_n)];
            for i in places {
                let found = scalars(&buffer.all().range(i..=i).and_then(|s| s.to_vec(&stream)).map_err(text)?)?;
                let expected = evaluate(&x, point(i, log_n, points));
                compare(|| format!("2^{log_n}, {points:?}, place {i}"), &found, &[expected])?;
            }
            ntt.inverse(&stream, buffer.all(), log_n, points).map_err(text)?;
            let back = scalars(&buffer.all().to_vec(&stream).map_err(text)?)?;
            let n = Scalar::from(1 << log_n);
            let expected: Vec<Scalar> = x.par_iter().map(|x| x * n).collect();
            compare(|| format!("2^{log_n}, {points:?}, there and back"), &back, &expected)?;
        }
    }
    Ok(())
}

/// Vectors and tables that are too small are refused.
fn misuse(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let stream = Stream::new(gpu).map_err(text)?;
    let ntt = Ntt::new(&stream, 10).map_err(text)?;
    let buffer = DeviceBuffer::<Element>::new(gpu, 1 << 11, "a check's vector").map_err(text)?;
    let short = buffer.all().range(..511).map_err(text)?;
    for (data, log_n) in [(buffer.all(), 11), (short, 3)] {
        match ntt.forward(&stream, data, log_n, Points::Domain) {
            Err(CudaError::Misuse { .. }) => {}
            other => return Err(format!("expected a refusal of 2^{log_n} points, found {other:?}")),
        }
    }
    match Ntt::new(&stream, 29) {
        Err(CudaError::Misuse { .. }) => Ok(()),
        other => Err(format!("expected a refusal of a table for 2^29 points, found {other:?}")),
    }
}

/// H as the CPU computes it, and the zero that ends it on the device.
fn expected_quotient(a: &[Scalar], b: &[Scalar], log_n: u32) -> Vec<Scalar> {
    if log_n == 0 {
        return vec![Scalar::ZERO];
    }
    let vector = |x: &[Scalar]| FrVec::with_backend(Backend::current(), x, log_n);
    let mut h = quotient_h(vector(a), vector(b), None);
    h.push(Scalar::ZERO);
    h
}

/// H from planes, `runs` times, each of which must give the same.
fn from_planes(gpu: &Gpu, [a, b]: [&[Scalar]; 2], log_n: u32, runs: u32) -> Result<Vec<Scalar>, String> {
    let (a, b) = (Planes::encode(a, log_n), Planes::encode(b, log_n));
    let run = || {
        let stream = Stream::new(gpu)?;
        let (ntt, quotient) = (Ntt::new(&stream, log_n)?, Quotient::new(&stream, log_n)?);
        let mut layout = Layout::new();
        let h = layout.add(padded_len(log_n));
        let workspace = Workspace::plan(h, &mut layout, log_n, 1 << log_n);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        let mut results: Vec<Vec<Element>> = Vec::new();
        for _ in 0..runs {
            workspace.a.upload(&stream, &arena, &a)?;
            workspace.b.upload(&stream, &arena, &b)?;
            let h = quotient.from_planes(&stream, &ntt, &arena, &workspace)?.range(..1 << log_n)?.to_vec(&stream)?;
            workspace.check(&stream, &arena)?;
            if results.first() != Some(&h) {
                results.push(h);
            }
        }
        Ok(results)
    };
    let results = run().map_err(text)?;
    match &results[..] {
        [h] => scalars(h),
        other => Err(format!("2^{log_n}: {runs} runs gave {} results that differ from the first", other.len() - 1)),
    }
}

fn from_vectors(gpu: &Gpu, inputs: [&[Scalar]; 2], log_n: u32) -> Result<Vec<Scalar>, String> {
    let run = || {
        let stream = Stream::new(gpu)?;
        let (ntt, quotient) = (Ntt::new(&stream, log_n)?, Quotient::new(&stream, log_n)?);
        let mut buffers = Vec::new();
        for _ in 0..3 {
            let buffer = DeviceBuffer::<Element>::new(gpu, padded_len(log_n), "a check's vector")?;
            buffer.all().fill_bytes(&stream, 0xdb)?;
            buffers.push(buffer);
        }
        for (buffer, values) in buffers.iter().zip(inputs) {
            let reversed: Vec<Element> =
                (0..1 << log_n).into_par_iter().map(|p| montgomery(&values[bit_reversed(p, log_n)])).collect();
            buffer.all().range(..1 << log_n)?.upload(&stream, &reversed)?;
        }
        quotient.from_vectors(&stream, &ntt, [buffers[0].all(), buffers[1].all(), buffers[2].all()])?;
        buffers[1].all().range(..1 << log_n)?.to_vec(&stream)
    };
    scalars(&run().map_err(text)?)
}

fn every_quotient(gpu: &Gpu, rng: &mut ChaCha8Rng, sizes: RangeInclusive<u32>) -> Result<(), String> {
    for log_n in sizes {
        for (kind, value) in [("small", mostly_small as fn(&mut _) -> _), ("any", random)] {
            let (a, b) = (vector(1 << log_n, rng, value), vector(1 << log_n, rng, value));
            let expected = expected_quotient(&a, &b, log_n);
            compare(|| format!("2^{log_n}, {kind}, planes"), &from_planes(gpu, [&a, &b], log_n, 1)?, &expected)?;
            compare(|| format!("2^{log_n}, {kind}, vectors"), &from_vectors(gpu, [&a, &b], log_n)?, &expected)?;
        }
    }
    Ok(())
}

fn large_quotients(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    for log_n in [20, 22] {
        let (a, b) = (vector(1 << log_n, rng, mostly_small), vector(1 << log_n, rng, mostly_small));
        let expected = expected_quotient(&a, &b, log_n);
        compare(|| format!("2^{log_n}, planes"), &from_planes(gpu, [&a, &b], log_n, 1)?, &expected)?;
        compare(|| format!("2^{log_n}, vectors"), &from_vectors(gpu, [&a, &b], log_n)?, &expected)?;
    }
    Ok(())
}

fn repeated_quotient(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let log_n = 17;
    let (a, b) = (vector(1 << log_n, rng, mostly_small), vector(1 << log_n, rng, mostly_small));
    let expected = expected_quotient(&a, &b, log_n);
    compare(|| format!("2^{log_n}, 100 runs"), &from_planes(gpu, [&a, &b], log_n, 100)?, &expected)
}

/// A workspace that is too small for the exceptions is noticed, and nothing past its end is touched.
fn too_many_exceptions(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let log_n = 10;
    // Two times two is no small value: C has more exceptions than A and B together.
    let twos = Planes::encode(&vec![Scalar::from(2); 1 << log_n], log_n);
    let run = || {
        let stream = Stream::new(gpu)?;
        let (ntt, quotient) = (Ntt::new(&stream, log_n)?, Quotient::new(&stream, log_n)?);
        let mut layout = Layout::new();
        let h = layout.add(padded_len(log_n));
        let workspace = Workspace::plan(h, &mut layout, log_n, 1000);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        workspace.a.upload(&stream, &arena, &twos)?;
        workspace.b.upload(&stream, &arena, &twos)?;
        quotient.from_planes(&stream, &ntt, &arena, &workspace)?;
        Ok::<_, CudaError>(workspace.check(&stream, &arena))
    };
    match run().map_err(text)? {
        Err(CudaError::Misuse { what, .. }) if what.contains("1024") && what.contains("1000") => Ok(()),
        other => Err(format!("expected a refusal that tells both numbers, found {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_references_agree() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for log_n in [0, 1, 2, 5, 9] {
            let x = vector(1 << log_n, &mut rng, random);
            for points in [Points::Domain, Points::Coset] {
                let y = transform(&x, points);
                for (i, y) in y.iter().enumerate() {
                    assert_eq!(*y, evaluate(&x, point(i, log_n, points)), "2^{log_n}, {points:?}, place {i}");
                }
            }
        }
    }
}
