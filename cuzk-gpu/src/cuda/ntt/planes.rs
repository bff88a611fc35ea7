//! Vectors of mostly small values: two planes of bits hold 0, 1, 2 or -1, a third says which values are exceptions,
//! to be found in a list. In A·w and B·w of a PoRep 986 of 1,000 values are small: 0.9 bytes a value instead of 32.
//!
//! Planes are in natural order, on the host ([`Planes`]) and on the device, and have the same bytes there but for zeros
//! up to 2^n values: uploading them is copying.

use std::ops::Range;

use blstrs::Scalar;
use cuzk_synth::planes::Planes;
use ff::Field;

use super::plan::padded_len;
use crate::cuda::{
    arena::{Arena, Layout, Region},
    error::CudaError,
    fr::{Element, from_montgomery},
    memory::{DeviceSlice, Plain},
    pieces::{self, Piece},
    stream::Stream,
};

/// Planes on the device: where each part is.
#[derive(Clone, Copy, Debug)]
pub struct PlanesRegion {
    low: Region<u32>,
    high: Region<u32>,
    exceptional: Region<u32>,
    first: Region<u32>,
    count: Region<u32>,
    list: Region<Element>,
}

/// What a device's planes hold, value by value: for checks.
#[derive(Clone, Debug)]
pub struct Downloaded {
    low: Vec<u32>,
    high: Vec<u32>,
    exceptional: Vec<u32>,
    first: Vec<u32>,
    list: Vec<Element>,
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
        let count = layout.add(1);
        // Last, so that what is staged is one range whatever the list's length.
        Self { low, high, exceptional, first, count, list: layout.add(capacity) }
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

    /// What is where for a vector, in an arena or a host copy of one.
    ///
    /// # Errors
    /// There are more values or exceptions than there is room for.
    pub fn pieces<'p>(&self, planes: &'p Planes) -> Result<[Piece<'p>; 6], String> {
        let (values, exceptions) = (planes.len(), planes.scalars());
        if values > 32 * self.low.len() || exceptions.len() > self.capacity() {
            return Err(format!(
                "{values} values, {} of them not small, where there is room for {} and {}",
                exceptions.len(),
                32 * self.low.len(),
                self.capacity()
            ));
        }
        let bits = |region: Region<u32>, bits| Piece::new(region.bytes(), pieces::bit_bytes(bits, values));
        let list = self.list.bytes().start;
        let list = list..list + size_of_val(exceptions);
        Ok([
            bits(self.low, planes.low()),
            bits(self.high, planes.high()),
            bits(self.exceptional, planes.full()),
            Piece::new(self.first.bytes(), pieces::word_bytes(planes.firsts())),
            Piece::new(self.count.bytes(), (exceptions.len() as u32).to_ne_bytes().to_vec()),
            Piece::new(list, pieces::scalar_bytes(exceptions)),
        ])
    }

    /// The bytes that have all pieces of a vector with so many exceptions.
    pub fn used(&self, exceptions: usize) -> Range<usize> {
        let list = self.list.bytes().start;
        self.low.bytes().start..list + exceptions * size_of::<Element>()
    }

    /// Copies planes to the device, and waits.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if there are more values or exceptions than there is room for, or what the driver reports.
    pub fn upload(&self, stream: &Stream, arena: &Arena, planes: &Planes) -> Result<(), CudaError> {
        let pieces = self.pieces(planes).map_err(|what| stream.gpu().misuse(what))?;
        pieces.iter().try_for_each(|piece| piece.upload(stream, arena))
    }

    /// Copies planes from the device, and waits.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn download(&self, stream: &Stream, arena: &Arena) -> Result<Downloaded, CudaError> {
        self.check(stream, arena, "planes")?;
        let count = self.count(arena)?.to_vec(stream)?[0] as usize;
        let plane = |region: Region<u32>| arena.slice(region)?.to_vec(stream);
        Ok(Downloaded {
            low: plane(self.low)?,
            high: plane(self.high)?,
            exceptional: plane(self.exceptional)?,
            first: plane(self.first)?,
            list: arena.slice(self.list)?.range(..count)?.to_vec(stream)?,
        })
    }
}

impl Downloaded {
    /// How many exceptions there are.
    pub fn exceptions(&self) -> usize {
        self.list.len()
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

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks_exact(4).map(|b| u32::from_ne_bytes(b.try_into().expect("4 bytes"))).collect()
    }

    fn values(rng: &mut StdRng, len: usize) -> Vec<Scalar> {
        let value = |_| match rng.gen_range(0..6) {
            0 => Scalar::from(2),
            1 => -Scalar::ONE,
            2 => Scalar::random(&mut *rng),
            bit => Scalar::from(bit & 1),
        };
        (0..len).map(value).collect()
    }

    #[test]
    fn staged_planes_are_what_a_device_reads() {
        let seed = rand::thread_rng().r#gen();
        let mut rng = StdRng::seed_from_u64(seed);
        for (log_n, len) in [(0, 1), (3, 8), (5, 20), (9, 512), (11, 1500), (11, 1504), (12, 4096), (12, 33)] {
            let mut layout = Layout::new();
            layout.add::<u8>(1000);
            let region = PlanesRegion::plan(&mut layout, log_n, len);
            let behind = layout.add::<u8>(100);
            let mut host = vec![0xdb; layout.bytes()];
            let values = values(&mut rng, len);
            let planes = Planes::from_plain(values.iter().copied());
            pieces::write(&mut host, region.pieces(&planes).expect("it fits").into());
            let staged = region.used(planes.scalars().len());
            assert!(staged.start >= 1000 && staged.end <= behind.bytes().start);
            assert!(host[..1000].iter().chain(&host[staged.end..]).all(|byte| *byte == 0xdb));
            let plane = |region: Region<u32>| words(&host[region.bytes()]);
            let downloaded = Downloaded {
                low: plane(region.low),
                high: plane(region.high),
                exceptional: plane(region.exceptional),
                first: plane(region.first),
                list: words(&host[region.list.bytes().start..staged.end])
                    .chunks_exact(8)
                    .map(|e| e.try_into().expect("8 words"))
                    .collect(),
            };
            assert_eq!(words(&host[region.count.bytes()]), [downloaded.exceptions() as u32]);
            for i in 0..padded_len(log_n) {
                let expected = values.get(i).copied().unwrap_or(Scalar::ZERO);
                assert_eq!(downloaded.value(i), Some(expected), "value {i} of {len}, seed {seed}");
            }
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let region = PlanesRegion::plan(&mut Layout::new(), 3, 2);
        let exceptions = Planes::from_plain([Scalar::from(7); 3]);
        let error = region.pieces(&exceptions).expect_err("three exceptions, room for two");
        assert!(error.contains("3 of them") && error.contains("and 2"), "{error}");
        let long = Planes::from_plain(vec![Scalar::ONE; 513]);
        assert!(region.pieces(&long).expect_err("a word too many").contains("513"));
    }
}
