//! Words as numbers, whose bits are written as a layout says.

use std::slice;

use super::{INITIAL, Layout, WordMachine, compress, spread, symbolic::Op};
use crate::{bitmap, witness::WitnessBuilder};

/// A hash in the making.
pub(in crate::native) struct Hasher {
    state: [u32; 8],
}

impl Hasher {
    pub(in crate::native) fn new() -> Self {
        Self { state: INITIAL }
    }

    /// Hashes one block, and writes its variables.
    pub(in crate::native) fn block(&mut self, out: &mut WitnessBuilder, layout: &Layout, block: [[u8; 32]; 2]) {
        let mut message = [0; 16];
        let (words, _) = block.as_flattened().as_chunks();
        for (word, &bytes) in message.iter_mut().zip(words) {
            *word = u32::from_be_bytes(bytes);
        }
        let mut machine = Concrete { ops: layout.ops.iter(), out };
        self.state = compress(&mut machine, self.state, message);
    }

    /// The digest of what was hashed; the padding must have been.
    pub(in crate::native) fn digest(self) -> [u8; 32] {
        let mut digest = [0; 32];
        let (chunks, _) = digest.as_chunks_mut();
        for (chunk, word) in chunks.iter_mut().zip(self.state) {
            *chunk = word.to_be_bytes();
        }
        digest
    }
}

struct Concrete<'a> {
    ops: slice::Iter<'a, Op>,
    out: &'a mut WitnessBuilder,
}

impl Concrete<'_> {
    /// Writes those bits of the next operation's value that are allocated.
    #[inline]
    fn write(&mut self, value: u64) {
        let op = self.ops.next().expect("a layout has every operation of a block");
        self.out.bits(bitmap::compress(value ^ op.flip, op.mask), op.count);
    }
}

impl WordMachine for Concrete<'_> {
    type Word = u32;

    fn constant(&self, value: u32) -> u32 {
        value
    }

    fn rotr(&self, x: u32, by: u32) -> u32 {
        x.rotate_right(by)
    }

    fn shr(&self, x: u32, by: u32) -> u32 {
        x >> by
    }

    fn xor(&mut self, x: u32, y: u32) -> u32 {
        let value = x ^ y;
        self.write(value.into());
        value
    }

    fn ch(&mut self, x: u32, y: u32, z: u32) -> u32 {
        let value = x & y | !x & z;
        self.write(value.into());
        value
    }

    /// The value that is written has the bits of the result at even places, those of `y and z` at odd ones.
    fn maj(&mut self, x: u32, y: u32, z: u32) -> u32 {
        let value = x & y | x & z | y & z;
        self.write(spread(value) | spread(y & z) << 1);
        value
    }

    /// The value that is written is the sum with its carries.
    fn add<const N: usize>(&mut self, operands: [u32; N]) -> u32 {
        let sum: u64 = operands.into_iter().map(u64::from).sum();
        self.write(sum);
        sum as u32
    }
}
