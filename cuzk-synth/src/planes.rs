//! A·w and B·w of a partition as planes. Of a PoRep's values 986 in 1,000 are 0, 1, 2 or -1: so a value takes two bits, a third
//! says which values are anything else, and those are listed: 210 MB for both vectors of a 32 GiB partition, not 8.3 GB.

use std::sync::LazyLock;

use blstrs::Scalar;
use ff::Field;

use crate::bitmap::Bitmap;

/// The left and the right factors of all constraints of a partition, in the order of the circuit's constraints, the
/// appended constraints `input_i * 0 = 0` last. Their products are C·w, if the witness satisfies the circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// A·w.
    pub a: Planes,
    /// B·w.
    pub b: Planes,
}

/// A vector of mostly small values. What is small is decided by value, so equal vectors have equal planes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    low: Bitmap,
    high: Bitmap,
    full: Bitmap,
    firsts: Vec<u32>,
    scalars: Vec<Scalar>,
}

impl Rows {
    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        self.a.bytes() + self.b.bytes()
    }
}

impl Planes {
    /// The planes of these values.
    pub fn from_plain(values: impl IntoIterator<Item = Scalar>) -> Self {
        let mut builder = PlanesBuilder::default();
        for value in values {
            builder.value(&value);
        }
        builder.finish()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bit 0 of each value's code: the codes 0, 1, 2, 3 stand for 0, 1, 2, -1. That of a value in the list is 0.
    pub fn low(&self) -> &Bitmap {
        &self.low
    }

    /// Bit 1 of each value's code. Empty if no value is 2 or -1.
    pub fn high(&self) -> &Bitmap {
        &self.high
    }

    /// Which values are none of the four.
    pub fn full(&self) -> &Bitmap {
        &self.full
    }

    /// Those values, in order.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// `firsts()[i]` is how many of those come before value `32 i`.
    pub fn firsts(&self) -> &[u32] {
        &self.firsts
    }

    /// Value `i`, in constant time.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    pub fn value(&self, i: usize) -> Scalar {
        let (word, bit) = (i / 64, i % 64);
        let full = self.full.words()[word];
        if full >> bit & 1 == 1 {
            let half = bit / 32;
            let before = full & ((1 << bit) - 1) & u64::MAX << (32 * half);
            return self.scalars[(self.firsts[2 * word + half] + before.count_ones()) as usize];
        }
        let high = self.high.words().get(word).map_or(0, |high| high >> bit & 1);
        SMALL[(self.low.words()[word] >> bit & 1 | high << 1) as usize]
    }

    /// Writes the values from `first` on; those past the last are zero.
    pub fn fill(&self, first: usize, values: &mut [Scalar]) {
        for (i, value) in (first..).zip(values) {
            *value = if i < self.len() { self.value(i) } else { Scalar::ZERO };
        }
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        let bitmaps = [&self.low, &self.high, &self.full].map(|bitmap| size_of_val(bitmap.words()));
        (bitmaps.iter().sum::<usize>() + size_of_val(&self.firsts[..]) + size_of_val(&self.scalars[..])) as u64
    }
}

/// The values of the codes.
static SMALL: LazyLock<[Scalar; 4]> = LazyLock::new(|| [Scalar::ZERO, Scalar::ONE, Scalar::ONE.double(), -Scalar::ONE]);

/// Planes in the making: values are appended in order.
#[derive(Default)]
pub(crate) struct PlanesBuilder {
    low: Bitmap,
    /// May lag behind `low`, as `full`: what they lack is zeros.
    high: Bitmap,
    full: Bitmap,
    scalars: Vec<Scalar>,
}

impl PlanesBuilder {
    /// Number of values so far.
    pub(crate) fn len(&self) -> usize {
        self.low.len()
    }

    /// Makes room for that many values more; `high`: of which some are 2 or -1.
    pub(crate) fn reserve(&mut self, values: usize, high: bool) {
        self.low.reserve(values);
        self.full.reserve(values);
        if high {
            self.high.reserve(values);
        }
    }

    /// Appends one value.
    #[inline]
    pub(crate) fn value(&mut self, value: &Scalar) {
        match SMALL.iter().position(|small| small == value) {
            Some(code) => self.codes(code as u64 & 1, code as u64 >> 1, 1),
            None => {
                self.full.grow(self.len());
                self.full.push(true);
                self.scalars.push(*value);
                self.low.push(false);
            }
        }
    }

    /// Appends up to 64 values that are hardly ever small.
    #[inline]
    pub(crate) fn values<const N: usize>(&mut self, values: &[Scalar; N]) {
        const { assert!(N <= 64) };
        if values.iter().any(|value| SMALL.contains(value)) {
            values.iter().for_each(|value| self.value(value));
            return;
        }
        self.full.grow(self.len());
        self.full.push_bits(u64::MAX >> (64 - N), N);
        self.scalars.extend_from_slice(values);
        self.low.push_bits(0, N);
    }

    /// Appends `count` values that are 0 or 1: the lowest bits of `bits`, lowest first; the other bits must be zero.
    #[inline]
    pub(crate) fn bits(&mut self, bits: u64, count: usize) {
        self.low.push_bits(bits, count);
    }

    /// Appends `count` small values by their codes; the other bits must be zero.
    #[inline]
    pub(crate) fn codes(&mut self, low: u64, high: u64, count: usize) {
        if high != 0 {
            self.high.grow(self.len());
            self.high.push_bits(high, count);
        }
        self.low.push_bits(low, count);
    }

    /// Appends the values of another.
    pub(crate) fn append(&mut self, other: &Self) {
        if !other.high.is_empty() {
            self.high.grow(self.len());
            self.high.append(&other.high);
        }
        self.full.grow(self.len());
        self.full.append(&other.full);
        self.low.append(&other.low);
        self.scalars.extend_from_slice(&other.scalars);
    }

    /// The finished planes.
    pub(crate) fn finish(self) -> Planes {
        let Self { low, mut high, mut full, scalars } = self;
        full.grow(low.len());
        if !high.is_empty() {
            high.grow(low.len());
        }
        let mut before = 0;
        let halves = full.words().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
        let firsts = halves.take(low.len().div_ceil(32)).map(|half| {
            let first = before;
            before += half.count_ones();
            first
        });
        let firsts = firsts.collect();
        Planes { low, high, full, firsts, scalars }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::witness::tests::values;

    proptest! {
        #[test]
        fn planes_keep_values(values in values(), split in 0..220usize) {
            let planes = Planes::from_plain(values.iter().copied());
            prop_assert_eq!(planes.len(), values.len());
            prop_assert!(values.iter().enumerate().all(|(i, value)| planes.value(i) == *value));
            let mut filled = vec![Scalar::ONE; 70];
            planes.fill(100, &mut filled);
            prop_assert!((100..).zip(filled).all(|(i, x)| x == values.get(i).copied().unwrap_or(Scalar::ZERO)));

            let (one, other) = values.split_at(split.min(values.len()));
            let [mut joined, other] = [one, other].map(|values| {
                let mut builder = PlanesBuilder::default();
                values.iter().for_each(|value| builder.value(value));
                builder
            });
            joined.append(&other);
            prop_assert_eq!(joined.finish(), planes);

            let (threes, rest) = values.as_chunks::<3>();
            let mut together = PlanesBuilder::default();
            threes.iter().for_each(|values| together.values(values));
            rest.iter().for_each(|value| together.value(value));
            prop_assert_eq!(together.finish(), Planes::from_plain(values));
        }

        #[test]
        fn codes_are_values(codes in proptest::collection::vec(0..4u64, 0..64)) {
            let plane = |bit: u64| codes.iter().enumerate().map(|(i, code)| (code >> bit & 1) << i).sum();
            let mut builder = PlanesBuilder::default();
            builder.bits(0b10, 2);
            builder.codes(plane(0), plane(1), codes.len());
            let values = [0, 1].into_iter().chain(codes).map(|code| SMALL[code as usize]);
            prop_assert_eq!(builder.finish(), Planes::from_plain(values));
        }

        #[test]
        fn a_plane_of_bits_has_no_high_bits(bits in any::<u64>()) {
            let mut builder = PlanesBuilder::default();
            builder.bits(bits, 64);
            prop_assert!(builder.finish().high().is_empty());
        }
    }
}
