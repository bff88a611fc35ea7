//! Whole transforms: several layers per pass over memory.
//!
//! A pass over layers s .. s + q takes 2^q rows at a stride of n / 2^(s+q) elements, [`WIDTH`] vectors of each, to a local
//! buffer, does the layers there and puts them back. (Working in place would use few cache sets: the strides are powers
//! of two.) The pass with the shortest strides works on contiguous vectors in place, and does the three layers inside
//! vectors as well. 2^22 elements: three passes.

use std::ops::Range;

use super::super::fr::Fr;
use super::layers::{cooley_tukey_in_vectors, cooley_tukey_layer, gentleman_sande_in_vectors, gentleman_sande_layer};
use super::twiddles::Twiddles;
use crate::arith::parallel::{Scattered, drain};

/// Vectors of a row in a local buffer: 640 bytes, ten whole cache lines.
const WIDTH: usize = 2;

/// Most layers of a strided pass: 2^6 rows of two vectors are 40 KiB.
const STRIDED: u32 = 6;

/// Most layers between vectors of the contiguous pass: 2^7 vectors are 40 KiB.
const CONTIGUOUS: u32 = 7;

/// Tiles per parallel task.
const TILES: usize = 16;

/// Cooley-Tukey, natural order in, bit-reversed order out, in place: x\[k\] = sum over j of x\[j\] w^(-jk).
///
/// Normalised values below 8r to the same. The size is at least 2^7.
///
/// # Safety
/// The machine has the AVX-512 features. `twiddles` are those of this size or a larger one.
pub unsafe fn natural_to_reversed(x: &mut [Fr], twiddles: &Twiddles) {
    let (strided, contiguous) = plan(x.len());
    for layers in strided {
        // SAFETY: the caller's.
        unsafe { strided_pass(x, layers, twiddles, Kind::CooleyTukey) };
    }
    // SAFETY: the caller's.
    unsafe { contiguous_pass(x, contiguous, twiddles, Kind::CooleyTukey) };
}

/// Gentleman-Sande, bit-reversed order in, natural order out, in place: the transposed matrix of
/// [`natural_to_reversed`], so the same sum with the same root.
///
/// Normalised values below 4r to the same (1 + 2^-8).
///
/// # Safety
/// As for [`natural_to_reversed`].
pub unsafe fn reversed_to_natural(x: &mut [Fr], twiddles: &Twiddles) {
    let (strided, contiguous) = plan(x.len());
    // SAFETY: the caller's.
    unsafe { contiguous_pass(x, contiguous, twiddles, Kind::GentlemanSande) };
    for layers in strided.into_iter().rev() {
        // SAFETY: the caller's.
        unsafe { strided_pass(x, layers, twiddles, Kind::GentlemanSande) };
    }
}

#[derive(Clone, Copy)]
enum Kind {
    CooleyTukey,
    GentlemanSande,
}

/// Layers of each strided pass, and of the contiguous pass, for a number of vectors.
fn plan(vectors: usize) -> (Vec<Range<u32>>, Range<u32>) {
    let layers = vectors.trailing_zeros();
    assert!(vectors.is_power_of_two() && layers >= 4, "at least 128 elements");
    let long = layers.saturating_sub(CONTIGUOUS);
    let passes = long.div_ceil(STRIDED);
    // Evenly long passes; the first ones get what is left over.
    let bounds = |p: u32| (p * long).div_ceil(passes.max(1));
    ((0..passes).map(|p| bounds(p)..bounds(p + 1)).collect(), long..layers)
}

/// Layers `layers` over rows at a stride.
unsafe fn strided_pass(x: &mut [Fr], layers: Range<u32>, twiddles: &Twiddles, kind: Kind) {
    let group = x.len() >> layers.start; // vectors
    let stride = x.len() >> layers.end;
    let tiles_per_group = stride / WIDTH;
    let tiles = tiles_per_group << layers.start;
    let x = Scattered::new(x);
    drain(
        tiles.div_ceil(TILES),
        || vec![None; WIDTH << layers.len()],
        |buffer: &mut Vec<Option<Fr>>, task| {
            for tile in TILES * task..tiles.min(TILES * (task + 1)) {
                let (g, column) = (tile / tiles_per_group, tile % tiles_per_group * WIDTH);
                // SAFETY: rows column .. column + WIDTH of group g belong to this tile alone.
                unsafe {
                    tile_pass(
                        x.at(g * group + column),
                        stride,
                        g,
                        layers.len(),
                        buffer.as_mut_ptr().cast(),
                        twiddles,
                        kind,
                    );
                }
            }
        },
    );
}

/// One tile of a strided pass: 2^q rows from `x`, the group being number `g` in the first layer.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn tile_pass(x: *mut Fr, stride: usize, g: usize, q: usize, buffer: *mut Fr, twiddles: &Twiddles, kind: Kind) {
    // SAFETY: the caller's rows; the buffer has 2^q rows.
    unsafe {
        for row in 0..1 << q {
            for column in 0..WIDTH {
                *buffer.add(row * WIDTH + column) = *x.add(row * stride + column);
            }
        }
        for t in 0..q {
            match kind {
                Kind::CooleyTukey => cooley_tukey_layer(buffer, WIDTH << (q - t - 1), 1 << t, g << t, twiddles),
                Kind::GentlemanSande => {
                    let t = q - t - 1;
                    gentleman_sande_layer(buffer, WIDTH << (q - t - 1), 1 << t, g << t, twiddles);
                }
            }
        }
        for row in 0..1 << q {
            for column in 0..WIDTH {
                *x.add(row * stride + column) = (*buffer.add(row * WIDTH + column)).norm();
            }
        }
    }
}

/// Layers `layers` to the end, and the three layers inside vectors.
unsafe fn contiguous_pass(x: &mut [Fr], layers: Range<u32>, twiddles: &Twiddles, kind: Kind) {
    let block = x.len() >> layers.start;
    let blocks = x.len() / block;
    let x = Scattered::new(x);
    drain(
        blocks.div_ceil(TILES),
        || (),
        |(), task| {
            for g in TILES * task..blocks.min(TILES * (task + 1)) {
                // SAFETY: block g belongs to this task alone.
                unsafe { block_pass(x.at(g * block), g, layers.len(), twiddles, kind) };
            }
        },
    );
}

/// 2^q contiguous vectors, group number `g` in the first of these layers.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn block_pass(x: *mut Fr, g: usize, q: usize, twiddles: &Twiddles, kind: Kind) {
    let eights = (1 << q) / 8;
    // SAFETY: the caller's vectors.
    unsafe {
        match kind {
            Kind::CooleyTukey => {
                for t in 0..q {
                    cooley_tukey_layer(x, 1 << (q - t - 1), 1 << t, g << t, twiddles);
                }
                for e in 0..eights {
                    cooley_tukey_in_vectors(x.add(8 * e), g * eights + e, twiddles);
                }
            }
            Kind::GentlemanSande => {
                for e in 0..eights {
                    gentleman_sande_in_vectors(x.add(8 * e), g * eights + e, twiddles);
                }
                for t in (0..q).rev() {
                    gentleman_sande_layer(x, 1 << (q - t - 1), 1 << t, g << t, twiddles);
                }
            }
        }
        for v in 0..1 << q {
            *x.add(v) = (*x.add(v)).norm();
        }
    }
}
