//! The kernel phase: from a witness in a worker's device memory to its sums, in the worker's stream.

use blstrs::G2Projective;

use super::{
    conveyor::Conveyor,
    engine::Engine,
    placed::Placed,
    queries::{Queries, Split},
    slots::Slot,
    tail::Place,
};
use crate::{
    arith::{G1, G2},
    cuda::{
        arena::Arena,
        error::CudaError,
        memory::DeviceSlice,
        msm::{Msm, Scalars, Unfolded},
        plan::Staging,
        stream::Stream,
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
        let Slot { stream, arena: own, marks, bounds, b_g2, .. } = slot;
        let (stream, own) = (&*stream, &*own);
        let Self { conveyor, arena, rows, ntt, quotient, vectors, counts, h, msm_h, witness, g2 } = self;
        let (conveyor, arena) = (&*conveyor, &*arena);
        marks.mark(stream, None)?;
        let planes = [vectors.a, vectors.b];
        let with_planes = match rows {
            Some(rows) => {
                rows.spmv.expand.run(stream, own, &staging.witness)?;
                marks.mark(stream, Some(Phase::Expand))?;
                rows.run(stream, conveyor, (own, &staging.witness), (arena, planes, quotient.log_n()))?;
                marks.mark(stream, Some(Phase::Rows))?;
                arena
            }
            None => own,
        };
        let raw = [planes[0].raw(with_planes)?, planes[1].raw(with_planes)?];
        let values = quotient.from_rows(stream, ntt, arena, vectors, raw)?;
        // They are where the sums' workspaces will be.
        let counts = arena.slice(*counts)?;
        for (i, (planes, place)) in vectors.planes().iter().zip([with_planes, with_planes, arena]).enumerate() {
            counts.range(i..=i)?.copy_from(stream, planes.count(place)?)?;
        }
        marks.mark(stream, Some(Phase::Quotient))?;

        sum_h(stream, arena, conveyor, (h, msm_h), values.cast()?)?;
        marks.mark(stream, Some(Phase::MsmH))?;

        let split = |bounds| {
            Ok::<_, CudaError>(Split {
                ones: own.slice(staging.witness.ones())?,
                full: own.slice(staging.witness.full())?,
                values: own.slice(staging.witness.values())?.cast()?,
                inputs: staging.witness.num_inputs(),
                bounds,
            })
        };
        witness.run(stream, arena, conveyor, &split(&bounds[0])?)?;
        marks.mark(stream, Some(Phase::MsmWitness))?;
        if let (Some(g2), Place::Device) = (g2, *b_g2) {
            g2.run(stream, arena, conveyor, &split(&bounds[1])?)?;
            marks.mark(stream, Some(Phase::MsmBG2))?;
        }
        let mut found = [0; 3];
        counts.download(stream, &mut found)?;
        marks.mark(stream, Some(Phase::Download))?;
        stream.wait()?;
        vectors.had_room(stream.gpu(), found)
    }

    /// What it has left, once it has run.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn left(&mut self, b_g2: Place) -> Result<Left, CudaError> {
        let g2 = self.g2.as_mut().filter(|_| b_g2 == Place::Device).map(Queries::unfolded).transpose()?;
        Ok(Left { h: self.msm_h.unfolded()?, witness: self.witness.unfolded()?, g2 })
    }
}

/// What a kernel phase leaves: points that the CPU folds to sums.
pub(super) struct Left {
    h: Unfolded<G1>,
    witness: Unfolded<G1>,
    g2: Option<Unfolded<G2>>,
}

impl Left {
    /// The sums, with that over b_g2 if it was the device's.
    pub(super) fn fold(&self) -> (KernelSums, Option<G2Projective>) {
        let (h, witness) = (self.h.fold(), self.witness.fold());
        let ([h], [l, a, b_g1]) = (&h[..], &witness[..]) else { unreachable!("one query and three were summed up") };
        (KernelSums { h: *h, l: *l, a: *a, b_g1: *b_g1 }, self.g2.as_ref().map(|g2| g2.fold()[0]))
    }
}

/// Queues Σ h_i H_i, call by call.
fn sum_h(
    stream: &Stream,
    arena: &Arena,
    conveyor: &Conveyor,
    (points, msm): (&Placed, &mut Msm<G1>),
    words: DeviceSlice<'_, u32>,
) -> Result<(), CudaError> {
    let calls = points.parts();
    let bring = |call: usize| match call < calls && points.is_brought(call) {
        // SAFETY: the points live as long as the arena that they come to, and the conveyor waits for its copies before
        // either goes.
        true => conveyor.bring(call, |copies| unsafe { points.bring(call, copies, arena) }),
        false => Ok(()),
    };
    conveyor.begin(stream)?;
    bring(0)?;
    bring(1)?;
    let of_call = |call: usize| {
        if points.is_brought(call) {
            conveyor.wait_for(stream, call)?;
        }
        Ok(points.base(call, arena))
    };
    let used = |call: usize| {
        conveyor.used(stream, call)?;
        bring(call + 2)
    };
    let scalars = Scalars { words, len: points.points(), montgomery: false };
    msm.in_parts(stream, arena, scalars, calls, of_call, used)
}
