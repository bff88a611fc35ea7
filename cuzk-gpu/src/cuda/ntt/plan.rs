//! Which passes make a transform. Pure.
//!
//! A pass does up to nine layers on tiles of 512 elements. Measured on an H200, what counts is to have many small
//! independent blocks: four passes over memory hide behind the products, and beat three with larger tiles. An odd
//! number of layers wastes half a stage, so they are even where possible, and the contiguous pass takes eight.

use super::table::TableShape;
use crate::cuda::memory::Plain;

/// log2 of the elements of a tile.
pub const LOG_TILE: u32 = 9;

/// Threads of a block; a block does one tile.
pub const THREADS: u32 = 128;

/// log2 of the largest transform. The table's roots would allow 2^31; the indexes of its parts end here.
pub const MAX_LOG_N: u32 = 28;

/// Layers of the contiguous pass of transforms that have others.
const CONTIGUOUS: u32 = 8;

/// Elements that a vector of 2^log_n needs room for: at least one tile.
pub fn padded_len(log_n: u32) -> usize {
    1 << log_n.max(LOG_TILE)
}

/// Number of blocks of a pass.
pub fn blocks(log_n: u32) -> u32 {
    1 << log_n.saturating_sub(LOG_TILE)
}

/// What a pass does: `struct ntt_pass` of `kernels/ntt.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pass {
    /// log2 of the transform's size.
    pub log_n: u32,
    /// Layers done by this pass.
    pub layers: u32,
    /// log2 of the distance of its lowest layer.
    pub log_distance: u32,
    /// log2 of adjacent columns in a tile.
    pub column_bits: u32,
    /// Tiles are numbered by columns first, then in steps of 2^tile_shift elements.
    pub tile_shift: u32,
    /// 1 on the coset, 0 on the domain.
    pub coset: u32,
    /// Index of the factor -1.
    pub minus_one: u32,
    /// 1 to write canonical numbers.
    pub canonical: u32,
    /// log2 of the factors that are one entry of the table.
    pub log_direct: u32,
}

// SAFETY: nine integers.
unsafe impl Plain for Pass {}

/// Layers of each pass, from the one at the largest distance to the contiguous one. None for one point.
pub fn layers(log_n: u32) -> Vec<u32> {
    match log_n {
        0 => vec![],
        1..=LOG_TILE => vec![log_n],
        _ => {
            let rest = log_n - CONTIGUOUS;
            let passes = rest.div_ceil(CONTIGUOUS);
            // As equal as possible in pairs of layers, smaller ones first; an odd layer goes to a small pass in the
            // middle.
            let pairs = rest / 2;
            let mut layers: Vec<u32> = (0..passes).map(|i| 2 * ((pairs + i) / passes)).collect();
            if rest % 2 == 1 {
                let middle = layers.len() / 2;
                let smallest = (0..layers.len()).min_by_key(|&i| (layers[i], i.abs_diff(middle)));
                layers[smallest.expect("a larger transform than a tile has more than the contiguous pass")] += 1;
            }
            layers.push(CONTIGUOUS);
            layers
        }
    }
}

/// The passes of a forward transform, in order.
pub fn forward(log_n: u32, coset: bool, table: TableShape) -> Vec<Pass> {
    let mut log_distance = log_n;
    let pass = |layers: u32| {
        log_distance -= layers;
        let strided = log_distance > 0;
        Pass {
            log_n,
            layers,
            log_distance,
            column_bits: if strided { LOG_TILE - layers } else { 0 },
            tile_shift: if strided { log_distance + layers } else { LOG_TILE },
            coset: coset.into(),
            minus_one: table.minus_one(),
            canonical: 0,
            log_direct: table.log_direct(),
        }
    };
    layers(log_n).into_iter().map(pass).collect()
}

/// The passes of an inverse transform, in order.
pub fn inverse(log_n: u32, coset: bool, table: TableShape) -> Vec<Pass> {
    forward(log_n, coset, table).into_iter().rev().collect()
}

/// A contiguous pass of no layers, for transforms whose only pass does something else as well.
pub fn nothing(log_n: u32, table: TableShape) -> Pass {
    Pass {
        log_n,
        layers: 0,
        log_distance: 0,
        column_bits: 0,
        tile_shift: LOG_TILE,
        coset: 1,
        minus_one: table.minus_one(),
        canonical: 0,
        log_direct: table.log_direct(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's map from block and tile index to the position in the vector.
    fn position(pass: &Pass, block: u32, e: u32) -> u32 {
        let bits = pass.log_distance - pass.column_bits;
        let (high, low) = (block >> bits, block & ((1 << bits) - 1));
        let base = (high << pass.tile_shift) + (low << pass.column_bits);
        base + ((e >> pass.column_bits) << pass.log_distance) + (e & ((1 << pass.column_bits) - 1))
    }

    #[test]
    fn passes_do_every_layer_once_with_whole_tiles() {
        for log_n in 0..=MAX_LOG_N {
            let passes = forward(log_n, true, TableShape::whole(log_n));
            let mut distance = log_n;
            for pass in &passes {
                assert_eq!(pass.log_distance + pass.layers, distance, "2^{log_n}");
                distance = pass.log_distance;
                assert!((1..=LOG_TILE).contains(&pass.layers));
                // Strided passes of a single layer have no stage of four elements.
                assert!(pass.log_distance == 0 || pass.layers >= 2);
                assert!(pass.log_distance >= pass.column_bits);
            }
            assert_eq!(distance, 0);
            assert!(passes.iter().filter(|pass| pass.layers % 2 == 1).count() <= 1);
        }
    }

    #[test]
    fn tiles_cover_the_vector() {
        for log_n in 1..=18 {
            for pass in forward(log_n, false, TableShape::whole(log_n)) {
                let mut seen = vec![false; padded_len(log_n)];
                for block in 0..blocks(log_n) {
                    for e in 0..1 << LOG_TILE {
                        let p = position(&pass, block, e) as usize;
                        assert!(!std::mem::replace(&mut seen[p], true), "2^{log_n}, {pass:?}: {p} twice");
                    }
                }
                assert!(seen.into_iter().all(|s| s));
            }
        }
    }

    #[test]
    fn plans_of_the_sizes_that_are_measured() {
        assert_eq!(layers(22), [6, 8, 8]);
        assert_eq!(layers(26), [6, 6, 6, 8]);
        assert_eq!(layers(27), [6, 7, 6, 8]);
        assert_eq!(layers(28), [6, 6, 8, 8]);
    }
}
