//! The table of factors: entry j is the product of w_(4 2^b) over the bits b of j, w_k a primitive k-th root of one,
//! in plain form and with its quotient, 64 bytes an entry. One table serves all transforms up to its size.

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

/// The table on a device.
#[derive(Debug)]
pub struct Table {
    parts: DeviceBuffer<Part>,
    log_entries: u32,
}

impl Table {
    /// Computes the table for transforms of up to 2^log_n points; waits until it is there. 64 bytes a point.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] past [`MAX_LOG_N`], [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(stream: &Stream, log_n: u32) -> Result<Self, CudaError> {
        if log_n > MAX_LOG_N {
            let what = format!("a table for transforms of 2^{log_n} points; the largest are of 2^{MAX_LOG_N}");
            return Err(stream.gpu().misuse(what));
        }
        // Tiles of small transforms look up factors of garbage beyond their end, those of a whole tile.
        let log_entries = log_n.max(LOG_TILE + 1);
        let parts = DeviceBuffer::new(stream.gpu(), parts(log_entries), "the table of factors")?;
        let [low, high] = bases(log_entries).map(|base| DeviceBuffer::from_host(stream, &base, "bases of the table"));
        let (low, high) = (low?, high?);
        let args = Args::new()
            .slice(parts.all())
            .slice(low.all())
            .slice(high.all())
            .value(low_bits(log_entries))
            .value(log_entries);
        let grid = Grid::cover((1 << log_entries) + 1, THREADS);
        // SAFETY: the kernel reads both bases and writes entries 0 to 2^log_entries, of which `parts` has all parts.
        unsafe { stream.gpu().function("ntt", "ntt_table")?.launch(stream, grid, &args)? };
        // The bases are freed now.
        stream.wait()?;
        Ok(Self { parts, log_entries })
    }

    /// The parts, for kernels.
    pub fn parts(&self) -> &DeviceBuffer<Part> {
        &self.parts
    }

    /// log2 of the largest transform that it serves.
    pub fn log_n(&self) -> u32 {
        self.log_entries
    }

    /// Index of the entry that holds -1.
    pub fn minus_one(&self) -> u32 {
        1 << self.log_entries
    }
}

/// Bytes of the table for transforms of up to 2^log_n points.
pub fn bytes(log_n: u32) -> usize {
    parts(log_n.max(LOG_TILE + 1)) * size_of::<Part>()
}

/// Parts of the table, whole groups of 128 entries of which the last holds one more.
pub(super) fn parts(log_entries: u32) -> usize {
    4 * ((1 << log_entries) + 128)
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
