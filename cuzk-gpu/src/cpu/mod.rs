//! The backend that needs no device: all phases on the host's cores.

mod selection;

use blstrs::{G1Projective, G2Projective};
use cuzk_synth::r1cs::Matrix;

use crate::{
    arith::{
        backend::Backend as Arithmetic,
        curve::G1,
        fr_vec::{FrVec, quotient_h},
        table::Table,
    },
    prover::{Backend, KernelSums, Partition, ProveError},
    srs::{Query, Srs},
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

    fn stage(&self, _: &Srs, Partition { r1cs, witness }: Partition) -> Result<Staged, ProveError> {
        let log_n = r1cs.log_domain();
        let rows = |matrix: &Matrix| {
            FrVec::from_fn(self.arithmetic, log_n, |first, values| r1cs.fill(matrix, &witness, first, values))
        };
        let density = &r1cs.density;
        let b_inputs: Vec<_> = density.b_inputs.iter_ones().map(|i| witness.inputs()[i]).collect();
        Ok(Staged {
            a_rows: rows(&r1cs.a),
            b_rows: rows(&r1cs.b),
            l: Selection::new(&[], &witness, None),
            // All inputs occur in A.
            a: Selection::new(witness.inputs(), &witness, Some(&density.a_aux)),
            b: Selection::new(&b_inputs, &witness, Some(&density.b_aux)),
        })
    }

    fn kernels(&self, srs: &Srs, staged: Staged, timings: &mut Timings) -> Result<(KernelSums, Selection), ProveError> {
        // C is not needed: on the domain it is the product of A and B, or the proof does not verify.
        let h = timings.measure(Phase::Quotient, || quotient_h(staged.a_rows, staged.b_rows, None));
        let mut scratch = Table::empty(self.arithmetic);
        let mut sum = |query: &Query<G1>, phase, f: &dyn Fn(&Table<G1>) -> G1Projective| {
            let table = timings.measure(Phase::Points, || query.table(&mut scratch)).map_err(|e| self.failed(&e))?;
            Ok::<_, ProveError>(timings.measure(phase, || f(table)))
        };
        let sums = KernelSums {
            h: sum(&srs.h, Phase::MsmH, &|table| table.msm(&h))?,
            l: sum(&srs.l, Phase::MsmL, &|table| staged.l.sum(table))?,
            a: sum(&srs.a, Phase::MsmA, &|table| staged.a.sum(table))?,
            b_g1: sum(&srs.b_g1, Phase::MsmBG1, &|table| staged.b.sum(table))?,
        };
        Ok((sums, staged.b))
    }

    fn b_g2(&self, srs: &Srs, b: Selection) -> Result<G2Projective, ProveError> {
        let mut scratch = Table::empty(self.arithmetic);
        let table = srs.b_g2.table(&mut scratch).map_err(|e| self.failed(&e))?;
        Ok(b.sum(table))
    }
}

impl Cpu {
    fn failed(&self, error: &std::io::Error) -> ProveError {
        let what = format!("the proving parameters cannot be read: {error}");
        ProveError::Device { device: self.name().to_owned(), what }
    }
}
