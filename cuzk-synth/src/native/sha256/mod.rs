//! SHA-256 as the circuit computes it (FIPS 180-4, in the arrangement of bellpepper's gadget), over words of two kinds.
//!
//! [`compress`] is written once. Over [`symbolic`] words, whose bits are constants or variables, it finds out which bits of
//! which intermediate words the circuit allocates, and what the factors of their constraints are: a [`Layout`]. Over [`concrete`] words it computes the values and writes
//! them as a layout says. A layout depends on the constant bits of a block alone, and there are few kinds of blocks.

mod concrete;
mod symbolic;

use std::array;

pub(super) use concrete::Hasher;
pub(super) use symbolic::{Layout, MessageWord, layout};

/// Half a block, or one field element of 32 bytes: what is fixed of it.
pub(super) type Half = [MessageWord; 8];

/// A field element that nothing is known of.
pub(super) const ELEMENT: Half = {
    let mut half = [MessageWord::Variable; 8];
    half[7] = MessageWord::LastOfElement;
    half
};

/// These very bytes.
pub(super) fn fixed(bytes: [u8; 32]) -> Half {
    let (words, _) = bytes.as_chunks();
    array::from_fn(|i| MessageWord::Constant(u32::from_be_bytes(words[i])))
}

/// The last `N` half blocks of a hash of `bytes` bytes: nothing but padding (FIPS 180-4, 5.1.1).
pub(super) const fn padding<const N: usize>(bytes: u16) -> [[u8; 32]; N] {
    let mut halves = [[0; 32]; N];
    halves[0][0] = 0x80;
    let bits = (bytes as u32 * 8).to_be_bytes();
    let mut i = 0;
    while i < bits.len() {
        halves[N - 1][28 + i] = bits[i];
        i += 1;
    }
    halves
}

/// A machine for the words of SHA-256. Operations that may allocate take `&mut self`, in the circuit's order.
trait WordMachine {
    type Word: Copy;

    fn constant(&self, value: u32) -> Self::Word;
    fn rotr(&self, x: Self::Word, by: u32) -> Self::Word;
    fn shr(&self, x: Self::Word, by: u32) -> Self::Word;
    fn xor(&mut self, x: Self::Word, y: Self::Word) -> Self::Word;
    /// Each bit: x ? y : z.
    fn ch(&mut self, x: Self::Word, y: Self::Word, z: Self::Word) -> Self::Word;
    /// Each bit: what two or three of the operands are.
    fn maj(&mut self, x: Self::Word, y: Self::Word, z: Self::Word) -> Self::Word;
    /// The sum modulo 2^32. The circuit allocates the carries, too.
    fn add<const N: usize>(&mut self, operands: [Self::Word; N]) -> Self::Word;
}

/// What a round's new `e` and `a` are the sums of. The circuit lays down the sums when the next round needs them: that of
/// `e` at its start, that of `a` after `ch`.
#[derive(Clone, Copy)]
struct RoundSums<W> {
    e: [W; 6],
    a: [W; 7],
}

/// One block: the state after it.
fn compress<M: WordMachine>(m: &mut M, state: [M::Word; 8], message: [M::Word; 16]) -> [M::Word; 8] {
    let w = expand(m, message);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    let mut sums: Option<RoundSums<M::Word>> = None;
    for (i, &k) in K.iter().enumerate() {
        if let Some(sums) = sums {
            e = m.add(sums.e);
        }
        let s1 = [6, 11, 25].map(|by| m.rotr(e, by));
        let s1 = xor3(m, s1);
        let ch = m.ch(e, f, g);
        if let Some(sums) = sums {
            a = m.add(sums.a);
        }
        let s0 = [2, 13, 22].map(|by| m.rotr(a, by));
        let s0 = xor3(m, s0);
        let maj = m.maj(a, b, c);
        let k = m.constant(k);
        sums = Some(RoundSums { e: [h, s1, ch, k, w[i], d], a: [h, s1, ch, k, w[i], s0, maj] });
        (b, c, d, f, g, h) = (a, b, c, e, f, g);
    }
    let RoundSums { e: [e0, e1, e2, e3, e4, e5], a: [a0, a1, a2, a3, a4, a5, a6] } = sums.expect("there are 64 rounds");
    [
        m.add([a0, a1, a2, a3, a4, a5, a6, state[0]]),
        m.add([state[1], b]),
        m.add([state[2], c]),
        m.add([state[3], d]),
        m.add([e0, e1, e2, e3, e4, e5, state[4]]),
        m.add([state[5], f]),
        m.add([state[6], g]),
        m.add([state[7], h]),
    ]
}

/// The message schedule.
fn expand<M: WordMachine>(m: &mut M, message: [M::Word; 16]) -> [M::Word; 64] {
    let mut w: [M::Word; 64] = array::from_fn(|i| message[i % 16]);
    for i in 16..64 {
        let (x, y) = (w[i - 15], w[i - 2]);
        let s0 = [m.rotr(x, 7), m.rotr(x, 18), m.shr(x, 3)];
        let s0 = xor3(m, s0);
        let s1 = [m.rotr(y, 17), m.rotr(y, 19), m.shr(y, 10)];
        let s1 = xor3(m, s1);
        w[i] = m.add([w[i - 16], s0, w[i - 7], s1]);
    }
    w
}

fn xor3<M: WordMachine>(m: &mut M, [x, y, z]: [M::Word; 3]) -> M::Word {
    let xy = m.xor(x, y);
    m.xor(xy, z)
}

/// Bits of a sum of `n` words: those of n (2^32 - 1).
const fn sum_bits(n: usize) -> usize {
    (n as u64 * u32::MAX as u64).ilog2() as usize + 1
}

/// Spreads bit i to bit 2i.
const fn spread(x: u32) -> u64 {
    let x = x as u64;
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// The state before the first block: the fractional parts of the square roots of the first 8 primes.
const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// The fractional parts of the cube roots of the first 64 primes.
#[rustfmt::skip]
const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::native::writer::Writer;

    #[test]
    fn digests_are_those_of_another_implementation() {
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        // What is allocated does not change the value: a block without constants and one with, of whatever content.
        let free = layout(false, [ELEMENT; 2]);
        for blocks in 0..20 {
            let (mut hasher, mut reference) = (Hasher::new(), Sha256::new());
            let mut out = Writer::default();
            for _ in 0..blocks {
                let block: [[u8; 32]; 2] = rng.r#gen();
                hasher.block(&mut out, &free, block);
                reference.update(block.as_flattened());
            }
            hasher.block(&mut out, &free, padding(64 * blocks));
            assert_eq!(hasher.digest(), <[u8; 32]>::from(reference.finalize()), "seed {seed}, {blocks} blocks");
            assert_eq!(out.finish().witness.num_aux(), (usize::from(blocks) + 1) * free.aux);
        }
    }

    #[test]
    fn sums_have_room_for_their_carries() {
        assert_eq!([2, 4, 5, 8].map(sum_bits), [33, 34, 35, 35]);
        assert_eq!(spread(0x8000_0003), 0x4000_0000_0000_0005);
    }
}
