//! The witness in compact form. In a PoRep 98 of 100 values are 0 or 1, so a value takes two bits, and only the rest
//! is kept as field elements: 7 MB instead of 86 MB for 2 KiB, 86 MB instead of 4.2 GB for a 32 GiB partition.

use bellpepper_core::{Circuit, SynthesisError};
use blstrs::Scalar;
use ff::Field;

use crate::{
    bitmap::Bitmap,
    visit::{Lc, Visitor, visit},
};

/// The values of all variables of one circuit instance. What is 0, 1 or anything else is decided by value, so the form
/// is right for every circuit, and equal witnesses are equal in this form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactWitness {
    /// Public inputs, ONE first.
    inputs: Vec<Scalar>,
    /// Auxiliary variables that are 1.
    ones: Bitmap,
    /// Auxiliary variables that are neither 0 nor 1.
    full: Bitmap,
    /// The values of those, in order.
    scalars: Vec<Scalar>,
    /// `ranks[i]` is how many of them come before variable `64 i`.
    ranks: Vec<u32>,
}

/// The value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// 0.
    Zero,
    /// 1.
    One,
    /// Anything else.
    Full(&'a Scalar),
}

impl CompactWitness {
    /// The witness of a circuit that knows its values: its allocations are evaluated, its constraints are never built.
    pub fn of_circuit<C: Circuit<Scalar>>(circuit: C) -> Result<Self, SynthesisError> {
        let (builder, run) = visit(WitnessBuilder::default(), circuit);
        run.map(|()| builder.finish())
    }

    /// The compact form of plain values.
    pub fn from_plain(inputs: Vec<Scalar>, aux: impl IntoIterator<Item = Scalar>) -> Self {
        let mut builder = WitnessBuilder { inputs, ..WitnessBuilder::default() };
        for value in aux {
            builder.num(value);
        }
        builder.finish()
    }

    /// Public inputs, ONE first.
    pub fn inputs(&self) -> &[Scalar] {
        &self.inputs
    }

    /// Number of auxiliary variables.
    pub fn num_aux(&self) -> usize {
        self.ones.len()
    }

    /// Auxiliary variables that are 1.
    pub fn ones(&self) -> &Bitmap {
        &self.ones
    }

    /// Auxiliary variables that are neither 0 nor 1.
    pub fn full(&self) -> &Bitmap {
        &self.full
    }

    /// The values of [`Self::full`], in order.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Value of auxiliary variable `i`, in constant time.
    ///
    /// # Panics
    /// If there is no such variable.
    #[inline]
    pub fn aux(&self, i: usize) -> Value<'_> {
        let (word, bit) = (i / 64, i % 64);
        if self.ones.words()[word] >> bit & 1 == 1 {
            return Value::One;
        }
        let full = self.full.words()[word];
        if full >> bit & 1 == 0 {
            return Value::Zero;
        }
        let before = (full & ((1 << bit) - 1)).count_ones();
        Value::Full(&self.scalars[(self.ranks[word] + before) as usize])
    }

    /// All auxiliary variables as field elements.
    pub fn to_plain(&self) -> Vec<Scalar> {
        (0..self.num_aux()).map(|i| self.aux(i).scalar()).collect()
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        let words = self.ones.words().len() + self.full.words().len();
        let scalars = self.inputs.len() + self.scalars.len();
        (words * 8 + self.ranks.len() * 4 + scalars * size_of::<Scalar>()) as u64
    }
}

impl Value<'_> {
    /// The value as a field element.
    pub fn scalar(self) -> Scalar {
        match self {
            Self::Zero => Scalar::ZERO,
            Self::One => Scalar::ONE,
            Self::Full(value) => *value,
        }
    }
}

/// A witness in the making: variables are appended in the circuit's order of allocation.
#[derive(Default)]
pub(crate) struct WitnessBuilder {
    inputs: Vec<Scalar>,
    ones: Bitmap,
    /// May lag behind `ones`: what it lacks is zeros.
    full: Bitmap,
    scalars: Vec<Scalar>,
}

impl WitnessBuilder {
    /// Makes room for that many auxiliary variables more.
    pub(crate) fn reserve(&mut self, aux: usize) {
        self.ones.reserve(aux);
        self.full.reserve(aux);
    }

    /// Appends a public input.
    pub(crate) fn input(&mut self, value: Scalar) {
        self.inputs.push(value);
    }

    /// Appends an auxiliary variable of any value.
    #[inline]
    pub(crate) fn num(&mut self, value: Scalar) {
        let one = value == Scalar::ONE;
        if !one && value != Scalar::ZERO {
            self.full.grow(self.ones.len());
            self.full.push(true);
            self.scalars.push(value);
        }
        self.ones.push(one);
    }

    /// Appends auxiliary variables of any values.
    pub(crate) fn nums(&mut self, values: &[Scalar]) {
        let bit = |value: &Scalar| *value == Scalar::ZERO || *value == Scalar::ONE;
        for values in values.chunks(64) {
            // Hashes are hardly ever bits.
            if values.iter().any(bit) {
                values.iter().for_each(|&value| self.num(value));
            } else {
                self.full.grow(self.ones.len());
                self.full.push_bits(u64::MAX >> (64 - values.len()), values.len());
                self.ones.push_bits(0, values.len());
                self.scalars.extend_from_slice(values);
            }
        }
    }

    /// Appends the `count` lowest bits of `bits`, lowest first, as auxiliary variables; the other bits must be zero.
    #[inline]
    pub(crate) fn bits(&mut self, bits: u64, count: usize) {
        self.ones.push_bits(bits, count);
    }

    /// Appends the variables of another.
    pub(crate) fn append(&mut self, other: &Self) {
        self.full.grow(self.ones.len());
        self.inputs.extend_from_slice(&other.inputs);
        self.ones.append(&other.ones);
        self.full.append(&other.full);
        self.scalars.extend_from_slice(&other.scalars);
    }

    /// The finished witness.
    pub(crate) fn finish(self) -> CompactWitness {
        let Self { inputs, ones, mut full, scalars } = self;
        full.grow(ones.len());
        let mut before = 0;
        let ranks = full.words().iter().map(|word| {
            let rank = before;
            before += word.count_ones();
            rank
        });
        let ranks = ranks.collect();
        CompactWitness { inputs, ones, full, scalars, ranks }
    }
}

/// The witness pass: keeps values, never builds a constraint.
impl Visitor for WitnessBuilder {
    fn alloc(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.num(value()?);
        Ok(self.ones.len() - 1)
    }

    fn alloc_input(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.input(value()?);
        Ok(self.inputs.len() - 1)
    }

    fn enforce(
        &mut self,
        _: impl FnOnce() -> String,
        _: impl FnOnce() -> Lc,
        _: impl FnOnce() -> Lc,
        _: impl FnOnce() -> Lc,
    ) {
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of all kinds that a witness or a row may have, most of them small.
    pub(crate) fn values() -> impl Strategy<Value = Vec<Scalar>> {
        let value = prop_oneof![
            4 => Just(Scalar::ZERO),
            4 => Just(Scalar::ONE),
            1 => Just(-Scalar::ONE),
            1 => Just(Scalar::from(2)),
            1 => Just(-Scalar::from(2)),
            1 => any::<u64>().prop_map(|x| Scalar::from(x).square()),
        ];
        // Runs of large values, too. Past three words, and not always whole ones.
        let run = prop_oneof![
            4 => proptest::collection::vec(value, 1..9),
            1 => proptest::collection::vec(any::<u64>().prop_map(|x| Scalar::from(x).square()), 1..90),
        ];
        proptest::collection::vec(run, 0..40).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn compact_and_plain_are_the_same(aux in values()) {
            let inputs = vec![Scalar::ONE, Scalar::from(7)];
            let witness = CompactWitness::from_plain(inputs.clone(), aux.iter().copied());
            let mut together = WitnessBuilder { inputs: inputs.clone(), ..WitnessBuilder::default() };
            together.nums(&aux);
            prop_assert_eq!(&together.finish(), &witness);
            prop_assert_eq!(witness.num_aux(), aux.len());
            prop_assert_eq!(witness.inputs(), &inputs[..]);
            prop_assert_eq!(witness.to_plain(), aux.clone());
            for (i, value) in aux.iter().enumerate() {
                let expected = match value {
                    v if *v == Scalar::ZERO => Value::Zero,
                    v if *v == Scalar::ONE => Value::One,
                    v => Value::Full(v),
                };
                prop_assert_eq!(witness.aux(i), expected);
            }
            let other = CompactWitness::from_plain(inputs, witness.to_plain());
            prop_assert_eq!(witness, other);
        }
    }
}
