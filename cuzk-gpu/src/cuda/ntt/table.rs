//! The table of factors: factor j is the product of w_(4 2^b) over the bits b of j, w_k a primitive k-th root of one.
//! An entry holds a number in plain form and its quotient, 64 bytes. One table serves all transforms up to its size.
//!
//! A whole table has every factor. One in two levels has the first 2^d, and the 2^(n-d) that stand for the bits from d
//! on: a factor is then the product of two, and the layers from d on take two products instead of one.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::plan::{LOG_TILE, MAX_LOG_N, THREADS};
use crate::cuda::{
    error::CudaError,
    fr::{Element, montgomery},
    launch::{Args, Grid},
    memory::DeviceBuffer,
    stream::Stream,
};

/// A part of an entry.
pub type Part = [u32; 4];

/// Which factors a table has entries for. Pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    log_factors: u32,
    log_direct: u32,
}

/// The table on a device.
#[derive(Debug)]
pub struct Table {
    parts: DeviceBuffer<Part>,
    shape: TableShape,
}

impl TableShape {
    /// A whole table for transforms of up to 2^log_n points: 64 bytes a point.
    pub fn whole(log_n: u32) -> Self {
        // Tiles of small transforms look up factors of garbage beyond their end, those of a whole tile.
        let log_factors = log_n.max(LOG_TILE + 1);
        Self { log_factors, log_direct: log_factors }
    }

    /// A table of about 64 (2^log_direct + 2^(log_n - log_direct)) bytes. In each layer from log_direct on a butterfly
    /// takes a product more: of n layers n - log_direct, so transforms take about that share longer. The whole table if
    /// log_direct is not below log_n.
    pub fn two_levels(log_n: u32, log_direct: u32) -> Self {
        let whole = Self::whole(log_n);
        Self { log_direct: log_direct.clamp(LOG_GROUP, whole.log_factors), ..whole }
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> usize {
        self.parts() * size_of::<Part>()
    }

    /// log2 of the largest transform that it serves.
    pub fn log_n(&self) -> u32 {
        self.log_factors
    }

    /// Index of the factor -1.
    pub fn minus_one(&self) -> u32 {
        1 << self.log_factors
    }

    /// log2 of the factors that have an entry of their own.
    pub fn log_direct(&self) -> u32 {
        self.log_direct
    }

    /// The module of the kernels for such a table.
    pub fn module(&self) -> &'static str {
        if self.log_direct == self.log_factors { "ntt" } else { "ntt_two_levels" }
    }

    /// Those of 2^log_direct factors, and of the multiples of 2^log_direct up to the factor -1.
    fn entries(&self) -> usize {
        (1 << self.log_direct) + (1 << (self.log_factors - self.log_direct))
    }

    /// Parts of all entries, which come in groups.
    pub(super) fn parts(&self) -> usize {
        4 * self.entries().next_multiple_of(1 << LOG_GROUP)
    }
}

/// log2 of the entries of a group: `ntt_part` of `kernels/ntt.cuh`.
const LOG_GROUP: u32 = 5;

impl Table {
    /// Computes a table; waits until it is there.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] past [`MAX_LOG_N`], [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(stream: &Stream, shape: TableShape) -> Result<Self, CudaError> {
        if shape.log_factors > MAX_LOG_N {
            let what =
                format!("a table for transforms of 2^{} points; the largest are of 2^{MAX_LOG_N}", shape.log_factors);
            return Err(stream.gpu().misuse(what));
        }
        let parts = DeviceBuffer::new(stream.gpu(), shape.parts(), "the table of factors")?;
        let [low, high] =
            bases(shape.log_factors).map(|base| DeviceBuffer::from_host(stream, &base, "bases of the table"));
        let (low, high) = (low?, high?);
        let args = Args::new()
            .slice(parts.all())
            .slice(low.all())
            .slice(high.all())
            .value(low_bits(shape.log_factors))
            .value(shape.log_factors)
            .value(shape.log_direct);
        let grid = Grid::cover(shape.entries(), THREADS);
        // SAFETY: the kernel reads both bases and writes all entries of the shape, of which `parts` has all parts.
        unsafe { stream.gpu().function(shape.module(), "ntt_table")?.launch(stream, grid, &args)? };
        // The bases are freed now.
        stream.wait()?;
        Ok(Self { parts, shape })
    }

    /// The parts, for kernels.
    pub fn parts(&self) -> &DeviceBuffer<Part> {
        &self.parts
    }

    /// Which factors it has.
    pub fn shape(&self) -> TableShape {
        self.shape
    }
}

/// Bytes of the whole table for transforms of up to 2^log_n points.
pub fn bytes(log_n: u32) -> usize {
    TableShape::whole(log_n).bytes()
}

pub(super) fn low_bits(log_entries: u32) -> u32 {
    log_entries / 2
}

/// Entries 0 to 2^low_bits, and those at multiples of 2^low_bits, in Montgomery form: every entry is the product of
/// two.
pub(super) fn bases(log_entries: u32) -> [Vec<Element>; 2] {
    let low = low_bits(log_entries);
    [0..low, low..log_entries].map(|bits| {
        let mut base = vec![Scalar::ONE];
        for bit in bits {
            let root = root_of_unity(bit + 2);
            let more: Vec<Scalar> = base.iter().map(|entry| entry * root).collect();
            base.extend(more);
        }
        base.iter().map(montgomery).collect()
    })
}

/// A primitive 2^k-th root of one, a power of the field's.
pub(super) fn root_of_unity(k: u32) -> Scalar {
    (k..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{fr::from_montgomery, ntt::bit_reversed};

    #[test]
    fn tables_in_two_levels_are_smaller() {
        assert_eq!(bytes(27), 64 * ((1 << 27) + 32));
        let bytes = |log_direct| TableShape::two_levels(27, log_direct).bytes();
        assert_eq!([bytes(25), bytes(14)], [64 * ((1 << 25) + 32), 64 * ((1 << 14) + (1 << 13))]);
        assert_eq!([TableShape::two_levels(20, 20), TableShape::two_levels(20, 30)], [TableShape::whole(20); 2]);
        assert_eq!(TableShape::two_levels(20, 0).log_direct(), 5);
    }

    #[test]
    fn entries_are_powers_in_bit_reversed_order() {
        for log_entries in [10, 11, 13] {
            let [low, high] = bases(log_entries);
            let mask = low.len() - 1;
            let psi = root_of_unity(log_entries + 1);
            for j in [0, 1, 2, 5, 31, 32, 33, 700, (1 << log_entries) - 1] {
                let entry = [low[j & mask], high[j / low.len()]].map(|e| from_montgomery(e).expect("canonical"));
                let expected = psi.pow_vartime([bit_reversed(j, log_entries) as u64]);
                assert_eq!(entry[0] * entry[1], expected, "entry {j} of 2^{log_entries}");
            }
            assert_eq!(low.len() * high.len(), 1 << log_entries);
        }
        assert_eq!(root_of_unity(1), -Scalar::ONE);
    }
}
