//! How scalars are cut into signed digits.
//!
//! Where s > (r-1)/2, -s is used and all signs flip: then s < 2^254 and ceil(255/c) windows of c bits suffice. Adding
//! K = sum 2^(c w + c - 1) over all windows but the top one makes the digits independent of each other:
//! digit w = (bits c w .. c w + c of s + K) - 2^(c-1), in -2^(c-1) .. 2^(c-1). The top window has no offset: it holds at
//! most c - 1 bits and a carry, so it lies in 0 ..= 2^(c-1).

/// Widest window: a digit and its sign fit an entry with room to spare, and buckets stay countable.
pub const MAX_WINDOW_BITS: usize = 20;

/// Windows of equal width.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Bits per window, 2..=[`MAX_WINDOW_BITS`].
    pub bits: usize,
    /// ceil(255 / bits).
    pub count: usize,
    /// K, little-endian.
    pub offset: [u64; 4],
}

impl Windows {
    /// Windows of `bits` bits.
    pub fn new(bits: usize) -> Self {
        assert!((2..=MAX_WINDOW_BITS).contains(&bits));
        let count = 255usize.div_ceil(bits);
        let mut offset = [0u64; 4];
        for w in 0..count - 1 {
            let bit = bits * w + bits - 1;
            offset[bit / 64] |= 1 << (bit % 64);
        }
        Self { bits, count, offset }
    }

    /// Buckets of a window: digits 1 ..= 2^(bits-1) in absolute value.
    pub fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }
}
