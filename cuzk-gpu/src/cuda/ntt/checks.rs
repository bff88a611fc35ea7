//! Checks of transforms and of the quotient against the CPU.

use std::ops::RangeInclusive;

use blstrs::Scalar;
use cuzk_synth::planes::Planes;
use ff::Field;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{
    Ntt, PlanesRegion, Points, Quotient, TableShape, bit_reversed, plan::padded_len, quotient::Workspace,
    table::root_of_unity,
};
use crate::{
    arith::{
        Backend,
        fr_vec::{FrVec, quotient_h},
    },
    cuda::{
        arena::{Arena, Layout},
        error::CudaError,
        fr::{Element, from_plain, plain},
        gpu::Gpu,
        harness::Check,
        memory::DeviceBuffer,
        pieces,
        stream::Stream,
    },
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "ntt/small sizes", run: |gpu, rng| every_size(gpu, rng, 0..=11, TableShape::whole(11)) },
    Check { name: "ntt/medium sizes", run: |gpu, rng| every_size(gpu, rng, 12..=16, TableShape::whole(16)) },
    Check { name: "ntt/two levels", run: two_levels },
    Check { name: "ntt/large sizes", run: large_sizes },
    Check { name: "ntt/misuse", run: misuse },
    Check { name: "quotient/small sizes", run: |gpu, rng| every_quotient(gpu, rng, 0..=11, TableShape::whole(11)) },
    Check { name: "quotient/medium sizes", run: |gpu, rng| every_quotient(gpu, rng, 12..=16, TableShape::whole(16)) },
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
pub(super) fn mostly_small(rng: &mut ChaCha8Rng) -> Scalar {
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
pub(super) fn vector(len: usize, rng: &mut ChaCha8Rng, value: fn(&mut ChaCha8Rng) -> Scalar) -> Vec<Scalar> {
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
pub(super) fn point(i: usize, log_n: u32, points: Points) -> Scalar {
    let power = root_of_unity(log_n).pow_vartime([bit_reversed(i, log_n) as u64]);
    match points {
        Points::Domain => power,
        Points::Coset => power * root_of_unity(log_n + 1),
    }
}

/// Horner's rule, in parallel.
pub(super) fn evaluate(coefficients: &[Scalar], z: Scalar) -> Scalar {
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
fn every_size(gpu: &Gpu, rng: &mut ChaCha8Rng, sizes: RangeInclusive<u32>, shape: TableShape) -> Result<(), String> {
    let stream = Stream::new(gpu).map_err(text)?;
    let ntt = Ntt::with_table(&stream, shape).map_err(text)?;
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

/// All that is checked with a whole table, with smaller ones.
fn two_levels(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    for (sizes, log_direct) in [(0..=13, 5), (0..=10, 9), (8..=14, 12), (15..=16, 8)] {
        let shape = TableShape::two_levels(*sizes.end(), log_direct);
        every_size(gpu, rng, sizes.clone(), shape).map_err(|error| format!("{shape:?}: {error}"))?;
        every_quotient(gpu, rng, sizes, shape).map_err(|error| format!("{shape:?}: {error}"))?;
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

/// H from planes in the workspace and from staged ones in turn, `runs` times, each of which must give the same.
fn from_planes(
    gpu: &Gpu,
    [a, b]: [&[Scalar]; 2],
    log_n: u32,
    shape: TableShape,
    runs: u32,
) -> Result<Vec<Scalar>, String> {
    let planes = [a, b].map(|values| Planes::from_plain(values.iter().copied()));
    let run = || {
        let stream = Stream::new(gpu)?;
        let (ntt, quotient) = (Ntt::with_table(&stream, shape)?, Quotient::new(&stream, log_n)?);
        let mut layout = Layout::new();
        let h = layout.add(padded_len(log_n));
        let workspace = Workspace::plan(h, &mut layout, log_n, 1 << log_n);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        let mut layout = Layout::new();
        let rows = planes.each_ref().map(|planes| PlanesRegion::plan(&mut layout, log_n, planes.scalars().len()));
        let staged = Arena::new(gpu, &layout, "a check's planes")?;
        let mut host = vec![0xdb; layout.bytes()];
        let mut results: Vec<Vec<Element>> = Vec::new();
        for run in 0..runs {
            let h = if run % 2 == 0 {
                for (region, planes) in rows.iter().zip(&planes) {
                    let pieces = region.pieces(planes).map_err(|what| gpu.misuse(what))?;
                    pieces::write(&mut host, pieces.into());
                    let bytes = region.used(planes.scalars().len());
                    staged.bytes().range(bytes.clone())?.upload(&stream, &host[bytes])?;
                }
                let raw = [rows[0].raw(&staged)?, rows[1].raw(&staged)?];
                let h = quotient.from_rows(&stream, &ntt, &arena, &workspace, raw)?;
                workspace.check_product(&stream, &arena)?;
                h
            } else {
                for (region, planes) in [workspace.a, workspace.b].iter().zip(&planes) {
                    region.upload(&stream, &arena, planes)?;
                }
                let h = quotient.from_planes(&stream, &ntt, &arena, &workspace)?;
                workspace.check(&stream, &arena)?;
                h
            };
            let h = h.range(..1 << log_n)?.to_vec(&stream)?;
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

fn every_quotient(
    gpu: &Gpu,
    rng: &mut ChaCha8Rng,
    sizes: RangeInclusive<u32>,
    shape: TableShape,
) -> Result<(), String> {
    for log_n in sizes {
        for (kind, value) in [("small", mostly_small as fn(&mut _) -> _), ("any", random)] {
            let (a, b) = (vector(1 << log_n, rng, value), vector(1 << log_n, rng, value));
            let expected = expected_quotient(&a, &b, log_n);
            compare(|| format!("2^{log_n}, {kind}"), &from_planes(gpu, [&a, &b], log_n, shape, 2)?, &expected)?;
        }
    }
    Ok(())
}

fn large_quotients(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    for log_n in [20, 22] {
        let (a, b) = (vector(1 << log_n, rng, mostly_small), vector(1 << log_n, rng, mostly_small));
        let expected = expected_quotient(&a, &b, log_n);
        compare(|| format!("2^{log_n}"), &from_planes(gpu, [&a, &b], log_n, TableShape::whole(log_n), 2)?, &expected)?;
    }
    Ok(())
}

fn repeated_quotient(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let log_n = 17;
    let (a, b) = (vector(1 << log_n, rng, mostly_small), vector(1 << log_n, rng, mostly_small));
    let expected = expected_quotient(&a, &b, log_n);
    compare(
        || format!("2^{log_n}, 100 runs"),
        &from_planes(gpu, [&a, &b], log_n, TableShape::whole(log_n), 100)?,
        &expected,
    )
}

/// A workspace that is too small for the exceptions is noticed, and nothing past its end is touched.
fn too_many_exceptions(gpu: &Gpu, _: &mut ChaCha8Rng) -> Result<(), String> {
    let log_n = 10;
    // Two times two is no small value: C has more exceptions than A and B together.
    let twos = Planes::from_plain(vec![Scalar::from(2); 1 << log_n]);
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
