//! Vectors of mostly small values: two planes of bits hold 0, 1, 2 or -1, a third says which values are exceptions,
//! to be found in a list. In A·w and B·w of a PoRep 986 of 1,000 values are small: 0.9 bytes a value instead of 32.

use blstrs::Scalar;
use ff::Field;

use super::plan::padded_len;
use crate::cuda::{
    arena::{Arena, Layout, Region},
    error::CudaError,
    fr::{Element, from_montgomery, montgomery},
    memory::{DeviceSlice, Plain},
    stream::Stream,
};

/// Planes on the device: where each part is.
#[derive(Clone, Copy, Debug)]
pub struct PlanesRegion {
    low: Region<u32>,
    high: Region<u32>,
    exceptional: Region<u32>,
    first: Region<u32>,
    list: Region<Element>,
    count: Region<u32>,
}

/// Planes on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Bit 0 of the codes: 0, 1, 2, 3 stand for 0, 1, 2, -1. Value i is bit i mod 32 of word i / 32.
    pub low: Vec<u32>,
    /// Bit 1 of the codes.
    pub high: Vec<u32>,
    /// Which values are in the list (their code is 0).
    pub exceptional: Vec<u32>,
    /// List index of the first exception of each word.
    pub first: Vec<u32>,
    /// The exceptions, in Montgomery form.
    pub list: Vec<Element>,
}

/// `struct planes` of `kernels/planes.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawPlanes {
    low: u64,
    high: u64,
    exceptional: u64,
    first: u64,
    list: u64,
    count: u64,
    capacity: u32,
    unused: u32,
}

// SAFETY: integers without padding between them.
unsafe impl Plain for RawPlanes {}

impl RawPlanes {
    /// The planes from a word on, with the same list.
    pub fn from_word(self, word: usize) -> Self {
        let bytes = 4 * word as u64;
        Self {
            low: self.low + bytes,
            high: self.high + bytes,
            exceptional: self.exceptional + bytes,
            first: self.first + bytes,
            ..self
        }
    }
}

/// Words of a plane of 2^log_n values.
pub fn words(log_n: u32) -> usize {
    padded_len(log_n) / 32
}

impl PlanesRegion {
    /// Room for 2^log_n values of which `capacity` may be exceptions.
    pub fn plan(layout: &mut Layout, log_n: u32, capacity: usize) -> Self {
        let mut plane = || layout.add(words(log_n));
        let (low, high, exceptional, first) = (plane(), plane(), plane(), plane());
        Self { low, high, exceptional, first, list: layout.add(capacity), count: layout.add(1) }
    }

    /// The addresses, for kernels.
    ///
    /// # Errors
    /// The arena is not of this layout.
    pub fn raw(&self, arena: &Arena) -> Result<RawPlanes, CudaError> {
        let plane = |region: Region<u32>| Ok::<_, CudaError>(arena.slice(region)?.address());
        Ok(RawPlanes {
            low: plane(self.low)?,
            high: plane(self.high)?,
            exceptional: plane(self.exceptional)?,
            first: plane(self.first)?,
            list: arena.slice(self.list)?.address(),
            count: plane(self.count)?,
            capacity: u32::try_from(self.list.len()).unwrap_or(u32::MAX),
            unused: 0,
        })
    }

    /// How many exceptions the list can hold.
    pub fn capacity(&self) -> usize {
        self.list.len()
    }

    /// Where the number of exceptions is.
    ///
    /// # Errors
    /// The arena is not of this layout.
    pub fn count<'a>(&self, arena: &'a Arena) -> Result<DeviceSlice<'a, u32>, CudaError> {
        arena.slice(self.count)
    }

    /// Queues setting the number of exceptions to none, before a kernel counts them.
    ///
    /// # Errors
    /// The arena is not of this layout, or what the driver reports.
    pub fn clear(&self, stream: &Stream, arena: &Arena) -> Result<(), CudaError> {
        self.count(arena)?.fill_bytes(stream, 0)
    }

    /// Waits for the number of exceptions, and says whether the list could hold them.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] with both numbers if not, or what the driver reports.
    pub fn check(&self, stream: &Stream, arena: &Arena, what: &str) -> Result<(), CudaError> {
        let mut count = [0];
        self.count(arena)?.download(stream, &mut count)?;
        if count[0] as usize > self.capacity() {
            let what =
                format!("{what}: {} values are not small, the workspace has room for {}", count[0], self.capacity());
            return Err(stream.gpu().misuse(what));
        }
        Ok(())
    }

    /// Copies planes to the device, and waits.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if there are more words or exceptions than there is room for, or what the driver reports.
    pub fn upload(&self, stream: &Stream, arena: &Arena, planes: &Planes) -> Result<(), CudaError> {
        let parts = [
            (self.low, &planes.low),
            (self.high, &planes.high),
            (self.exceptional, &planes.exceptional),
            (self.first, &planes.first),
        ];
        for (region, part) in parts {
            arena.slice(region)?.upload(stream, part)?;
        }
        arena.slice(self.list)?.range(..planes.list.len())?.upload(stream, &planes.list)?;
        self.count(arena)?.upload(stream, &[planes.list.len() as u32])
    }

    /// Copies planes from the device, and waits.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn download(&self, stream: &Stream, arena: &Arena) -> Result<Planes, CudaError> {
        self.check(stream, arena, "planes")?;
        let count = self.count(arena)?.to_vec(stream)?[0] as usize;
        let plane = |region: Region<u32>| arena.slice(region)?.to_vec(stream);
        Ok(Planes {
            low: plane(self.low)?,
            high: plane(self.high)?,
            exceptional: plane(self.exceptional)?,
            first: plane(self.first)?,
            list: arena.slice(self.list)?.range(..count)?.to_vec(stream)?,
        })
    }
}

impl Planes {
    /// The planes of up to 2^log_n values; those not given are 0.
    ///
    /// # Panics
    /// If there are more.
    pub fn encode(values: &[Scalar], log_n: u32) -> Self {
        assert!(values.len() <= 1 << log_n, "{} values for 2^{log_n} places", values.len());
        let [low, high, exceptional, first] = std::array::from_fn(|_| vec![0; words(log_n)]);
        let mut planes = Self { low, high, exceptional, first, list: Vec::new() };
        let small = [Scalar::ZERO, Scalar::ONE, Scalar::from(2), -Scalar::ONE];
        for (word, values) in values.chunks(32).enumerate() {
            planes.first[word] = planes.list.len() as u32;
            for (bit, value) in values.iter().enumerate() {
                match small.iter().position(|s| s == value) {
                    Some(code) => {
                        planes.low[word] |= (code as u32 & 1) << bit;
                        planes.high[word] |= (code as u32 >> 1) << bit;
                    }
                    None => {
                        planes.exceptional[word] |= 1 << bit;
                        planes.list.push(montgomery(value));
                    }
                }
            }
        }
        planes
    }

    /// Value `i`. `None` if it is an exception that is not in the list, or not a canonical number there.
    pub fn value(&self, i: usize) -> Option<Scalar> {
        let (word, bit) = (i / 32, i % 32);
        if self.exceptional[word] >> bit & 1 == 1 {
            let before = (self.exceptional[word] & ((1 << bit) - 1)).count_ones();
            return from_montgomery(*self.list.get((self.first[word] + before) as usize)?);
        }
        Some(match (self.high[word] >> bit & 1, self.low[word] >> bit & 1) {
            (0, 0) => Scalar::ZERO,
            (0, _) => Scalar::ONE,
            (_, 0) => Scalar::from(2),
            _ => -Scalar::ONE,
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn planes_keep_values() {
        let mut rng = StdRng::seed_from_u64(3);
        for log_n in [0, 3, 5, 9, 11] {
            let values: Vec<Scalar> = (0..1 << log_n)
                .map(|_| match rng.gen_range(0..6) {
                    0 => Scalar::from(2),
                    1 => -Scalar::ONE,
                    2 => Scalar::random(&mut rng),
                    bit => Scalar::from(bit & 1),
                })
                .collect();
            let planes = Planes::encode(&values, log_n);
            assert!(values.iter().enumerate().all(|(i, value)| planes.value(i) == Some(*value)), "2^{log_n}");
            assert_eq!(planes.low.len(), words(log_n));
        }
    }
}
