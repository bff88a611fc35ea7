//! Words whose bits are constants or variables: which bits the circuit allocates, and what it constrains them by, found by
//! its gadgets' own rules.

use std::array;

use super::{Half, INITIAL, WordMachine, compress, spread, sum_bits};

/// What the circuit allocates in one block, operation by operation.
pub(in crate::native) struct Layout {
    pub(super) ops: Vec<Op>,
    /// Number of variables.
    pub(in crate::native) aux: usize,
}

/// What an operation of the machine allocates: the bits of its value (see [`super::concrete`]) under `mask`, inverted
/// where `flip` is one: where the variable is the complement of the bit that it stands for. Each comes with one constraint.
#[derive(Clone, Copy, Default)]
pub(super) struct Op {
    pub(super) mask: u64,
    pub(super) flip: u64,
    pub(super) count: usize,
    /// The factors of constraints that are products of two operands.
    pub(super) a: Choice,
    pub(super) b: Choice,
    /// The bits at which no operand is constant, of operations that have three.
    pub(super) three: u32,
}

/// A word put together bit by bit from the operands of an operation: from each where its mask is one, inverted where
/// `inverted` is. Zero elsewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Choice {
    pub(super) from: [u32; 3],
    pub(super) inverted: u32,
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

/// A bit of an operand, and how its value is found: by the operand's number, perhaps inverted.
#[derive(Clone, Copy)]
struct Operand {
    bit: Bit,
    source: Factor,
}

#[derive(Clone, Copy)]
struct Factor {
    operand: usize,
    inverted: bool,
}

impl Operand {
    fn not(self) -> Self {
        let Factor { operand, inverted } = self.source;
        Self { bit: self.bit.not(), source: Factor { operand, inverted: !inverted } }
    }

    /// The variable of a bit that is none or its complement.
    fn variable(self) -> Self {
        if self.bit == Not { self.not() } else { self }
    }
}

/// The result of an operation on bits. If a variable is allocated for it, it is constrained by a product.
#[derive(Clone, Copy)]
struct Made {
    bit: Bit,
    product: Option<[Factor; 2]>,
}

impl Made {
    fn not(self) -> Self {
        Self { bit: self.bit.not(), ..self }
    }

    fn none(bit: Bit) -> Self {
        Self { bit, product: None }
    }

    fn product(bit: Bit, [x, y]: [Operand; 2]) -> Self {
        Self { bit, product: Some([x.source, y.source]) }
    }
}

/// The left factor is one that is no complement, if there is one.
fn in_order(x: Operand, y: Operand) -> [Operand; 2] {
    if (x.bit, y.bit) == (Not, Is) { [y, x] } else { [x, y] }
}

/// 2 x y = x + y - r, of the variables.
fn xor(x: Operand, y: Operand) -> Made {
    let variables = in_order(x, y).map(Operand::variable);
    match (x.bit, y.bit) {
        (Constant(false), z) | (z, Constant(false)) => Made::none(z),
        (Constant(true), z) | (z, Constant(true)) => Made::none(z.not()),
        (Is, Not) | (Not, Is) => Made::product(Not, variables),
        (Is, Is) | (Not, Not) => Made::product(Is, variables),
    }
}

/// x y = r
fn and(x: Operand, y: Operand) -> Made {
    match (x.bit, y.bit) {
        (Constant(false), _) | (_, Constant(false)) => Made::none(Constant(false)),
        (Constant(true), z) | (z, Constant(true)) => Made::none(z),
        _ => Made::product(Is, in_order(x, y)),
    }
}

/// not ((not x) and (not y))
fn or(x: Operand, y: Operand) -> Made {
    and(x.not(), y.not()).not()
}

/// An operation on three bits: on two of them if one is constant.
enum Made3 {
    Two(Made),
    Three,
}

use Made3::{Three, Two};

/// The order of the cases is the gadget's: more than one may apply.
fn ch(x: Operand, y: Operand, z: Operand) -> Made3 {
    Two(match (x.bit, y.bit, z.bit) {
        (Constant(x), Constant(y), Constant(z)) => Made::none(Constant(if x { y } else { z })),
        (Constant(false), _, z) => Made::none(z),
        (_, Constant(false), _) => and(x.not(), z),
        (_, _, Constant(false)) => and(x, y),
        (_, _, Constant(true)) => or(x.not(), y),
        (_, Constant(true), _) => or(x, z),
        _ => return Three,
    })
}

/// The order of the cases is the gadget's.
fn maj(x: Operand, y: Operand, z: Operand) -> Made3 {
    Two(match (x.bit, y.bit, z.bit) {
        (Constant(x), Constant(y), Constant(z)) => Made::none(Constant(x & y | x & z | y & z)),
        (Constant(false), _, _) => and(y, z),
        (_, Constant(false), _) => and(x, z),
        (_, _, Constant(false)) => and(x, y),
        (_, _, Constant(true)) => or(x, y),
        (_, Constant(true), _) => or(x, z),
        (Constant(true), _, _) => or(y, z),
        _ => return Three,
    })
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

/// One operation in the making.
#[derive(Default)]
struct Recorder {
    allocated: u32,
    flipped: u32,
    op: Op,
}

impl Recorder {
    /// Bit `i` of an operation, and the bit that it makes.
    fn bit(&mut self, i: usize, made: Made) -> Bit {
        if let Some([x, y]) = made.product {
            self.allocated |= 1 << i;
            self.flipped |= u32::from(made.bit == Not) << i;
            self.op.a.choose(i, x);
            self.op.b.choose(i, y);
        }
        made.bit
    }

    fn record(self, ops: &mut Vec<Op>, mask: u64, flip: u64) {
        ops.push(Op { mask, flip, count: mask.count_ones() as usize, ..self.op });
    }
}

impl Choice {
    fn choose(&mut self, i: usize, Factor { operand, inverted }: Factor) {
        self.from[operand] |= 1 << i;
        self.inverted |= u32::from(inverted) << i;
    }
}

/// Bit `i` of the operands.
fn operands<const N: usize>(words: &[Word; N], i: usize) -> [Operand; N] {
    array::from_fn(|operand| Operand { bit: words[operand][i], source: Factor { operand, inverted: false } })
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
        let mut recorder = Recorder::default();
        let word = array::from_fn(|i| {
            let [x, y] = operands(&[x, y], i);
            recorder.bit(i, xor(x, y))
        });
        let (mask, flip) = (recorder.allocated.into(), recorder.flipped.into());
        recorder.record(&mut self.ops, mask, flip);
        word
    }

    fn ch(&mut self, x: Word, y: Word, z: Word) -> Word {
        let mut recorder = Recorder::default();
        let word = array::from_fn(|i| {
            let [x, y, z] = operands(&[x, y, z], i);
            match ch(x, y, z) {
                Two(made) => recorder.bit(i, made),
                // (y - z) x = r - z
                Three => {
                    recorder.op.three |= 1 << i;
                    recorder.op.b.choose(i, x.source);
                    Is
                }
            }
        });
        let (mask, flip) = (recorder.allocated | recorder.op.three, recorder.flipped);
        recorder.record(&mut self.ops, mask.into(), flip.into());
        word
    }

    fn maj(&mut self, x: Word, y: Word, z: Word) -> Word {
        let mut recorder = Recorder::default();
        let word = array::from_fn(|i| {
            let [x, y, z] = operands(&[x, y, z], i);
            match maj(x, y, z) {
                Two(made) => recorder.bit(i, made),
                // (2 y z - y - z) x = y z - r, with a variable for y z, too.
                Three => {
                    recorder.op.three |= 1 << i;
                    recorder.bit(i, and(y, z))
                }
            }
        });
        // Result and conjunction of each bit stand side by side, as do the conjunction's constraint and the result's.
        let mask = spread(recorder.allocated) | spread(recorder.op.three) << 1;
        let flip = spread(recorder.flipped);
        recorder.record(&mut self.ops, mask, flip);
        word
    }

    fn add<const N: usize>(&mut self, operands: [Word; N]) -> Word {
        if operands.as_flattened().iter().any(|bit| bit.is_variable()) {
            Recorder::default().record(&mut self.ops, (1 << sum_bits(N)) - 1, 0);
            return [Is; 32];
        }
        Recorder::default().record(&mut self.ops, 0, 0);
        let value = |word: Word| mask(word.map(|bit| bit == Constant(true))) as u32;
        constant(operands.into_iter().map(value).fold(0, u32::wrapping_add))
    }
}

fn mask(bits: [bool; 32]) -> u64 {
    bits.iter().enumerate().map(|(i, &bit)| u64::from(bit) << i).sum()
}
