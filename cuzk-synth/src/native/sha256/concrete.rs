//! Words as numbers, whose bits are written as a layout says.

use std::slice;

use blstrs::Scalar;
use ff::PrimeField;

use super::{
    INITIAL, Layout, WordMachine, compress, spread,
    symbolic::{Choice, Op},
};
use crate::{
    bitmap,
    native::writer::{Codes, Writer},
    poseidon::field,
};

/// A hash in the making.
pub(in crate::native) struct Hasher {
    state: [u32; 8],
}

impl Hasher {
    pub(in crate::native) fn new() -> Self {
        Self { state: INITIAL }
    }

    /// Hashes one block, and writes its variables and constraints.
    pub(in crate::native) fn block(&mut self, out: &mut Writer, layout: &Layout, block: [[u8; 32]; 2]) {
        let mut message = [0; 16];
        let (words, _) = block.as_flattened().as_chunks();
        for (word, &bytes) in message.iter_mut().zip(words) {
            *word = u32::from_be_bytes(bytes);
        }
        let mut machine = Concrete { ops: layout.ops.iter(), out, sums: Sums::default() };
        self.state = compress(&mut machine, self.state, message);
        machine.sums.write(out);
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
    out: &'a mut Writer,
    sums: Sums,
}

impl<'a> Concrete<'a> {
    fn next(&mut self) -> &'a Op {
        self.ops.next().expect("a layout has every operation of a block")
    }

    /// Writes those bits of an operation's value that are allocated, and the factors of their constraints.
    #[inline]
    fn write(&mut self, op: &Op, value: u64, a: Codes, b: u64) {
        let pack = |bits| bitmap::compress(bits, op.mask);
        self.out.wires(pack(value ^ op.flip), op.count);
        self.out.small_products(a.map(pack), pack(b), op.count);
    }
}

impl Choice {
    #[inline]
    fn of(&self, [x, y, z]: [u32; 3]) -> u32 {
        let [from_x, from_y, from_z] = self.from;
        (x & from_x | y & from_y | z & from_z) ^ self.inverted
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

    #[inline]
    fn xor(&mut self, x: u32, y: u32) -> u32 {
        let value = x ^ y;
        let op = self.next();
        let [a, b] = [op.a, op.b].map(|choice| choice.of([x, y, 0]).into());
        self.write(op, value.into(), Codes::doubled(a), b);
        value
    }

    #[inline]
    fn ch(&mut self, x: u32, y: u32, z: u32) -> u32 {
        let value = x & y | !x & z;
        let op = self.next();
        let [a, b] = [op.a, op.b].map(|choice| choice.of([x, y, z]).into());
        let three = Codes::difference((y & op.three).into(), (z & op.three).into());
        self.write(op, value.into(), three.or(Codes::bits(a)), b);
        value
    }

    /// The value that is written has the bits of the result at even places, those of `y and z` at odd ones.
    #[inline]
    fn maj(&mut self, x: u32, y: u32, z: u32) -> u32 {
        let value = x & y | x & z | y & z;
        let op = self.next();
        let [a, b] = [op.a, op.b].map(|choice| spread(choice.of([x, y, z])));
        // 2 y z - y - z is 0 or -1.
        let three = Codes::difference(0, spread((y ^ z) & op.three) << 1);
        self.write(op, spread(value) | spread(y & z) << 1, three.or(Codes::bits(a)), b | spread(x & op.three) << 1);
        value
    }

    /// The value that is written is the sum with its carries.
    #[inline]
    fn add<const N: usize>(&mut self, operands: [u32; N]) -> u32 {
        let sum: u64 = operands.into_iter().map(u64::from).sum();
        let count = self.next().count;
        if count > 0 {
            self.out.bits(sum, count);
            self.sums.add(self.out, sum, count);
        }
        sum as u32
    }
}

/// Sums whose constraints wait until a field element is full of them: they are one equation then.
#[derive(Default)]
struct Sums {
    packed: [u64; 4],
    used: usize,
}

impl Sums {
    const CAPACITY: usize = Scalar::CAPACITY as usize;

    #[inline]
    fn add(&mut self, out: &mut Writer, sum: u64, count: usize) {
        if self.used + count >= Self::CAPACITY {
            self.write(out);
        }
        let (word, bit) = (self.used / 64, self.used % 64);
        self.packed[word] |= sum << bit;
        if bit + count > 64 {
            self.packed[word + 1] = sum >> (64 - bit);
        }
        self.used += count;
    }

    fn write(&mut self, out: &mut Writer) {
        if self.used > 0 {
            out.equal(&field::from_integer(self.packed));
        }
        *self = Self::default();
    }
}
