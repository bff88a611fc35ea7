//! One synthesized partition: the witness, the values of the three sides of every constraint, and which variables
//! occur at all.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use crate::bitmap::Bitmap;

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
        let mut cs = Self::new();
        cs.alloc_input(|| "one", || Ok(Scalar::ONE))?;
        circuit.synthesize(&mut cs)?;
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

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        let scalars = self.inputs.len() + self.aux.len() + self.a.len() + self.b.len() + self.c.len();
        let bits = self.density.a_aux.len() + self.density.b_inputs.len() + self.density.b_aux.len();
        (scalars * size_of::<Scalar>() + bits / 8) as u64
    }

    /// Value of a linear combination; tells `seen` of each variable whose coefficient is not zero.
    fn eval(inputs: &[Scalar], aux: &[Scalar], lc: &LinearCombination<Scalar>, mut seen: impl FnMut(Index)) -> Scalar {
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

impl ConstraintSystem<Scalar> for Assignment {
    type Root = Self;

    fn new() -> Self {
        Self::default()
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        self.density.a_aux.push(false);
        self.density.b_aux.push(false);
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        self.density.b_inputs.push(false);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let Density { a_aux, b_inputs, b_aux } = &mut self.density;
        let (inputs, aux) = (&self.inputs, &self.aux);
        let a = Self::eval(inputs, aux, &a(LinearCombination::zero()), |index| {
            if let Index::Aux(i) = index {
                a_aux.set(i);
            }
        });
        let b = Self::eval(inputs, aux, &b(LinearCombination::zero()), |index| match index {
            Index::Input(i) => b_inputs.set(i),
            Index::Aux(i) => b_aux.set(i),
        });
        let c = Self::eval(inputs, aux, &c(LinearCombination::zero()), |_| ());
        self.a.push(a);
        self.b.push(b);
        self.c.push(c);
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}
