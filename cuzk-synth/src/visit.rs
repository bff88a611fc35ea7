//! One constraint system for all that we do with circuits: it hands variables, constraints and namespaces to a visitor.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

/// A linear combination of variables.
pub(crate) type Lc = LinearCombination<Scalar>;

/// What is done with a circuit. Values, names and linear combinations come as closures: who does not call them does not
/// pay for them.
pub(crate) trait Visitor: Default + Send {
    /// A new auxiliary variable; answers its index.
    fn alloc(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError>;

    /// A new public input; answers its index. The first of all is ONE.
    fn alloc_input(&mut self, value: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError>;

    /// A constraint a * b = c.
    fn enforce(
        &mut self,
        name: impl FnOnce() -> String,
        a: impl FnOnce() -> Lc,
        b: impl FnOnce() -> Lc,
        c: impl FnOnce() -> Lc,
    );

    /// What follows is within this namespace.
    fn push_namespace(&mut self, _name: impl FnOnce() -> String) {}

    /// The innermost namespace ends.
    fn pop_namespace(&mut self) {}
}

/// Shows a circuit to a visitor, and returns it with how the synthesis ended.
pub(crate) fn visit<V: Visitor, C: Circuit<Scalar>>(visitor: V, circuit: C) -> (V, Result<(), SynthesisError>) {
    let mut tour = Tour(visitor);
    let run = tour.0.alloc_input(|| Ok(Scalar::ONE)).and_then(|_| circuit.synthesize(&mut tour));
    (tour.0, run)
}

struct Tour<V>(V);

impl<V: Visitor> ConstraintSystem<Scalar> for Tour<V> {
    type Root = Self;

    fn new() -> Self {
        Self(V::default())
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(Variable(Index::Aux(self.0.alloc(value)?)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(Variable(Index::Input(self.0.alloc_input(value)?)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, name: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(Lc) -> Lc,
        LB: FnOnce(Lc) -> Lc,
        LC: FnOnce(Lc) -> Lc,
    {
        self.0.enforce(|| name().into(), || a(Lc::zero()), || b(Lc::zero()), || c(Lc::zero()));
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.0.push_namespace(|| name().into());
    }

    fn pop_namespace(&mut self) {
        self.0.pop_namespace();
    }

    fn get_root(&mut self) -> &mut Self {
        self
    }
}
