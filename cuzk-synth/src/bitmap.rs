//! A growable set of bit positions, one bit each.

/// A bitmap of fixed or growing length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// A bitmap of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// A bitmap of `len` ones.
    pub fn ones(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let (Some(last), rest @ 1..) = (words.last_mut(), len % 64) {
            *last = (1 << rest) - 1;
        }
        Self { words, len }
    }

    /// The bitmap of these words (see [`Bitmap::words`]). `None` if they are not those of a bitmap of `len` positions.
    pub fn from_words(words: Vec<u64>, len: usize) -> Option<Self> {
        let rest = len % 64;
        let clean = rest == 0 || words.last().is_none_or(|last| last >> rest == 0);
        (words.len() == len.div_ceil(64) && clean).then_some(Self { words, len })
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no position at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends one position.
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if bit {
            self.words[self.len / 64] |= 1 << (self.len % 64);
        }
        self.len += 1;
    }

    /// Sets position `i` to one.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn set(&mut self, i: usize) {
        assert!(i < self.len, "bit {i} of a bitmap of {}", self.len);
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Whether position `i` is one.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "bit {i} of a bitmap of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Number of ones.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The positions that are one, ascending.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    64 * i + bit
                })
            })
        })
    }

    /// Appends the `count` lowest bits of `bits`; the others must be zero.
    #[inline]
    pub fn push_bits(&mut self, bits: u64, count: usize) {
        debug_assert!(count <= 64 && (count == 64 || bits >> count == 0));
        if count == 0 {
            return;
        }
        let used = self.len % 64;
        if used == 0 {
            self.words.push(bits);
        } else {
            *self.words.last_mut().expect("a word is begun") |= bits << used;
            if used + count > 64 {
                self.words.push(bits >> (64 - used));
            }
        }
        self.len += count;
    }

    /// Makes room for `additional` positions more.
    pub fn reserve(&mut self, additional: usize) {
        self.words.reserve(additional.div_ceil(64) + 1);
    }

    /// Appends zeros up to a length of `len`.
    ///
    /// # Panics
    /// If it is longer.
    pub fn grow(&mut self, len: usize) {
        assert!(len >= self.len, "a bitmap of {} cannot grow to {len}", self.len);
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    /// Appends all positions of another bitmap.
    pub fn append(&mut self, other: &Self) {
        self.reserve(other.len);
        let (whole, rest) = (other.len / 64, other.len % 64);
        for &word in &other.words[..whole] {
            self.push_bits(word, 64);
        }
        if rest > 0 {
            self.push_bits(other.words[whole], rest);
        }
    }

    /// Appends the bits of `self` at the positions where `mask` is one, packed, to `packed`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn select_into(&self, mask: &Self, packed: &mut Self) {
        assert_eq!(self.len, mask.len, "bits and mask are of one length");
        for (&bits, &mask) in self.words.iter().zip(&mask.words) {
            packed.push_bits(compress(bits, mask), mask.count_ones() as usize);
        }
    }

    /// The bits as words, position `i` at bit `i % 64` of word `i / 64`; bits past the length are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// The bits of `bits` where `mask` is one, moved together to the low end.
#[inline]
pub(crate) fn compress(bits: u64, mask: u64) -> u64 {
    // Ones from the lowest bit up: nothing moves.
    if mask & mask.wrapping_add(1) == 0 {
        return bits & mask;
    }
    let mut packed = 0;
    let (mut rest, mut place) = (mask, 0);
    while rest != 0 {
        // A run of ones is moved as one: masks of circuits have few of them.
        let start = rest.trailing_zeros();
        let run = (!(rest >> start)).trailing_zeros();
        let ones = if run >= 64 { u64::MAX } else { (1 << run) - 1 };
        packed |= (bits >> start & ones) << place;
        place += run;
        rest &= !(ones << start);
    }
    packed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector_of_bools(bits in proptest::collection::vec(any::<bool>(), 0..300)) {
            let mut pushed = Bitmap::default();
            let mut set = Bitmap::zeros(bits.len());
            for (i, &bit) in bits.iter().enumerate() {
                pushed.push(bit);
                if bit {
                    set.set(i);
                }
            }
            prop_assert_eq!(&pushed, &set);
            prop_assert_eq!(pushed.len(), bits.len());
            let ones: Vec<_> = (0..bits.len()).filter(|&i| bits[i]).collect();
            prop_assert_eq!(pushed.iter_ones().collect::<Vec<_>>(), ones.clone());
            prop_assert_eq!(pushed.count_ones(), ones.len());
            prop_assert!((0..bits.len()).all(|i| pushed.get(i) == bits[i]));
        }
    }

    proptest! {
        #[test]
        fn selection_packs(pairs in proptest::collection::vec(any::<(bool, bool)>(), 0..300), dense in any::<bool>()) {
            let (mut bits, mut mask, mut packed) = (Bitmap::default(), Bitmap::default(), Bitmap::default());
            // A selection may begin anywhere within a word.
            packed.push(true);
            let mut expected = packed.clone();
            for (bit, selected) in pairs {
                let selected = selected || dense;
                bits.push(bit);
                mask.push(selected);
                if selected {
                    expected.push(bit);
                }
            }
            bits.select_into(&mask, &mut packed);
            prop_assert_eq!(packed, expected);
            prop_assert_eq!(Bitmap::from_words(bits.words().to_vec(), bits.len()), Some(bits));
        }
    }

    proptest! {
        #[test]
        fn grows_and_appends(
            first in proptest::collection::vec(any::<bool>(), 0..150),
            zeros in 0_usize..150,
            second in proptest::collection::vec(any::<bool>(), 0..150),
        ) {
            let of = |bits: &[bool]| {
                let mut bitmap = Bitmap::default();
                bits.iter().for_each(|&bit| bitmap.push(bit));
                bitmap
            };
            let mut bitmap = of(&first);
            bitmap.grow(first.len() + zeros);
            bitmap.append(&of(&second));
            prop_assert_eq!(bitmap, of(&[first, vec![false; zeros], second].concat()));
        }
    }

    #[test]
    fn words_past_the_length_are_refused() {
        assert_eq!(Bitmap::from_words(vec![4], 2), None);
        assert_eq!(Bitmap::from_words(vec![0, 0], 64), None);
        assert!(Bitmap::from_words(vec![3], 2).is_some());
    }
}
