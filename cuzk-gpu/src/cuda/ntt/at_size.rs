//! Checks at the sizes of 32 and 64 GiB PoReps, where a comparison with the CPU's transforms would take minutes: values at
//! sampled places, all of them there and back, and the quotient's equation at a random point. They take up to half a
//! minute each, and are left out on devices that are too small.

use std::ops::AddAssign;

use blstrs::Scalar;
use cuzk_synth::planes::Planes;
use ff::{Field, PrimeField};
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{
    Ntt, Points, Quotient, TableShape,
    checks::{mostly_small, point, vector},
    plan::padded_len,
    quotient::Workspace,
    table::root_of_unity,
};
use crate::cuda::{
    arena::{Arena, Layout},
    error::CudaError,
    fr::{Element, from_plain, plain},
    gpu::Gpu,
    harness::Check,
    memory::DeviceBuffer,
    stream::Stream,
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "at size/ntt 2^26", run: |gpu, rng| transforms(gpu, rng, TableShape::whole(26)) },
    Check { name: "at size/ntt 2^27", run: |gpu, rng| transforms(gpu, rng, TableShape::whole(27)) },
    Check { name: "at size/ntt 2^28", run: |gpu, rng| transforms(gpu, rng, TableShape::whole(28)) },
    Check {
        name: "at size/ntt 2^27, two levels",
        run: |gpu, rng| transforms(gpu, rng, TableShape::two_levels(27, 23)),
    },
    Check { name: "at size/quotient 2^27", run: |gpu, rng| quotient(gpu, rng, TableShape::whole(27)) },
    Check {
        name: "at size/quotient 2^27, two levels",
        run: |gpu, rng| quotient(gpu, rng, TableShape::two_levels(27, 14)),
    },
];

/// Elements that are looked at together.
const CHUNK: usize = 1 << 12;

fn text(error: CudaError) -> String {
    error.to_string()
}

/// Whether a device has room for that many bytes; else says so.
pub fn has_room(gpu: &Gpu, bytes: usize) -> Result<bool, String> {
    let free = gpu.free_memory().map_err(text)?;
    if free < bytes {
        eprintln!("left out: {free} bytes of device memory are free, {bytes} are needed");
    }
    Ok(free >= bytes)
}

/// Canonical numbers below 2^254, in plain form.
fn elements(rng: &mut ChaCha8Rng, len: usize) -> Vec<Element> {
    let seed = rng.next_u64();
    let mut elements = vec![[0; 8]; len];
    elements.par_iter_mut().enumerate().for_each(|(i, element)| {
        for (k, pair) in element.chunks_exact_mut(2).enumerate() {
            let word = mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul((4 * i + k) as u64)));
            pair.copy_from_slice(&[word as u32, (word >> 32) as u32]);
        }
        element[7] &= 0x3fff_ffff;
    });
    elements
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): its finalizer.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The values at some points of the polynomial with these coefficients: Horner's rule, in parallel. `None` if one of them
/// is not canonical.
fn evaluate<const P: usize>(coefficients: &[Element], points: [Scalar; P]) -> Option<[Scalar; P]> {
    let parts: Option<Vec<[Scalar; P]>> = coefficients
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut sums = [Scalar::ZERO; P];
            for coefficient in chunk.iter().rev() {
                let coefficient = from_plain(*coefficient)?;
                sums.iter_mut().zip(points).for_each(|(sum, z)| *sum = *sum * z + coefficient);
            }
            Some(sums)
        })
        .collect();
    let steps = points.map(|z| z.pow_vartime([CHUNK as u64]));
    let mut sums = [Scalar::ZERO; P];
    for part in parts?.iter().rev() {
        for k in 0..P {
            sums[k] = sums[k] * steps[k] + part[k];
        }
    }
    Some(sums)
}

/// Values at sampled points, and all coefficients there and back.
fn transforms(gpu: &Gpu, rng: &mut ChaCha8Rng, shape: TableShape) -> Result<(), String> {
    let log_n = shape.log_n();
    let n = 1_usize << log_n;
    if !has_room(gpu, 32 * n + shape.bytes() + (1 << 28))? {
        return Ok(());
    }
    let stream = Stream::new(gpu).map_err(text)?;
    let ntt = Ntt::with_table(&stream, shape).map_err(text)?;
    let buffer = DeviceBuffer::<Element>::new(gpu, padded_len(log_n), "a check's vector").map_err(text)?;
    let x = elements(rng, n);
    let mut back = vec![[0; 8]; n.min(1 << 24)];
    for points in [Points::Domain, Points::Coset] {
        buffer.all().upload(&stream, &x).map_err(text)?;
        ntt.forward(&stream, buffer.all(), log_n, points).map_err(text)?;
        let places = [0, n - 1, rng.gen_range(0..n), rng.gen_range(0..n)];
        let expected = evaluate(&x, places.map(|i| point(i, log_n, points))).expect("they were made canonical");
        for (i, expected) in places.into_iter().zip(expected) {
            let found = buffer.all().range(i..=i).and_then(|s| s.to_vec(&stream)).map_err(text)?[0];
            if found != plain(&expected) {
                return Err(format!("{points:?}, place {i}: {found:08x?} instead of {expected}"));
            }
        }
        ntt.inverse(&stream, buffer.all(), log_n, points).map_err(text)?;
        let factor = Scalar::from(n as u64);
        for first in (0..n).step_by(back.len()) {
            buffer.all().range(first..first + back.len()).and_then(|s| s.download(&stream, &mut back)).map_err(text)?;
            let is_wrong = |(found, x): (&Element, &Element)| {
                from_plain(*x).map(|x| plain(&(x * factor))).is_none_or(|expected| *found != expected)
            };
            if let Some(i) = back.par_iter().zip(&x[first..]).position_first(is_wrong) {
                return Err(format!("{points:?}, there and back: element {} is {:08x?}", first + i, back[i]));
            }
        }
    }
    Ok(())
}

/// A(z) B(z) = H(z) (z^N - 1) + C(z) at a random z, with A, B and C from their values on the domain.
fn quotient(gpu: &Gpu, rng: &mut ChaCha8Rng, shape: TableShape) -> Result<(), String> {
    let log_n = shape.log_n();
    let n = 1_usize << log_n;
    // Of products of two such values a tenth is none of 0, 1, 2 and -1.
    let exceptions = n / 8;
    let mut layout = Layout::new();
    let h = layout.add(padded_len(log_n));
    let workspace = Workspace::plan(h, &mut layout, log_n, exceptions);
    if !has_room(gpu, layout.bytes() + shape.bytes() + (1 << 28))? {
        return Ok(());
    }
    let [a, b] = [(); 2].map(|()| vector(n, rng, mostly_small));
    let run = || {
        let stream = Stream::new(gpu)?;
        let (ntt, quotient) = (Ntt::with_table(&stream, shape)?, Quotient::new(&stream, log_n)?);
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        for (region, values) in [(workspace.a, &a), (workspace.b, &b)] {
            region.upload(&stream, &arena, &Planes::from_plain(values.iter().copied()))?;
        }
        let h = quotient.from_planes(&stream, &ntt, &arena, &workspace)?.to_vec(&stream)?;
        workspace.check(&stream, &arena)?;
        Ok(h)
    };
    let h = run().map_err(text)?;
    let z = Scalar::random(&mut *rng);
    let [h_z] = evaluate(&h, [z]).ok_or("H has coefficients that are not canonical")?;
    let [a_z, b_z, c_z] = interpolated(&a, &b, log_n, z);
    match a_z * b_z == h_z * (z.pow_vartime([n as u64]) - Scalar::ONE) + c_z {
        true => Ok(()),
        false => Err(format!("A B is not H (X^N - 1) + C at {z}")),
    }
}

/// The values at z of the polynomials whose values on the domain are those of a, b and a b, in order:
/// (z^N - 1) / N times the sum of w^i a_i / (z - w^i).
fn interpolated(a: &[Scalar], b: &[Scalar], log_n: u32, z: Scalar) -> [Scalar; 3] {
    let root = root_of_unity(log_n);
    let sums = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK)).enumerate().map(|(i, (a, b))| {
        let begin = root.pow_vartime([(i * CHUNK) as u64]);
        let powers: Vec<Scalar> = std::iter::successors(Some(begin), |p| Some(p * root)).take(a.len()).collect();
        // All reciprocals from one.
        let mut products = Vec::with_capacity(a.len());
        let mut product = Scalar::ONE;
        for power in &powers {
            products.push(product);
            product *= z - power;
        }
        let mut rest = product.invert().expect("a random point is not in the domain");
        let mut sums = Sums([Scalar::ZERO; 3]);
        for (k, power) in powers.iter().enumerate().rev() {
            let weight = rest * products[k] * power;
            rest *= z - power;
            sums += Sums([a[k], b[k], a[k] * b[k]].map(|value| value * weight));
        }
        sums
    });
    let Sums(sums) = sums.reduce(
        || Sums([Scalar::ZERO; 3]),
        |mut sums, more| {
            sums += more;
            sums
        },
    );
    let factor = (z.pow_vartime([a.len() as u64]) - Scalar::ONE) * Scalar::TWO_INV.pow_vartime([log_n.into()]);
    sums.map(|sum| sum * factor)
}

/// Three sums.
struct Sums([Scalar; 3]);

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::cuda::ntt::checks::transform;

    #[test]
    fn polynomials_are_evaluated_from_coefficients_and_from_values() {
        let seed = rand::thread_rng().r#gen();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for log_n in [0, 3, 13] {
            let coefficients = elements(&mut rng, 1 << log_n);
            let x: Vec<Scalar> = coefficients.iter().map(|e| from_plain(*e).expect("canonical")).collect();
            let reversed = transform(&x, Points::Domain);
            let values: Vec<Scalar> =
                (0..x.len()).map(|i| reversed[crate::cuda::ntt::bit_reversed(i, log_n)]).collect();
            let z = Scalar::random(&mut rng);
            let ones = vec![Scalar::ONE; x.len()];
            let expected = x.iter().rev().fold(Scalar::ZERO, |sum, c| sum * z + c);
            assert_eq!(interpolated(&values, &ones, log_n, z), [expected, Scalar::ONE, expected], "seed {seed}");
            assert_eq!(evaluate(&coefficients, [z, Scalar::ONE]).map(|v| v[0]), Some(expected), "seed {seed}");
        }
    }
}
