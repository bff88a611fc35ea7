//! What is to be where in an arena, as bytes: written into a host copy of it, or uploaded.

use std::{borrow::Cow, mem, ops::Range, slice};

use blstrs::Scalar;
use cuzk_synth::bitmap::Bitmap;
use rayon::prelude::*;

use super::{arena::Arena, error::CudaError, stream::Stream};

/// A place, and the bytes that begin there; zeros behind them.
#[derive(Clone, Debug)]
pub struct Piece<'p> {
    place: Range<usize>,
    bytes: Cow<'p, [u8]>,
}

/// Bytes that one thread copies at once.
const CHUNK: usize = 1 << 20;

impl<'p> Piece<'p> {
    /// # Panics
    /// If there are more bytes than there is room for.
    pub fn new(place: Range<usize>, bytes: impl Into<Cow<'p, [u8]>>) -> Self {
        let bytes = bytes.into();
        assert!(bytes.len() <= place.len(), "{} bytes in a place of {}", bytes.len(), place.len());
        Self { place, bytes }
    }

    /// Copies it to the device, and waits.
    ///
    /// # Errors
    /// The arena is not of the layout, or what the driver reports.
    pub fn upload(&self, stream: &Stream, arena: &Arena) -> Result<(), CudaError> {
        let to = arena.bytes().range(self.place.clone())?;
        to.range(self.bytes.len()..)?.fill_bytes(stream, 0)?;
        to.range(..self.bytes.len())?.upload(stream, &self.bytes)
    }
}

/// Writes pieces into a host copy of an arena. Parallel on the current rayon pool.
///
/// # Panics
/// If two have a place in common, or one ends behind the copy.
pub fn write(host: &mut [u8], mut pieces: Vec<Piece<'_>>) {
    pieces.sort_by_key(|piece| piece.place.start);
    let (mut rest, mut begin) = (host, 0);
    let mut chunks: Vec<(&mut [u8], Option<&[u8]>)> = Vec::new();
    for Piece { place, bytes } in &pieces {
        let (_, behind) = mem::take(&mut rest).split_at_mut(place.start - begin);
        let (here, behind) = behind.split_at_mut(place.len());
        (rest, begin) = (behind, place.end);
        let (copied, zeros) = here.split_at_mut(bytes.len());
        chunks.extend(copied.chunks_mut(CHUNK).zip(bytes.chunks(CHUNK).map(Some)));
        chunks.extend(zeros.chunks_mut(CHUNK).map(|zeros| (zeros, None)));
    }
    chunks.into_par_iter().for_each(|(to, from)| match from {
        Some(bytes) => to.copy_from_slice(bytes),
        None => to.fill(0),
    });
}

/// The bits of the first `len` positions in words of 32, little-endian, of which words of 64 are pairs.
pub fn bit_bytes(bits: &Bitmap, len: usize) -> &[u8] {
    // SAFETY: integers have no padding.
    let bytes = unsafe { plain_bytes(bits.words()) };
    &bytes[..bytes.len().min(4 * len.div_ceil(32))]
}

/// Words as they are in memory.
pub fn word_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: integers have no padding.
    unsafe { plain_bytes(words) }
}

/// Scalars in Montgomery form.
pub fn scalar_bytes(scalars: &[Scalar]) -> &[u8] {
    // SAFETY: a scalar is its words in Montgomery form and nothing else.
    unsafe { plain_bytes(scalars) }
}

/// # Safety
/// `T` has no padding.
unsafe fn plain_bytes<T>(values: &[T]) -> &[u8] {
    // SAFETY: the slice has so many bytes, which the caller says are all initialized.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_where_they_belong_and_nowhere_else() {
        let long: Vec<u8> = (0..3 * CHUNK + 5).map(|i| i as u8 | 1).collect();
        let mut host = vec![7; 4 * CHUNK];
        let end = 20 + long.len();
        let pieces = vec![
            Piece::new(end + 10..end + 10, vec![]),
            Piece::new(20..end + 3, &long[..]),
            Piece::new(0..8, vec![1, 2, 3]),
        ];
        write(&mut host, pieces);
        assert_eq!(host[..20], [1, 2, 3, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(host[20..end], long);
        assert_eq!(host[end..end + 4], [0, 0, 0, 7]);
        assert!(host[end + 3..].iter().all(|byte| *byte == 7));
    }

    #[test]
    #[should_panic(expected = "3 bytes in a place of 2")]
    fn what_has_no_room_is_a_mistake() {
        Piece::new(0..2, vec![0; 3]);
    }
}
