//! Where in a circuit a constraint comes from: found when it is needed, by synthesizing the blank circuit again, since
//! the names of 130 million constraints are not worth keeping.

use bellpepper_core::{Circuit, SynthesisError};
use blstrs::Scalar;

use crate::visit::{Lc, Visitor, visit};

/// The namespaces around constraint `index` of a circuit and its own name, joined by `/`. `None` if the circuit has
/// fewer constraints, as for those that are appended for the public inputs.
pub fn constraint_path<C: Circuit<Scalar>>(circuit: C, index: usize) -> Option<String> {
    // An error ends the circuit early; what was found before it is right all the same.
    let (finder, _) = visit(PathFinder { index, ..PathFinder::default() }, circuit);
    finder.found
}

#[derive(Default)]
struct PathFinder {
    index: usize,
    constraints: usize,
    inputs: usize,
    aux: usize,
    namespaces: Vec<String>,
    found: Option<String>,
}

impl Visitor for PathFinder {
    fn alloc(&mut self, _: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.aux += 1;
        Ok(self.aux - 1)
    }

    fn alloc_input(&mut self, _: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.inputs += 1;
        Ok(self.inputs - 1)
    }

    fn enforce(
        &mut self,
        name: impl FnOnce() -> String,
        _: impl FnOnce() -> Lc,
        _: impl FnOnce() -> Lc,
        _: impl FnOnce() -> Lc,
    ) {
        if self.constraints == self.index {
            let parts = self.namespaces.iter().cloned().chain([name()]);
            self.found = Some(parts.collect::<Vec<_>>().join("/"));
        }
        self.constraints += 1;
    }

    fn push_namespace(&mut self, name: impl FnOnce() -> String) {
        // Past the constraint that is sought, no name matters any more.
        self.namespaces.push(if self.found.is_none() { name() } else { String::new() });
    }

    fn pop_namespace(&mut self) {
        self.namespaces.pop();
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::ConstraintSystem;

    use super::*;

    struct Nested;

    impl Circuit<Scalar> for Nested {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let x = cs.alloc(|| "x", || Err(SynthesisError::AssignmentMissing))?;
            let mut outer = cs.namespace(|| "outer");
            for i in 0..3 {
                let mut inner = outer.namespace(|| format!("inner {i}"));
                inner.enforce(|| "c", |lc| lc + x, |lc| lc + x, |lc| lc + x);
            }
            outer.enforce(|| "last", |lc| lc + x, |lc| lc + x, |lc| lc + x);
            Ok(())
        }
    }

    #[test]
    fn constraints_are_found_by_their_namespaces() {
        assert_eq!(constraint_path(Nested, 1).as_deref(), Some("outer/inner 1/c"));
        assert_eq!(constraint_path(Nested, 3).as_deref(), Some("outer/last"));
        assert_eq!(constraint_path(Nested, 4), None);
    }
}
