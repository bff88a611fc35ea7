//! Sum of the points selected by a bitmap.

use group::Group;
use rayon::prelude::*;

use super::rows::{Rows, affine_from_rows};
use super::tree::{PIECE, Segment, Sums, sum_lists};
use crate::arith::curve::Curve;

/// Sum of the rows whose bit is set; bits past the table are ignored. One batched addition per set bit.
///
/// # Safety
/// The machine has the AVX-512 features.
pub unsafe fn sum_selected<C: Curve>(rows: &Rows<C>, bitmap: &[u64]) -> C::Projective {
    let n = rows.rows().len();
    let words = bitmap.len().min(n.div_ceil(64));
    let entries: Vec<u32> = bitmap[..words]
        .par_chunks(1 << 10)
        .enumerate()
        .flat_map_iter(|(chunk, bits)| {
            bits.iter().enumerate().flat_map(move |(i, &bits)| {
                let word = (chunk << 10) + i;
                let in_table = if 64 * (word + 1) <= n { !0 } else { (1 << (n % 64)) - 1 };
                set_bits(bits & in_table & !rows.identity_word(word)).map(move |bit| (64 * word) as u32 + bit)
            })
        })
        .collect();
    let mut sum = C::Projective::identity();
    if entries.is_empty() {
        return sum;
    }
    let list = Segment { start: 0, len: entries.len() as u32, result: 0 };
    let mut sums = Sums::identities(1);
    // SAFETY: the caller vouches for the features; entries are rows that are points.
    unsafe {
        sum_lists(rows.rows(), &entries, &[list], PIECE, &mut sums);
        if !sums.identity[0] {
            let point = affine_from_rows::<C>(&sums.rows).next();
            C::add_affine(&mut sum, &point.expect("one row, one point"));
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
