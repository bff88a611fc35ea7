//! The kernel phase: from a witness in a worker's device memory to four sums, in the worker's stream.

use super::{
    key::{Engine, Variables},
    slots::Slot,
    staging::Staging,
};
use crate::{
    cuda::{
        error::CudaError,
        msm::{Base, Scalars, Witness},
    },
    prover::KernelSums,
    timing::Phase,
};

impl Engine {
    /// Runs it and waits for its end.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if more rows have values other than 0, 1, 2 and -1 than there is room for, or what the driver
    /// reports.
    pub(super) fn run(&mut self, slot: &mut Slot, staging: &Staging) -> Result<(), CudaError> {
        let Slot { stream, arena: own, marks, .. } = slot;
        let (stream, own) = (&*stream, &*own);
        marks.mark(stream, None)?;
        self.spmv.expand.run(stream, own, &staging.witness)?;
        marks.mark(stream, Some(Phase::Expand))?;

        let log_n = self.quotient.log_n();
        for (matrix, rows) in self.matrices.iter().zip([self.vectors.a, self.vectors.b]) {
            let witness = (own, &staging.witness);
            let out = (&self.arena, &rows, log_n);
            self.spmv.multiply(stream, (matrix, &self.coefficients), witness, out)?;
        }
        marks.mark(stream, Some(Phase::Rows))?;
        let h = self.quotient.from_planes(stream, &self.ntt, &self.arena, &self.vectors)?;
        marks.mark(stream, Some(Phase::Quotient))?;

        let len = (1 << log_n) - 1;
        let base = Base { points: self.points.h.all(), first: 0, len };
        self.msm_h.full(stream, &self.arena, base, Scalars { words: h.cast()?, len, montgomery: false })?;
        marks.mark(stream, Some(Phase::MsmH))?;

        let witness = Witness {
            ones: own.slice(staging.witness.ones())?,
            full: own.slice(staging.witness.full())?,
            values: own.slice(staging.witness.values())?.cast()?,
            first_value: staging.witness.num_inputs(),
            montgomery: true,
        };
        let queries = self.variables.each_ref().map(Variables::query);
        self.msm_witness.mixed(stream, &self.arena, self.points.witness.all(), &queries, witness)?;
        marks.mark(stream, Some(Phase::MsmWitness))?;
        self.vectors.check(stream, &self.arena)?;
        marks.mark(stream, Some(Phase::Download))?;
        stream.wait()
    }

    /// The sums, once it has run: h, then l, a, b_g1.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn sums(&mut self) -> Result<KernelSums, CudaError> {
        let (h, witness) = (self.msm_h.sums()?, self.msm_witness.sums()?);
        let ([h], [l, a, b_g1]) = (&h[..], &witness[..]) else { unreachable!("one query and three were summed up") };
        Ok(KernelSums { h: *h, l: *l, a: *a, b_g1: *b_g1 })
    }
}
