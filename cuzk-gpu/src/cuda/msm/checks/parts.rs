//! Points in parts, some of them in host memory, summed up as the prover does it.

use std::ops::Range;

use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, DeviceSlice, PinnedBuffer, Stream,
        conveyor::Conveyor,
        msm::{Base, Msm, Scalars},
    },
};

/// Points, 96 bytes each, on the device and in host memory, and which part is taken from where.
pub(in crate::cuda::msm) struct Parts<'a> {
    /// Dropped first: it waits for copies.
    pub conveyor: Conveyor,
    pub resident: DeviceSlice<'a, u8>,
    pub pinned: &'a PinnedBuffer<u8>,
    /// What parts in host memory are copied to, in turns.
    pub buffers: [DeviceSlice<'a, u8>; 2],
    /// Numbers of the parts' points, and whether they are brought.
    pub parts: Vec<(Range<usize>, bool)>,
}

/// Parts of so many points, one after the other.
pub(in crate::cuda::msm) fn ranges(lens: &[usize]) -> Vec<Range<usize>> {
    lens.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len)..*end)).collect()
}

impl Parts<'_> {
    /// Queues the sum of scalars times points.
    ///
    /// # Errors
    /// As [`Msm::in_parts`].
    pub(in crate::cuda::msm) fn sum(
        &self,
        msm: &mut Msm<G1>,
        stream: &Stream,
        arena: &Arena,
        scalars: Scalars<'_>,
    ) -> Result<(), CudaError> {
        let bytes = |points: &Range<usize>| 96 * points.start..96 * points.end;
        let bring = |part: usize| match self.parts.get(part) {
            Some((points, true)) => self.conveyor.bring(part, |copies| {
                let buffer = self.buffers[part % 2].range(..96 * points.len())?;
                // SAFETY: the points outlive the conveyor, which waits for its copies before it goes.
                unsafe { buffer.upload_async(copies, &self.pinned[bytes(points)]) }
            }),
            _ => Ok(()),
        };
        self.conveyor.begin(stream)?;
        bring(0)?;
        bring(1)?;
        let base = |part: usize| {
            let (points, is_brought) = &self.parts[part];
            let len = points.len();
            if !is_brought {
                return Ok(Base { points: self.resident.range(bytes(points))?, first: 0, len });
            }
            self.conveyor.wait_for(stream, part)?;
            Ok(Base { points: self.buffers[part % 2], first: 0, len })
        };
        let used = |part: usize| {
            self.conveyor.used(stream, part)?;
            bring(part + 2)
        };
        msm.in_parts(stream, arena, scalars, self.parts.len(), base, used)
    }
}
