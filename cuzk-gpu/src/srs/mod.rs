//! Proving parameters (the structured reference string, SRS) of one circuit.

mod layout;
mod read;
mod rows;
mod watch;
mod write;

use bellperson::groth16::{PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use blstrs::Bls12;
use cuzk_synth::r1cs::R1cs;

use crate::{
    arith::{Backend, G1, G2, Table},
    prover::ProvingKey,
};

pub use layout::{G1_BYTES, G2_BYTES, Layout, Section};
pub use read::{SrsError, SrsFault, check_layout, open_or_convert, read, read_verifying_key, read_watched};
pub(crate) use read::{bad_point, in_file, same_version};
pub use watch::{Report, Watch};
pub use write::Writer;

/// The parameters, in memory or in a mapped file of ours. Points are in the order of the variables they belong to, public inputs first;
/// `a`, `b_g1` and `b_g2` leave out the variables that do not occur (their point would be the identity).
pub struct Srs {
    /// The verifying key, for the epilogue.
    pub vk: VerifyingKey<Bls12>,
    /// The same, prepared for verification.
    pub prepared: PreparedVerifyingKey<Bls12>,
    /// [τ^i t(τ) / δ], one a coefficient of H: the domain size less one.
    pub h: Table<G1>,
    /// [(β A_i(τ) + α B_i(τ) + C_i(τ)) / δ], one an auxiliary variable.
    pub l: Table<G1>,
    /// [A_i(τ)].
    pub a: Table<G1>,
    /// [B_i(τ)] in G1.
    pub b_g1: Table<G1>,
    /// [B_i(τ)] in G2.
    pub b_g2: Table<G2>,
}

impl Srs {
    /// Puts the parts together.
    pub(crate) fn new(vk: VerifyingKey<Bls12>, [h, l, a, b_g1]: [Table<G1>; 4], b_g2: Table<G2>) -> Self {
        Self { prepared: prepare_verifying_key(&vk), vk, h, l, a, b_g1, b_g2 }
    }

    /// Bytes of the points in the form of an arithmetic, wherever they are.
    pub fn bytes(&self, arithmetic: Backend) -> u64 {
        let g1 = self.h.len() + self.l.len() + self.a.len() + self.b_g1.len();
        let (g1_bytes, g2_bytes) = (Table::<G1>::point_bytes(arithmetic), Table::<G2>::point_bytes(arithmetic));
        (g1 * g1_bytes + self.b_g2.len() * g2_bytes) as u64
    }
}

impl ProvingKey for Srs {
    fn vk(&self) -> &VerifyingKey<Bls12> {
        &self.vk
    }

    fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        let lengths = [self.vk.ic.len(), self.h.len(), self.l.len(), self.a.len(), self.b_g1.len(), self.b_g2.len()];
        lengths_fit(lengths, r1cs)
    }
}

impl Layout {
    /// Whether a file of this layout has the parameters of a constraint system, as far as lengths tell. Anything else
    /// would be found out only by the proof that does not verify.
    ///
    /// # Errors
    /// What does not fit, with both numbers.
    pub fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        lengths_fit(self.sections.map(|section| section.points as usize), r1cs)
    }
}

fn lengths_fit(lengths: [usize; 6], r1cs: &R1cs) -> Result<(), String> {
    let density = &r1cs.density;
    let b = density.b_inputs.count_ones() + density.b_aux.count_ones();
    let expected = [
        ("ic", r1cs.num_inputs),
        ("h", (1 << r1cs.log_domain()) - 1),
        ("l", r1cs.num_aux),
        ("a", r1cs.num_inputs + density.a_aux.count_ones()),
        ("b_g1", b),
        ("b_g2", b),
    ];
    match expected.iter().zip(lengths).find(|((_, wanted), found)| wanted != found) {
        None => Ok(()),
        Some(((name, wanted), found)) => {
            Err(format!("the parameters are of another circuit: {found} points in {name}, the circuit needs {wanted}"))
        }
    }
}
