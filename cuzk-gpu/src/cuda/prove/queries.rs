//! The sums over the witness: queries that are summed up together, call by call.

use std::ops::Range;

use cuzk_synth::{bitmap::Bitmap, witness::CompactWitness};

use super::{conveyor::Conveyor, placed::Placed};
use crate::cuda::{
    arena::Arena,
    error::CudaError,
    memory::{DeviceBuffer, DeviceSlice},
    msm::{DeviceCurve, Msm, Query, Unfolded, Witness},
    stream::Stream,
};

/// Queries of one group.
pub(super) struct Queries<C: DeviceCurve> {
    msm: Msm<C>,
    queries: Vec<Queried>,
    /// Auxiliary variables of a call.
    part: usize,
}

/// The points of a query, and the variables that they belong to.
pub(super) struct Queried {
    placed: Placed,
    inputs: DeviceBuffer<u32>,
    /// `None` where all occur.
    aux: Option<DeviceBuffer<u32>>,
}

/// A witness on the device, and how many of its values belong to the variables before each call.
pub(super) struct Split<'a> {
    pub ones: DeviceSlice<'a, u32>,
    pub full: DeviceSlice<'a, u32>,
    pub values: DeviceSlice<'a, u32>,
    pub inputs: usize,
    /// Values before each call, and all; the public inputs belong to the first.
    pub bounds: &'a [usize],
}

/// Words of 32 variables that a call takes: parts are whole words of 64.
fn words(part: usize, number: usize, all: usize) -> Range<usize> {
    let words = 2 * part.div_ceil(64);
    (number * words).min(all)..((number + 1) * words).min(all)
}

/// The bounds of a witness' values for calls of `part` auxiliary variables; see [`Split`].
pub(super) fn value_bounds(witness: &CompactWitness, part: usize) -> Vec<usize> {
    let counts = witness.full().words().chunks(part.div_ceil(64).max(1));
    let counts = counts.map(|words| words.iter().map(|word| word.count_ones() as usize).sum::<usize>());
    let ends = counts.scan(witness.inputs().len(), |end, count| {
        *end += count;
        Some(*end)
    });
    [0].into_iter().chain(ends).collect()
}

impl Queried {
    /// A query that has points for these public inputs and auxiliary variables (all without a bitmap).
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn new(
        stream: &Stream,
        placed: Placed,
        inputs: &[u32],
        aux: Option<&Bitmap>,
    ) -> Result<Self, CudaError> {
        let mask = aux.filter(|aux| aux.count_ones() < aux.len()).map(|aux| {
            let words: Vec<u32> = aux.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
            DeviceBuffer::from_host(stream, &words, "a query's variables")
        });
        let inputs = DeviceBuffer::from_host(stream, inputs, "a query's public inputs")?;
        Ok(Self { placed, inputs, aux: mask.transpose()? })
    }

    /// As a call takes it.
    fn query(&self, number: usize, part: usize) -> Result<Query<'_>, CudaError> {
        let points = self.placed.numbers(number);
        let inputs = if number == 0 { self.inputs.all() } else { self.inputs.all().range(..0)? };
        let mask = self.aux.as_ref().map(|aux| aux.all().range(words(part, number, aux.len())));
        Ok(Query { first: points.start, len: points.len(), inputs, mask: mask.transpose()? })
    }
}

impl<C: DeviceCurve> Queries<C> {
    /// In the order of the plan of `msm`, `part` auxiliary variables a call.
    pub(super) fn new(msm: Msm<C>, queries: Vec<Queried>, part: usize) -> Self {
        Self { msm, queries, part }
    }

    /// Queues all calls.
    ///
    /// # Errors
    /// More values than planned for, or what the driver reports.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        conveyor: &Conveyor,
        witness: &Split<'_>,
    ) -> Result<(), CudaError> {
        let Self { msm, queries, part } = self;
        let (queries, part) = (&queries[..], *part);
        let calls = queries.iter().map(|query| query.placed.parts()).max().unwrap_or(0);
        let is_brought = |call: usize| call < calls && queries.iter().any(|query| query.placed.is_brought(call));
        let bring = |call: usize| match is_brought(call) {
            true => conveyor.bring(call, |copies| {
                // SAFETY: the points live as long as the arena that they come to, and the conveyor waits for its copies
                // before either goes.
                queries.iter().try_for_each(|query| unsafe { query.placed.bring(call, copies, arena) })
            }),
            false => Ok(()),
        };
        conveyor.begin(stream)?;
        bring(0)?;
        bring(1)?;
        let of_call = |call: usize| {
            if is_brought(call) {
                conveyor.wait_for(stream, call)?;
            }
            let of_call = queries.iter().map(|query| query.query(call, part)).collect::<Result<_, CudaError>>()?;
            Ok((of_call, witness.of_call(call, part)?))
        };
        let used = |call: usize| {
            conveyor.used(stream, call)?;
            bring(call + 2)
        };
        msm.mixed_in_parts(stream, arena, arena.bytes(), calls, of_call, used)
    }

    /// What they left, once they are done: waits for that.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn unfolded(&mut self) -> Result<Unfolded<C>, CudaError> {
        self.msm.unfolded()
    }
}

impl<'a> Split<'a> {
    fn of_call(&self, call: usize, part: usize) -> Result<Witness<'a>, CudaError> {
        let words = words(part, call, self.ones.len());
        Ok(Witness {
            ones: self.ones.range(words.clone())?,
            full: self.full.range(words)?,
            values: self.values.range(8 * self.bounds[call]..8 * self.bounds[call + 1])?,
            first_value: if call == 0 { self.inputs } else { 0 },
            montgomery: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use blstrs::Scalar;

    use super::*;

    #[test]
    fn values_belong_to_the_call_of_their_variable() {
        let aux = (0..300u64).map(|i| Scalar::from(if i % 10 == 0 { 7 } else { i % 2 }));
        let witness = CompactWitness::from_plain(vec![Scalar::from(1), Scalar::from(5)], aux);
        assert_eq!(value_bounds(&witness, 300), [0, 32]);
        // Variables 0, 10, ... 120 are in the first call.
        assert_eq!(value_bounds(&witness, 128), [0, 15, 28, 32]);
        assert_eq!([0, 1, 2].map(|call| words(128, call, 10)), [0..4, 4..8, 8..10]);
    }
}
