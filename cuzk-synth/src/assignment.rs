//! One synthesized partition: the witness, the values of the three sides of every constraint, and which variables
//! occur at all.

use bellpepper_core::{Circuit, Index, SynthesisError};
use blstrs::Scalar;
use ff::Field;

use crate::{
    bitmap::Bitmap,
    visit::{Lc, Visitor, visit},
};

/// The witness of one circuit instance and the evaluations of A, B and C on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Public inputs, ONE first.
    pub inputs: Vec<Scalar>,
    /// Auxiliary (private) variables in allocation order.
    pub aux: Vec<Scalar>,
    /// A·w, one entry a constraint, the appended input constraints last.
    pub a: Vec<Scalar>,
    /// B·w likewise.
    pub b: Vec<Scalar>,
    /// C·w likewise.
    pub c: Vec<Scalar>,
    /// Which variables occur in A and B.
    pub density: Density,
}

/// Which variables occur with a coefficient that is not zero: only those have points in the `a` and `b` queries.
/// (Public inputs all occur in A, because of the appended constraints.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Density {
    /// Auxiliary variables in A.
    pub a_aux: Bitmap,
    /// Public inputs in B.
    pub b_inputs: Bitmap,
    /// Auxiliary variables in B.
    pub b_aux: Bitmap,
}

impl Assignment {
    /// Synthesizes a circuit that knows its values, and appends the constraint `input_i * 0 = 0` for every public
    /// input, as Groth16's consistency check needs and as the parameters are generated (Groth 2016; bellperson's
    /// generator does the same).
    pub fn synthesize<C: Circuit<Scalar>>(circuit: C) -> Result<Self, SynthesisError> {
        let (mut cs, run) = visit(Self::default(), circuit);
        run?;
        for i in 0..cs.inputs.len() {
            cs.a.push(cs.inputs[i]);
            cs.b.push(Scalar::ZERO);
            cs.c.push(Scalar::ZERO);
        }
        Ok(cs)
    }

    /// Number of constraints, the appended ones included.
    pub fn num_constraints(&self) -> usize {
        self.a.len()
    }

    /// The first constraint that the witness does not satisfy, by index.
    pub fn first_unsatisfied(&self) -> Option<usize> {
        (0..self.a.len()).find(|&i| self.a[i] * self.b[i] != self.c[i])
    }

    /// Value of a linear combination; tells `seen` of each variable whose coefficient is not zero.
    fn eval(inputs: &[Scalar], aux: &[Scalar], lc: &Lc, mut seen: impl FnMut(Index)) -> Scalar {
        let mut sum = Scalar::ZERO;
        let mut add = |index, value: Scalar, coefficient: &Scalar| {
            if bool::from(coefficient.is_zero()) {
                return;
            }
            seen(index);
            sum += if *coefficient == Scalar::ONE { value } else { value * coefficient };
        };
        for (&i, coefficient) in lc.iter_inputs() {
            add(Index::Input(i), inputs[i], coefficient);
        }
        for (&i, coefficient) in lc.iter_aux() {
            add(Index::Aux(i), aux[i], coefficient);
        }
        sum
    }
}

impl Visitor for Assignment {
    fn alloc(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.aux.push(value()?);
        self.density.a_aux.push(false);
        self.density.b_aux.push(false);
        Ok(self.aux.len() - 1)
    }

    fn alloc_input(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.inputs.push(value()?);
        self.density.b_inputs.push(false);
        Ok(self.inputs.len() - 1)
    }

    fn enforce(
        &mut self,
        _: impl FnOnce() -> String,
        a: impl FnOnce() -> Lc,
        b: impl FnOnce() -> Lc,
        c: impl FnOnce() -> Lc,
    ) {
        let Density { a_aux, b_inputs, b_aux } = &mut self.density;
        let (inputs, aux) = (&self.inputs, &self.aux);
        let a = Self::eval(inputs, aux, &a(), |index| {
            if let Index::Aux(i) = index {
                a_aux.set(i);
            }
        });
        let b = Self::eval(inputs, aux, &b(), |index| match index {
            Index::Input(i) => b_inputs.set(i),
            Index::Aux(i) => b_aux.set(i),
        });
        let c = Self::eval(inputs, aux, &c(), |_| ());
        self.a.push(a);
        self.b.push(b);
        self.c.push(c);
    }
}
