//! Number-theoretic transforms over Fr on a device, and the quotient polynomial H.
//!
//! * [`plan`]: which passes make a transform, and their geometry (pure);
//! * [`table`]: the table of factors;
//! * [`transform`]: transforms of vectors in device memory, in place;
//! * [`planes`]: vectors of mostly small values as planes of bits, the form of A·w and B·w;
//! * [`quotient`]: the six transforms of H as one sequence;
//! * [`checks`], [`at_size`], [`benches`]: what `gpu-check` and `gpu-bench` run.
//!
//! # Order
//!
//! Forward transforms take coefficients in natural order and give values in bit-reversed order, inverse ones the
//! reverse: no permutation is ever done to whole elements. So values on the domain stand at bit-reversed places: that
//! of row `i` of a constraint system is at [`bit_reversed`]`(i, log_n)`. Nobody else sees that order: matrices, their
//! products, planes wherever they come from, and H are in natural order, and [`quotient`] lets the kernel
//! `planes_reverse` bring planes where transforms want them, a few bits a value.

pub mod at_size;
pub mod benches;
pub mod checks;
#[cfg(test)]
mod emulation;
pub mod plan;
pub mod planes;
pub mod quotient;
pub mod table;
pub mod transform;

pub use self::{
    planes::PlanesRegion,
    quotient::Quotient,
    table::TableShape,
    transform::{Ntt, Points},
};

/// The place of value `i` of 2^log_n: its bits in reversed order.
fn bit_reversed(i: usize, log_n: u32) -> usize {
    if log_n == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - log_n) }
}
