//! The backend that needs no device: all phases on the host's cores.

mod selection;

use blstrs::G2Projective;
use cuzk_synth::assignment::Assignment;

use crate::{
    arith::{
        backend::Backend as Arithmetic,
        fr_vec::{FrVec, quotient_h},
    },
    prover::{Backend, KernelSums, ProveError},
    srs::Srs,
    timing::{Phase, Timings},
};
use selection::Selection;

/// The host as a device.
#[derive(Debug)]
pub struct Cpu {
    arithmetic: Arithmetic,
}

/// A partition in the form that the kernels take: A·w and B·w as vectors of the domain, the witness by query.
pub struct Staged {
    a_rows: FrVec,
    b_rows: FrVec,
    l: Selection,
    a: Selection,
    b: Selection,
}

impl Cpu {
    /// The host with the arithmetic of this process. It must be the one that the parameters were loaded for.
    pub fn new(arithmetic: Arithmetic) -> Self {
        Self { arithmetic }
    }
}

impl Backend for Cpu {
    type Staged = Staged;
    type Rest = Selection;

    fn name(&self) -> &str {
        "cpu"
    }

    fn stage(&self, _: &Srs, assignment: Assignment) -> Result<Staged, ProveError> {
        let Assignment { inputs, aux, a, b, density, .. } = assignment;
        let log_n = a.len().next_power_of_two().trailing_zeros();
        let b_inputs = density.b_inputs.iter_ones().map(|i| &inputs[i]);
        let b_aux = density.b_aux.iter_ones().map(|i| &aux[i]);
        // All inputs occur in A.
        let a_aux = density.a_aux.iter_ones().map(|i| &aux[i]);
        Ok(Staged {
            l: Selection::of(aux.iter()),
            a: Selection::of(inputs.iter().chain(a_aux)),
            b: Selection::of(b_inputs.chain(b_aux)),
            a_rows: FrVec::with_backend(self.arithmetic, &a, log_n),
            b_rows: FrVec::with_backend(self.arithmetic, &b, log_n),
        })
    }

    fn kernels(&self, srs: &Srs, staged: Staged, timings: &mut Timings) -> Result<(KernelSums, Selection), ProveError> {
        // C is not needed: on the domain it is the product of A and B, or the proof does not verify.
        let h = timings.measure(Phase::Quotient, || quotient_h(staged.a_rows, staged.b_rows, None));
        let sums = KernelSums {
            h: timings.measure(Phase::MsmH, || srs.h.msm(&h)),
            l: timings.measure(Phase::MsmL, || staged.l.sum(&srs.l)),
            a: timings.measure(Phase::MsmA, || staged.a.sum(&srs.a)),
            b_g1: timings.measure(Phase::MsmBG1, || staged.b.sum(&srs.b_g1)),
        };
        Ok((sums, staged.b))
    }

    fn b_g2(&self, srs: &Srs, b: Selection) -> Result<G2Projective, ProveError> {
        Ok(b.sum(&srs.b_g2))
    }
}
