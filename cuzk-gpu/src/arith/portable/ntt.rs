//! Transforms over Fr, several layers per pass over memory: the mirrored forms of [`crate::arith::ifma::ntt`], see there.
//!
//! A pass over q layers takes 2^q rows at a stride, [`WIDTH`] elements of each, to a local buffer, does the layers there
//! and puts them back; the 2^q parts are then transforms of their own, in parallel. Up to [`BLOCK`] elements are done in
//! place. 2^22 elements: three passes.

use std::sync::{Arc, OnceLock};

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::fr::Fr;
use crate::arith::parallel::{Scattered, drain};

/// Log of the largest transform in place: 32 KiB, a first-level cache.
const BLOCK: u32 = 10;

/// Most layers of a strided pass.
const STRIDED: u32 = 6;

/// Elements of a row in a local buffer: four cache lines. The buffer has 16 KiB.
const WIDTH: usize = 8;

/// Tiles per parallel task.
const TILES: usize = 16;

/// Cooley-Tukey, natural order in, bit-reversed order out, in place: x\[k\] = sum over j of x\[j\] w^(-jk). The results are
/// tight.
pub fn natural_to_reversed(x: &mut [Fr], twiddles: &[Fr]) {
    transform::<CooleyTukey>(x, 0, twiddles);
}

/// Gentleman-Sande, bit-reversed order in, natural order out, in place: the transposed matrix, so the same sum.
pub fn reversed_to_natural(x: &mut [Fr], twiddles: &[Fr]) {
    transform::<GentlemanSande>(x, 0, twiddles);
}

/// `table[g]` = w^-bitrev(g) for g < n/2, canonical: the factor of group g in every layer. Computed once per process and
/// size.
pub fn twiddles(log_n: u32) -> Arc<Vec<Fr>> {
    static TABLES: [OnceLock<Arc<Vec<Fr>>>; Scalar::S as usize + 1] =
        [const { OnceLock::new() }; Scalar::S as usize + 1];
    let compute = || {
        let mut table = vec![Fr::from(Scalar::ONE)];
        for k in 0..log_n - 1 {
            let inverse = Scalar::ROOT_OF_UNITY.invert().expect("not zero");
            let root = Fr::from((k + 2..Scalar::S).fold(inverse, |w, _| w.square()));
            let doubled: Vec<Fr> = table.par_iter().map(|t| Fr::mul(t, &root).canonical()).collect();
            table.extend(doubled);
        }
        Arc::new(table)
    };
    TABLES[log_n as usize].get_or_init(compute).clone()
}

/// A kind of butterfly, and the order of layers that goes with it.
trait Form {
    /// From long strides to short ones?
    const LONG_FIRST: bool;
    /// On two elements, with a canonical twiddle.
    fn butterfly(a: &mut Fr, b: &mut Fr, w: &Fr);
}

/// (a + w b, a - w b).
struct CooleyTukey;

impl Form for CooleyTukey {
    const LONG_FIRST: bool = true;

    #[inline(always)]
    fn butterfly(a: &mut Fr, b: &mut Fr, w: &Fr) {
        let t = Fr::mul(w, b);
        (*a, *b) = (Fr::add(a, &t), Fr::sub(a, &t));
    }
}

/// (a + b, (a - b) w).
struct GentlemanSande;

impl Form for GentlemanSande {
    const LONG_FIRST: bool = false;

    #[inline(always)]
    fn butterfly(a: &mut Fr, b: &mut Fr, w: &Fr) {
        (*a, *b) = (Fr::add(a, b), Fr::mul(w, &Fr::sub(a, b)));
    }
}

/// All layers of group `g` of some layer.
fn transform<F: Form>(x: &mut [Fr], g: usize, twiddles: &[Fr]) {
    let log_n = x.len().trailing_zeros();
    if log_n <= BLOCK {
        return layers::<F>(x, 1, g, twiddles);
    }
    let q = STRIDED.min(log_n - BLOCK);
    if F::LONG_FIRST {
        strided_pass::<F>(x, q, g, twiddles);
    }
    let parts = x.par_chunks_mut(1 << (log_n - q)).enumerate();
    parts.for_each(|(i, part)| transform::<F>(part, (g << q) + i, twiddles));
    if !F::LONG_FIRST {
        strided_pass::<F>(x, q, g, twiddles);
    }
}

/// The `q` layers with the longest strides.
fn strided_pass<F: Form>(x: &mut [Fr], q: u32, g: usize, twiddles: &[Fr]) {
    let stride = x.len() >> q;
    let tiles = stride / WIDTH;
    let x = Scattered::new(x);
    drain(
        tiles.div_ceil(TILES),
        || vec![Fr::default(); WIDTH << q],
        |buffer, task| {
            for tile in TILES * task..tiles.min(TILES * (task + 1)) {
                // SAFETY: these columns of all rows belong to this tile alone.
                let row = |i: usize| unsafe { &mut *x.at(i * stride + tile * WIDTH).cast::<[Fr; WIDTH]>() };
                buffer.chunks_exact_mut(WIDTH).enumerate().for_each(|(i, place)| place.copy_from_slice(row(i)));
                layers::<F>(buffer, WIDTH, g, twiddles);
                buffer.chunks_exact(WIDTH).enumerate().for_each(|(i, place)| row(i).copy_from_slice(place));
            }
        },
    );
}

/// All layers over the rows of `x`, `width` elements each, which are group `g` of the layer with the longest stride.
fn layers<F: Form>(x: &mut [Fr], width: usize, g: usize, twiddles: &[Fr]) {
    let q = (x.len() / width).trailing_zeros();
    for step in 0..q {
        let t = if F::LONG_FIRST { step } else { q - 1 - step };
        let half = width << (q - 1 - t);
        for (i, group) in x.chunks_exact_mut(2 * half).enumerate() {
            let (low, high) = group.split_at_mut(half);
            let pairs = low.iter_mut().zip(high);
            match (g << t) + i {
                // The factor is 1: two layers' worth of products in all.
                0 => pairs.for_each(|(a, b)| (*a, *b) = (Fr::add(a, b), Fr::sub(a, b))),
                g => pairs.for_each(|(a, b)| F::butterfly(a, b, &twiddles[g])),
            }
        }
    }
}
