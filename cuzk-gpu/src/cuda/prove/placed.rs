//! The points of a query where the plan puts them: in the arena, and in page-locked memory with two buffers in the arena.

use std::ops::Range;

use cuzk_synth::{bitmap::Bitmap, r1cs::R1cs};

use crate::{
    cuda::{
        arena::{Arena, Layout, Region},
        error::CudaError,
        gpu::Gpu,
        load::List,
        memory::PinnedBuffer,
        msm::Base,
        plan::{MemoryPlan, Parts, Vector},
        stream::Stream,
    },
    srs::{self, Section},
};

/// Points begin at multiples of it, so that they have numbers, counted from the beginning of the arena: the least common
/// multiple of both sizes of points and of the arena's alignment.
const MULTIPLE: usize = 768;

/// The points of a query.
#[derive(Debug)]
pub(super) struct Placed {
    parts: Parts,
    point_bytes: usize,
    /// All tables of the points that stay.
    resident: Region<u8>,
    /// The other points.
    pinned: Option<PinnedBuffer<u8>>,
    /// Where parts of these come to; empty if all points stay.
    buffers: [Region<u8>; 2],
}

/// The points of all queries that a device sums over.
#[derive(Debug)]
pub(super) struct Places {
    pub h: Placed,
    /// l, a and b_g1.
    pub witness: [Placed; 3],
    pub b_g2: Option<Placed>,
}

impl Places {
    /// Adds what is always there to a layout.
    pub(super) fn plan(plan: &MemoryPlan, r1cs: &R1cs, kept: &mut Layout) -> Self {
        let density = &r1cs.density;
        let (all, in_b) = (Bitmap::ones(r1cs.num_aux), density.b_inputs.count_ones());
        let h = Placed::plan(&plan.h, Parts::of_h(&plan.h), kept);
        let mut place = |vector: &Vector, inputs: usize, aux: &Bitmap| {
            Placed::plan(vector, Parts::of_query(vector, inputs, aux), kept)
        };
        Self {
            h,
            witness: [
                place(&plan.l, 0, &all),
                place(&plan.a, r1cs.num_inputs, &density.a_aux),
                place(&plan.b_g1, in_b, &density.b_aux),
            ],
            b_g2: plan.b_g2.as_ref().map(|vector| place(vector, in_b, &density.b_aux)),
        }
    }

    /// Adds buffers to the layouts of the stages.
    pub(super) fn plan_buffers(&mut self, sum_h: &mut Layout, sum_witness: &mut Layout, sum_g2: &mut Layout) {
        self.h.plan_buffers(sum_h);
        self.witness.iter_mut().for_each(|placed| placed.plan_buffers(sum_witness));
        if let Some(placed) = &mut self.b_g2 {
            placed.plan_buffers(sum_g2);
        }
    }

    /// Allocates page-locked memory for what does not stay, and tells where the lists of a parameter file go.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub(super) fn lists<'a>(
        &'a mut self,
        gpu: &Gpu,
        layout: &srs::Layout,
        arena: &'a Arena,
    ) -> Result<Vec<List<'a>>, CudaError> {
        let all = [&mut self.h].into_iter().chain(&mut self.witness).chain(&mut self.b_g2);
        // The verifying key's list stays with the host.
        let list = |(placed, section): (&'a mut Placed, &Section)| {
            placed.allocate(gpu)?;
            placed.list(*section, arena)
        };
        all.zip(&layout.sections[1..]).map(list).collect()
    }
}

impl Placed {
    /// Adds what is always there to a layout.
    fn plan(vector: &Vector, parts: Parts, kept: &mut Layout) -> Self {
        let resident = parts.resident_points() * vector.tables * vector.point_bytes;
        let resident = kept.add_at(resident, MULTIPLE);
        let nothing = Layout::new().add(0);
        Self { parts, point_bytes: vector.point_bytes, resident, pinned: None, buffers: [nothing; 2] }
    }

    /// Adds the buffers to the layout of the stage that sums up these points.
    fn plan_buffers(&mut self, scratch: &mut Layout) {
        let streamed = self.parts.bounds.windows(2).skip(self.parts.resident);
        if let Some(most) = streamed.map(|bounds| bounds[1] - bounds[0]).max() {
            self.buffers = [(); 2].map(|()| scratch.add_at(most * self.point_bytes, MULTIPLE));
        }
    }

    /// Allocates page-locked memory for the points that do not stay.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    fn allocate(&mut self, gpu: &Gpu) -> Result<(), CudaError> {
        let points = self.points() - self.parts.resident_points();
        if points > 0 {
            self.pinned = Some(PinnedBuffer::new(gpu, points * self.point_bytes, "points that are streamed")?);
        }
        Ok(())
    }

    /// Where they are to be loaded to.
    ///
    /// # Errors
    /// The arena is not of the layout.
    fn list<'a>(&'a mut self, section: Section, arena: &'a Arena) -> Result<List<'a>, CudaError> {
        let bytes = self.parts.resident_points() * self.point_bytes;
        let resident = arena.slice(self.resident)?.range(..bytes)?;
        Ok(List { section, resident, pinned: self.pinned.as_mut() })
    }

    /// The points of a call, as those of h are taken.
    pub(super) fn base<'a>(&self, call: usize, arena: &'a Arena) -> Base<'a> {
        let numbers = self.numbers(call);
        Base { points: arena.bytes(), first: numbers.start, len: numbers.len() }
    }

    /// How many there are.
    pub(super) fn points(&self) -> usize {
        self.parts.bounds[self.parts.len()]
    }

    /// Number of calls.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether the points of a call have to be brought.
    pub(super) fn is_brought(&self, part: usize) -> bool {
        part >= self.parts.resident && !self.range(part).is_empty()
    }

    /// The numbers, in the arena, of the points of a call. Those that are brought are in the buffer of the part's number.
    pub(super) fn numbers(&self, part: usize) -> Range<usize> {
        let range = self.range(part);
        let first = match self.is_brought(part) {
            true => self.buffers[part % 2].bytes().start / self.point_bytes,
            false => self.resident.bytes().start / self.point_bytes + range.start,
        };
        first..first + range.len()
    }

    /// Queues the copy of the points of a call that are not there.
    ///
    /// # Safety
    /// This must live until the stream has done the copy.
    ///
    /// # Errors
    /// The arena is not of the layout, or what the driver reports.
    pub(super) unsafe fn bring(&self, part: usize, copies: &Stream, arena: &Arena) -> Result<(), CudaError> {
        let (true, Some(pinned)) = (self.is_brought(part), &self.pinned) else { return Ok(()) };
        let before = self.parts.resident_points();
        let range = self.range(part);
        let bytes = (range.start - before) * self.point_bytes..(range.end - before) * self.point_bytes;
        let buffer = arena.slice(self.buffers[part % 2])?.range(..bytes.len())?;
        // SAFETY: the caller's promise; nobody writes to the points once they are loaded.
        unsafe { buffer.upload_async(copies, &pinned[bytes]) }
    }

    fn range(&self, part: usize) -> Range<usize> {
        self.parts.bounds[part]..self.parts.bounds[part + 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_points_from_the_beginning_of_the_arena() {
        let vector = Vector { name: "h", points: 10, point_bytes: 96, tables: 1, part: 4, resident: 4, most: 4 };
        let mut kept = Layout::new();
        kept.add::<u8>(1000);
        let mut placed = Placed::plan(&vector, Parts::of_h(&vector), &mut kept);
        let mut scratch = kept.clone();
        scratch.add::<u8>(10);
        placed.plan_buffers(&mut scratch);
        // 1536 = 2 * 768 is the first multiple behind 1000 bytes; then 2304 and 3072, of 384 bytes each.
        assert_eq!([0, 1, 2].map(|part| placed.numbers(part)), [16..20, 32..36, 24..26]);
        assert_eq!([0, 1, 2].map(|part| placed.is_brought(part)), [false, true, true]);
        assert_eq!((placed.points(), placed.parts()), (10, 3));
    }
}
