//! Sum of the points selected by a bitmap.

use group::Group;
use rayon::prelude::*;

use super::lists::{PIECE, Segment, Sums, sum_lists};
use super::{Engine, Points};
use crate::arith::curve::Curve;

/// Sum of the rows whose bit is set; bits past the table are ignored. One batched addition per set bit.
pub unsafe fn sum_selected<C: Curve, E: Engine<C>>(table: Points<E::Row>, bitmap: &[u64]) -> C::Projective {
    let n = table.rows.len();
    let words = bitmap.len().min(n.div_ceil(64));
    let entries: Vec<u32> = bitmap[..words]
        .par_chunks(1 << 10)
        .enumerate()
        .flat_map_iter(|(chunk, bits)| {
            bits.iter().enumerate().flat_map(move |(i, &bits)| {
                let word = (chunk << 10) + i;
                let in_table = if 64 * (word + 1) <= n { !0 } else { (1 << (n % 64)) - 1 };
                set_bits(bits & in_table & !table.identity_word(word)).map(move |bit| (64 * word) as u32 + bit)
            })
        })
        .collect();
    let mut sum = C::Projective::identity();
    if entries.is_empty() {
        return sum;
    }
    let list = Segment { start: 0, len: entries.len() as u32, result: 0 };
    let mut sums = Sums::identities(1);
    // SAFETY: the caller vouches for the instructions; entries are rows that are points.
    unsafe {
        sum_lists::<C, E>(table.rows, &entries, &[list], PIECE, &mut sums);
        if !sums.identity[0] {
            C::add_affine(&mut sum, &E::to_affine(&sums.rows)[0]);
        }
    }
    sum
}

/// Positions of the set bits, ascending.
pub fn set_bits(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        let some = bits != 0;
        bits &= bits.wrapping_sub(1);
        some.then_some(bit)
    })
}
