//! Number-theoretic transforms over Fr, eight elements per vector.
//!
//! Two mirrored forms, so that no permutation is ever done: [`passes::natural_to_reversed`] (Cooley-Tukey) and
//! [`passes::reversed_to_natural`] (Gentleman-Sande). Both use the *inverse* root of unity: one table of twiddles serves
//! the whole computation of H (see [`quotient`]).
//!
//! [`twiddles`] holds the table, in bit-reversed order, which makes it the same for all layers and sizes; [`layers`] does
//! butterflies in a local buffer, [`passes`] six or seven layers per pass over memory; [`scale`] multiplies coefficients
//! in bit-reversed order by powers of a number; [`quotient`] puts H together.

pub mod layers;
pub mod passes;
pub mod quotient;
pub mod scale;
pub mod twiddles;

/// Smallest log size for this form: a pass works on whole blocks of eight vectors.
pub const MIN_LOG_N: u32 = 7;

/// The `bits` lowest bits of `i` in reversed order.
pub fn reverse_bits(i: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) }
}
