//! Words whose bits are constants or variables: which bits the circuit allocates, found by its gadgets' own rules.

use std::array;

use super::{Half, INITIAL, WordMachine, compress, spread, sum_bits};

/// What the circuit allocates in one block, operation by operation.
pub(in crate::native) struct Layout {
    pub(super) ops: Vec<Op>,
    /// Number of variables.
    pub(in crate::native) aux: usize,
}

/// What an operation of the machine allocates: the bits of its value (see [`super::concrete`]) under `mask`, inverted
/// where `flip` is one: where the variable is the complement of the bit that it stands for.
#[derive(Clone, Copy)]
pub(super) struct Op {
    pub(super) mask: u64,
    pub(super) flip: u64,
    pub(super) count: usize,
}

/// What is fixed of a word of a message.
#[derive(Clone, Copy)]
pub(in crate::native) enum MessageWord {
    /// All of it.
    Constant(u32),
    /// Nothing: the bits are variables.
    Variable,
    /// The eighth word of a field element: its 256th bit, the highest of byte 31, is no variable but zero.
    LastOfElement,
}

/// The layout of a block with such a message: a hash's first, or one that follows another.
pub(in crate::native) fn layout(first: bool, message: [Half; 2]) -> Layout {
    let mut machine = Symbolic { ops: Vec::new() };
    let state = if first { INITIAL.map(constant) } else { [[Bit::Is; 32]; 8] };
    compress(&mut machine, state, array::from_fn(|i| word(message.as_flattened()[i])));
    let aux = machine.ops.iter().map(|op| op.count).sum();
    Layout { ops: machine.ops, aux }
}

/// A bit: a constant, a variable, or the complement of a variable.
#[derive(Clone, Copy, PartialEq)]
enum Bit {
    Constant(bool),
    Is,
    Not,
}

use Bit::{Constant, Is, Not};

impl Bit {
    fn not(self) -> Self {
        match self {
            Constant(bit) => Constant(!bit),
            Is => Not,
            Not => Is,
        }
    }

    fn is_variable(self) -> bool {
        !matches!(self, Constant(_))
    }
}

/// The result of an operation on bits, and whether it is allocated.
type Made = (Bit, bool);

fn xor(x: Bit, y: Bit) -> Made {
    match (x, y) {
        (Constant(false), z) | (z, Constant(false)) => (z, false),
        (Constant(true), z) | (z, Constant(true)) => (z.not(), false),
        (Is, Not) | (Not, Is) => (Not, true),
        (Is, Is) | (Not, Not) => (Is, true),
    }
}

fn and(x: Bit, y: Bit) -> Made {
    match (x, y) {
        (Constant(false), _) | (_, Constant(false)) => (Constant(false), false),
        (Constant(true), z) | (z, Constant(true)) => (z, false),
        _ => (Is, true),
    }
}

/// not ((not x) and (not y))
fn or(x: Bit, y: Bit) -> Made {
    let (bit, made) = and(x.not(), y.not());
    (bit.not(), made)
}

/// The order of the cases is the gadget's: more than one may apply.
fn ch(x: Bit, y: Bit, z: Bit) -> Made {
    match (x, y, z) {
        (Constant(x), Constant(y), Constant(z)) => (Constant(if x { y } else { z }), false),
        (Constant(false), _, z) => (z, false),
        (x, Constant(false), z) => and(x.not(), z),
        (x, y, Constant(false)) => and(x, y),
        (x, y, Constant(true)) => or(x.not(), y),
        (x, Constant(true), z) => or(x, z),
        _ => (Is, true),
    }
}

/// If none is a constant, `y and z` is allocated after the result. The order of the cases is the gadget's.
fn maj(x: Bit, y: Bit, z: Bit) -> (Made, bool) {
    let one = match (x, y, z) {
        (Constant(x), Constant(y), Constant(z)) => (Constant(x & y | x & z | y & z), false),
        (Constant(false), y, z) => and(y, z),
        (x, Constant(false), z) => and(x, z),
        (x, y, Constant(false)) => and(x, y),
        (x, y, Constant(true)) => or(x, y),
        (x, Constant(true), z) => or(x, z),
        (Constant(true), y, z) => or(y, z),
        _ => return ((Is, true), true),
    };
    (one, false)
}

/// Lowest bit first.
type Word = [Bit; 32];

fn constant(value: u32) -> Word {
    array::from_fn(|i| Constant(value >> i & 1 == 1))
}

fn word(word: MessageWord) -> Word {
    match word {
        MessageWord::Constant(value) => constant(value),
        MessageWord::Variable => [Is; 32],
        // Words are big-endian: byte 31 is the lowest of the eighth.
        MessageWord::LastOfElement => array::from_fn(|i| if i == 7 { Constant(false) } else { Is }),
    }
}

struct Symbolic {
    ops: Vec<Op>,
}

impl Symbolic {
    fn record(&mut self, mask: u64, flip: u64) {
        self.ops.push(Op { mask, flip, count: mask.count_ones() as usize });
    }

    /// Records an operation that allocates at most one variable for each bit.
    fn record_word(&mut self, made: [Made; 32]) -> Word {
        let allocated = mask(made.map(|(_, allocated)| allocated));
        let flipped = mask(made.map(|(bit, _)| bit == Not));
        self.record(allocated, flipped & allocated);
        made.map(|(bit, _)| bit)
    }
}

impl WordMachine for Symbolic {
    type Word = Word;

    fn constant(&self, value: u32) -> Word {
        constant(value)
    }

    fn rotr(&self, x: Word, by: u32) -> Word {
        array::from_fn(|i| x[(i + by as usize) % 32])
    }

    fn shr(&self, x: Word, by: u32) -> Word {
        array::from_fn(|i| *x.get(i + by as usize).unwrap_or(&Constant(false)))
    }

    fn xor(&mut self, x: Word, y: Word) -> Word {
        self.record_word(array::from_fn(|i| xor(x[i], y[i])))
    }

    fn ch(&mut self, x: Word, y: Word, z: Word) -> Word {
        self.record_word(array::from_fn(|i| ch(x[i], y[i], z[i])))
    }

    fn maj(&mut self, x: Word, y: Word, z: Word) -> Word {
        let made: [(Made, bool); 32] = array::from_fn(|i| maj(x[i], y[i], z[i]));
        // Result and conjunction of each bit stand side by side.
        let results = mask(made.map(|((_, allocated), _)| allocated));
        let conjunctions = mask(made.map(|(_, allocated)| allocated));
        let flipped = mask(made.map(|((bit, _), _)| bit == Not)) & results;
        self.record(spread(results as u32) | spread(conjunctions as u32) << 1, spread(flipped as u32));
        made.map(|((bit, _), _)| bit)
    }

    fn add<const N: usize>(&mut self, operands: [Word; N]) -> Word {
        if operands.as_flattened().iter().any(|bit| bit.is_variable()) {
            self.record((1 << sum_bits(N)) - 1, 0);
            return [Is; 32];
        }
        self.record(0, 0);
        let value = |word: Word| mask(word.map(|bit| bit == Constant(true))) as u32;
        constant(operands.into_iter().map(value).fold(0, u32::wrapping_add))
    }
}

fn mask(bits: [bool; 32]) -> u64 {
    bits.iter().enumerate().map(|(i, &bit)| u64::from(bit) << i).sum()
}
