//! Proving parameters (the structured reference string, SRS) of one circuit.

mod layout;
mod read;
mod write;

use bellperson::groth16::{PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use blstrs::{Bls12, G1Affine, G2Affine};
use cuzk_synth::assignment::Assignment;

use crate::arith::{
    backend::Backend,
    table::{G1Table, G2Table},
};

pub use layout::{G1_BYTES, G2_BYTES, Layout, Section};
pub use read::{SrsError, SrsFault, check_layout, read, read_verifying_key};
pub use write::Writer;

/// The parameters in host memory. Points are in the order of the variables they belong to, public inputs first;
/// `a`, `b_g1` and `b_g2` leave out the variables that do not occur (their point would be the identity).
pub struct Srs {
    /// The verifying key, for the epilogue.
    pub vk: VerifyingKey<Bls12>,
    /// The same, prepared for verification.
    pub prepared: PreparedVerifyingKey<Bls12>,
    /// [τ^i t(τ) / δ], one a coefficient of H: the domain size less one.
    pub h: G1Table,
    /// [(β A_i(τ) + α B_i(τ) + C_i(τ)) / δ], one an auxiliary variable.
    pub l: G1Table,
    /// [A_i(τ)].
    pub a: G1Table,
    /// [B_i(τ)] in G1.
    pub b_g1: G1Table,
    /// [B_i(τ)] in G2.
    pub b_g2: G2Table,
}

impl Srs {
    /// Puts the parts together, in the form that `arithmetic` works on.
    pub fn new(
        arithmetic: Backend,
        vk: VerifyingKey<Bls12>,
        [h, l, a, b_g1]: [Vec<G1Affine>; 4],
        b_g2: Vec<G2Affine>,
    ) -> Self {
        // Each list is dropped once its table is there.
        let table = |points: Vec<G1Affine>| G1Table::with_backend(arithmetic, &points);
        Self {
            prepared: prepare_verifying_key(&vk),
            vk,
            h: table(h),
            l: table(l),
            a: table(a),
            b_g1: table(b_g1),
            b_g2: G2Table::with_backend(arithmetic, &b_g2),
        }
    }

    /// Bytes of host memory that the points take.
    pub fn bytes(&self) -> u64 {
        let g1 = [&self.h, &self.l, &self.a, &self.b_g1];
        g1.iter().map(|table| table.bytes()).sum::<u64>() + self.b_g2.bytes()
    }

    /// Whether the parameters are those of the circuit that this assignment is of, as far as their lengths tell.
    /// Anything else would be found out only by the proof that does not verify.
    ///
    /// # Errors
    /// What does not fit, with both numbers.
    pub fn fits(&self, assignment: &Assignment) -> Result<(), String> {
        let density = &assignment.density;
        let domain = assignment.num_constraints().next_power_of_two();
        let b = density.b_inputs.count_ones() + density.b_aux.count_ones();
        let expected = [
            ("ic", self.vk.ic.len(), assignment.inputs.len()),
            ("h", self.h.len(), domain - 1),
            ("l", self.l.len(), assignment.aux.len()),
            ("a", self.a.len(), assignment.inputs.len() + density.a_aux.count_ones()),
            ("b_g1", self.b_g1.len(), b),
            ("b_g2", self.b_g2.len(), b),
        ];
        match expected.iter().find(|(_, found, wanted)| found != wanted) {
            None => Ok(()),
            Some((name, found, wanted)) => Err(format!(
                "the parameters are of another circuit: {found} points in {name}, the circuit needs {wanted}"
            )),
        }
    }
}
