//! What a partition's synthesis leaves, in the making: variables and constraints are appended in the circuit's order.
//!
//! Of a constraint a · b = c only the values of a and b are kept: that of c is their product.

use blstrs::Scalar;
use ff::Field;

use crate::{
    planes::{PlanesBuilder, Rows},
    synthesis::Synthesis,
    witness::WitnessBuilder,
};

#[derive(Default)]
pub(super) struct Writer {
    witness: WitnessBuilder,
    a: PlanesBuilder,
    b: PlanesBuilder,
}

impl Writer {
    /// Makes room for that many auxiliary variables, and for about as many constraints, as a PoRep has.
    pub(super) fn reserve(&mut self, aux: usize) {
        let constraints = aux + aux / 256;
        self.witness.reserve(aux);
        self.a.reserve(constraints, true);
        self.b.reserve(constraints, false);
    }

    /// A public input.
    pub(super) fn input(&mut self, value: Scalar) {
        self.witness.input(value);
    }

    /// A variable that is a number.
    #[inline]
    pub(super) fn num(&mut self, value: Scalar) {
        self.witness.num(value);
    }

    /// Variables that are numbers.
    pub(super) fn nums(&mut self, values: &[Scalar]) {
        self.witness.nums(values);
    }

    /// Variables that other constraints make bits, from the lowest of `bits` on; the bits above must be zero.
    #[inline]
    pub(super) fn wires(&mut self, bits: u64, count: usize) {
        self.witness.bits(bits, count);
    }

    /// Variables with the constraint that each is a bit: (1 - v) v = 0.
    #[inline]
    pub(super) fn bits(&mut self, bits: u64, count: usize) {
        self.wires(bits, count);
        self.small_products(Codes::bits(!bits & low_bits(count)), bits, count);
    }

    /// Constraints whose factors are small, the right ones bits.
    #[inline]
    pub(super) fn small_products(&mut self, a: Codes, b: u64, count: usize) {
        self.a.codes(a.low, a.high, count);
        self.b.bits(b, count);
    }

    /// a · b, of each pair
    #[inline]
    pub(super) fn products<const N: usize>(&mut self, a: [Scalar; N], b: [Scalar; N]) {
        self.a.values(&a);
        self.b.values(&b);
    }

    /// a · 1: that a is something else.
    #[inline]
    pub(super) fn equal(&mut self, a: &Scalar) {
        self.a.value(a);
        self.b.bits(1, 1);
    }

    /// 0 · 0: that what was written is something else.
    pub(super) fn no_product(&mut self) {
        self.small_products(Codes::default(), 0, 1);
    }

    /// A number of which x or y is picked: (y - x) condition = y - picked.
    pub(super) fn pick(&mut self, condition: bool, x: Scalar, y: Scalar) -> Scalar {
        let picked = if condition { x } else { y };
        self.num(picked);
        self.a.value(&(y - x));
        self.b.bits(condition.into(), 1);
        picked
    }

    /// Appends what another has.
    pub(super) fn append(&mut self, other: &Self) {
        self.witness.append(&other.witness);
        self.a.append(&other.a);
        self.b.append(&other.b);
    }

    /// The whole, with a constraint input · 0 = 0 for every public input at the end.
    pub(super) fn finish(self) -> Synthesis {
        let Self { witness, mut a, mut b } = self;
        let witness = witness.finish();
        for input in witness.inputs() {
            a.value(input);
            b.value(&Scalar::ZERO);
        }
        Synthesis { witness, rows: Some(Rows { a: a.finish(), b: b.finish() }) }
    }
}

/// Small values in the code of [`crate::planes::Planes`].
#[derive(Clone, Copy, Default)]
pub(super) struct Codes {
    low: u64,
    high: u64,
}

impl Codes {
    /// 0 or 1.
    #[inline]
    pub(super) fn bits(bits: u64) -> Self {
        Self { low: bits, high: 0 }
    }

    /// 0 or 2.
    #[inline]
    pub(super) fn doubled(bits: u64) -> Self {
        Self { low: 0, high: bits }
    }

    /// x - y, bit by bit.
    #[inline]
    pub(super) fn difference(x: u64, y: u64) -> Self {
        Self { low: x ^ y, high: !x & y }
    }

    /// Those of either, of which one must be 0.
    #[inline]
    pub(super) fn or(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }

    /// Bit by bit through f.
    #[inline]
    pub(super) fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Self { low: f(self.low), high: f(self.high) }
    }
}

/// That many ones, of fewer than 64.
#[inline]
fn low_bits(count: usize) -> u64 {
    u64::MAX >> (64 - count)
}
