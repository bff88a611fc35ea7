//! The kernel phase: from a witness in a worker's device memory to four sums, in the worker's stream.

use super::{
    key::Engine,
    slots::Slot,
    staging::{Counts, Staging},
};
use crate::{
    cuda::{
        error::CudaError,
        msm::{Scalars, Selected},
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
    pub(super) fn run(&mut self, slot: &mut Slot, staging: &Staging, counts: Counts) -> Result<KernelSums, CudaError> {
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

        let base = self.h.base();
        let scalars = Scalars { words: h.cast()?, len: base.len, montgomery: false };
        let h = self.msm_h.full(stream, &self.arena, base, scalars)?;
        marks.mark(stream, Some(Phase::MsmH))?;

        let values = own.slice(staging.witness.values())?;
        let inputs = staging.witness.num_inputs();
        let aux = values.range(inputs..inputs + counts.full[0])?;
        // The values of a query are its public inputs' and all others, one after the other.
        let of_b = self.arena.slice(self.b_values)?;
        let b_inputs = own.slice(staging.b_inputs)?;
        of_b.range(..b_inputs.len())?.copy_from(stream, b_inputs)?;
        of_b.range(b_inputs.len()..b_inputs.len() + aux.len())?.copy_from(stream, aux)?;

        let (ones, full) = (own.slice(staging.witness.ones())?, own.slice(staging.witness.full())?);
        let [in_a, in_b] = [0, 1].map(|i| self.masks[i].as_ref().map(|mask| mask.all()));
        let sums = [
            (Phase::MsmL, None, aux, 0),
            (Phase::MsmA, in_a, values, inputs),
            (Phase::MsmBG1, in_b, of_b, b_inputs.len()),
        ];
        let mut results = Vec::with_capacity(3);
        for ((points, full_values), (phase, mask, words, inputs)) in self.queries.iter().zip(counts.full).zip(sums) {
            let values = Scalars { words: words.cast()?, len: inputs + full_values, montgomery: true };
            let witness = Selected { mask, ones, full, values, inputs };
            results.push(self.msm_witness.selected(stream, &self.arena, points.base(), witness)?);
            marks.mark(stream, Some(phase))?;
        }
        self.vectors.check(stream, &self.arena)?;
        marks.mark(stream, Some(Phase::Download))?;
        stream.wait()?;
        let [l, a, b_g1] = results[..] else { unreachable!("three queries were summed up") };
        Ok(KernelSums { h, l, a, b_g1 })
    }
}
