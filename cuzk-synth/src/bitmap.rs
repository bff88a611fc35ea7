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

    /// The bits as words, position `i` at bit `i % 64` of word `i / 64`; bits past the length are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
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
}
