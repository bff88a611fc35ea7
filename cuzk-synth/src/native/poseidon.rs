//! Poseidon as the circuit has it: its variables, and the factors of their constraints.

use blstrs::Scalar;

use super::writer::Writer;
use crate::poseidon::Poseidon;

impl<const W: usize> Poseidon<W> {
    /// Writes a hash of `inputs`, whose variables were computed: they are the first of `computed`, which are taken off.
    pub(super) fn write(&self, out: &mut Writer, inputs: &[Scalar], computed: &mut &[Scalar]) -> Scalar {
        let trace = computed.split_off(..self.num_aux()).expect("a hash was computed");
        out.nums(trace);
        let (first, rest) = trace.split_at(3 * (W - 1));
        for ((input, key), &[x2, x4, _]) in inputs.iter().zip(&self.first_keys[1..]).zip(first.as_chunks().0) {
            let x = input + key;
            out.products([x, x2, x], [x, x2, x4]);
        }
        let (s_boxes, rest) = rest.as_chunks();
        for &[x, x2, x4, _] in s_boxes {
            out.equal(&x);
            out.products([x, x2, x], [x, x2, x4]);
        }
        let hash = rest[0];
        out.equal(&hash);
        hash
    }
}

#[cfg(test)]
mod tests {
    use ff::Field;

    use super::*;
    use crate::poseidon::POSEIDON_2;

    #[test]
    fn a_hash_has_as_many_constraints_as_variables() {
        let inputs = [Scalar::ONE, Scalar::from(7)];
        let mut trace = Vec::new();
        let hash = POSEIDON_2.hash(&inputs, |variable| trace.push(variable));
        let (mut out, mut rest) = (Writer::default(), &trace[..]);
        assert_eq!(POSEIDON_2.write(&mut out, &inputs, &mut rest), hash);
        assert!(rest.is_empty());
        let written = out.finish();
        assert_eq!(written.witness.to_plain(), trace);
        assert_eq!(written.rows.map(|rows| (rows.a.len(), rows.b.len())), Some((311, 311)));
    }
}
