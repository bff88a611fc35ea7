//! A plan's work on a device: the calls, and what follows when all buckets have their sums.

mod buckets;
mod selection;

use std::{marker::PhantomData, time::Duration};

use group::Group as _;

use super::{
    fold::DeviceCurve,
    kernels::{Accumulation, Kernels},
    plan::{self, Plan, Word, Workspace},
    reduction::RADIX,
};
use crate::cuda::{Arena, Args, CudaError, DeviceBuffer, DeviceSlice, Event, Gpu, Grid, Layout, PinnedBuffer, Stream};

/// A multi-scalar multiplication that is ready to run: kernels loaded, constants on the device, a place in an arena.
#[derive(Debug)]
pub struct Msm<C> {
    plan: Plan,
    workspace: Workspace,
    kernels: Kernels,
    /// `msm_job`s of all steps, then one for segments that begin at consecutive points.
    jobs: DeviceBuffer<u32>,
    /// For each step, how many of its segments are longer than each length; then the same for all buckets and length 2.
    lengths: DeviceBuffer<u32>,
    groups: DeviceBuffer<u32>,
    /// Longest bucket and segments of all.
    found: PinnedBuffer<u32>,
    sums: PinnedBuffer<u8>,
    marks: Option<Marks>,
    curve: PhantomData<C>,
}

/// Points in time between the stages of a call.
type Marks = Vec<(&'static str, Event)>;

/// Points on the device: all tables of a base, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The tables.
    pub points: DeviceSlice<'a, u8>,
    /// Points of each.
    pub len: usize,
}

/// Full scalars on the device.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a> {
    /// Eight words each.
    pub words: DeviceSlice<'a, u32>,
    /// How many count: the first ones.
    pub len: usize,
    /// Whether they are in Montgomery form, R = 2^256, as blst keeps them; else they are plain numbers below r.
    pub montgomery: bool,
}

/// A compact witness on the device, as a query sees it. Bitmaps are in words of 32 variables; bits past the last variable
/// are zero in all but `mask`.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The variables that the query has points for; all of them without a mask.
    pub mask: Option<DeviceSlice<'a, u32>>,
    /// Variables that are 1.
    pub ones: DeviceSlice<'a, u32>,
    /// Variables that are neither 0 nor 1.
    pub full: DeviceSlice<'a, u32>,
    /// Values of the query's public inputs, then of the variables in `full`, all of them, in order. `len` is how many of
    /// them the query has: its inputs, and the variables in both `full` and `mask`.
    pub values: Scalars<'a>,
    /// The query's public inputs: its first points and values.
    pub inputs: usize,
}

/// One call: where it runs and on what.
struct Call<'a> {
    stream: &'a Stream,
    arena: &'a Arena,
}

impl<C: DeviceCurve> Msm<C> {
    /// Loads kernels and constants, and adds the workspace to the layout of an arena, which every call is then given.
    /// Workspaces of several may overlay each other if their calls follow each other in one stream.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(stream: &Stream, plan: Plan, layout: &mut Layout) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        assert_eq!(plan.request.point_bytes, C::POINT_BYTES, "the plan is for points of this group");
        let workspace = plan.workspace(layout);
        let steps = &plan.reduction.steps;
        let mut jobs = Vec::new();
        let mut lengths = Vec::new();
        for step in steps {
            for job in &step.jobs {
                jobs.extend([job.first_segment, job.source, job.segment_stride, u32::from(job.spread)]);
            }
            lengths.extend(equal_lengths(step.segments, RADIX));
        }
        jobs.extend([0, 0, 1, 0]);
        lengths.extend(equal_lengths(plan.windows.buckets() as u32, 2));
        let groups: Vec<u32> = plan.reduction.groups.iter().flat_map(|g| [g.source, g.first, g.end, g.bit]).collect();
        let sum_bytes = plan.reduction.groups.len() * 2 * C::POINT_BYTES;
        Ok(Self {
            workspace,
            kernels: Kernels::load::<C>(gpu)?,
            jobs: DeviceBuffer::from_host(stream, &jobs, "jobs of a multi-scalar multiplication")?,
            lengths: DeviceBuffer::from_host(stream, &lengths, "lengths of a multi-scalar multiplication")?,
            groups: DeviceBuffer::from_host(stream, &groups, "groups of a multi-scalar multiplication")?,
            found: PinnedBuffer::new(gpu, 2, "lengths found")?,
            sums: PinnedBuffer::new(gpu, sum_bytes, "sums of groups")?,
            plan,
            marks: None,
            curve: PhantomData,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Marks the stages of the next call, whose times [`Self::stages`] then tells.
    pub fn trace(&mut self) {
        self.marks = Some(Vec::new());
    }

    /// Times of the stages of the call since [`Self::trace`], in order.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn stages(&mut self) -> Result<Vec<(&'static str, Duration)>, CudaError> {
        let marks = self.marks.take().unwrap_or_default();
        marks.windows(2).map(|pair| Ok((pair[1].0, pair[1].1.since(&pair[0].1)?))).collect()
    }

    fn mark(&mut self, call: &Call<'_>, stage: &'static str) -> Result<(), CudaError> {
        if let Some(marks) = &mut self.marks {
            let event = Event::new(call.stream.gpu())?;
            event.record(call.stream)?;
            marks.push((stage, event));
        }
        Ok(())
    }

    /// Fills the tables after the first, which holds the points themselves. Takes seconds at 2^27.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn fill_tables(&self, stream: &Stream, base: Base<'_>) -> Result<(), CudaError> {
        self.fits(stream.gpu(), base)?;
        for table in 1..self.plan.windows.tables() {
            let args = Args::new().slice(base.points).value(((table - 1) * base.len) as u32);
            let args =
                args.value((table * base.len) as u32).value(base.len as u32).value(self.plan.windows.table_bits());
            // SAFETY: the tables are inside of `points`, as was checked.
            unsafe { self.kernels.double.launch(stream, Grid::cover(base.len, 128), &args)? };
        }
        Ok(())
    }

    /// Sum of scalars times points.
    ///
    /// # Errors
    /// More scalars or points than planned for, or what the driver reports.
    pub fn full(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        base: Base<'_>,
        scalars: Scalars<'_>,
    ) -> Result<C::Projective, CudaError> {
        self.fits(stream.gpu(), base)?;
        let call = Call { stream, arena };
        self.mark(&call, "begin")?;
        self.bucket_sums(&call, base, scalars, None, 0)?;
        self.no_dealt(&call)?;
        self.finish(&call)
    }

    /// The same for points in host memory, in parts as long as the plan allows (the last one may be shorter). A part is
    /// copied into one of `buffers` by the second stream while the other one is worked on.
    ///
    /// # Errors
    /// As [`Self::full`].
    pub fn streamed(
        &mut self,
        [stream, copies]: [&Stream; 2],
        arena: &Arena,
        buffers: [DeviceSlice<'_, u8>; 2],
        points: &PinnedBuffer<u8>,
        scalars: Scalars<'_>,
    ) -> Result<C::Projective, CudaError> {
        let call = Call { stream, arena };
        self.mark(&call, "begin")?;
        let gpu = stream.gpu();
        let part = self.plan.request.points.min(self.plan.request.scalars);
        let parts = scalars.len.div_ceil(part).max(1);
        if points.len() < scalars.len * C::POINT_BYTES || (parts > 1 && !self.plan.request.streamed) {
            return Err(gpu.misuse(format!(
                "{} scalars in {parts} parts for {} bytes of points",
                scalars.len,
                points.len()
            )));
        }
        let events = [Event::new(gpu)?, Event::new(gpu)?];
        let done = [Event::new(gpu)?, Event::new(gpu)?];
        let range = |i: usize| i * part..scalars.len.min((i + 1) * part);
        let upload = |i: usize| {
            let bytes = range(i).start * C::POINT_BYTES..range(i).end * C::POINT_BYTES;
            copies.wait_for(&done[i % 2])?;
            // SAFETY: the points are pinned and borrowed until the call has waited for the work that uses them.
            unsafe { buffers[i % 2].range(..bytes.len())?.upload_async(copies, &points[bytes])? };
            events[i % 2].record(copies)
        };
        upload(0)?;
        for i in 0..parts {
            if i + 1 < parts {
                upload(i + 1)?;
            }
            stream.wait_for(&events[i % 2])?;
            let len = range(i).len();
            let words = scalars.words.range(8 * range(i).start..8 * range(i).end)?;
            let base = Base { points: buffers[i % 2].range(..len * C::POINT_BYTES)?, len };
            let target = if i == 0 { 0 } else { self.plan.part_buckets };
            self.bucket_sums(&call, base, Scalars { words, len, ..scalars }, None, target)?;
            done[i % 2].record(stream)?;
            if i > 0 {
                self.add_part(&call)?;
            }
        }
        self.no_dealt(&call)?;
        self.finish(&call)
    }

    /// Sum of a query's points times the values of its variables.
    ///
    /// # Errors
    /// As [`Self::full`].
    pub fn selected(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        base: Base<'_>,
        witness: Selected<'_>,
    ) -> Result<C::Projective, CudaError> {
        self.fits(stream.gpu(), base)?;
        let call = Call { stream, arena };
        self.mark(&call, "begin")?;
        let lists = self.workspace.lists.map(|list| arena.slice(list));
        let [ones, points, values] = lists;
        let (ones, points, values) = (ones?, points?, values?);
        let inputs = witness.inputs as u32;
        // The public inputs' points and values come first, in the same order.
        let list = |from: DeviceSlice<'_, u32>| -> Result<(), CudaError> {
            let args =
                Args::new().value(self.jobs_at(self.plan.reduction.steps.len())).value(1u32).value(inputs).slice(from);
            // SAFETY: writes as many words as there are inputs, which `selection` has checked to fit.
            unsafe { self.kernels.job_starts.launch(stream, Grid::cover(witness.inputs, 256), &args) }
        };
        if witness.values.len > self.plan.request.scalars || witness.inputs > witness.values.len {
            let what = format!(
                "{} values, {} of them inputs, in a plan for {}",
                witness.values.len, inputs, self.plan.request.scalars
            );
            return Err(stream.gpu().misuse(what));
        }
        if witness.inputs > 0 {
            list(points)?;
            list(values)?;
        }
        self.select(
            &call,
            witness,
            witness.full,
            points.range(witness.inputs..)?,
            Some(values.range(witness.inputs..)?),
        )?;
        self.bucket_sums(&call, base, witness.values, Some([values, points]), 0)?;
        self.select(&call, witness, witness.ones, ones, None)?;
        self.deal(&call, base, ones)?;
        self.finish(&call)
    }

    /// Whether the tables are inside of what the plan is for.
    fn fits(&self, gpu: &Gpu, base: Base<'_>) -> Result<(), CudaError> {
        let tables = self.plan.windows.tables();
        if base.len > self.plan.request.points || base.points.len() < tables * base.len * C::POINT_BYTES {
            let what = format!(
                "{} bytes of points for {tables} tables of {}, planned for {}",
                base.points.len(),
                base.len,
                self.plan.request.points
            );
            return Err(gpu.misuse(what));
        }
        Ok(())
    }

    /// From the pool to the sum.
    fn finish(&mut self, call: &Call<'_>) -> Result<C::Projective, CudaError> {
        let Call { stream, arena } = *call;
        if self.plan.reduction.groups.is_empty() {
            return Ok(C::Projective::identity());
        }
        let pool = arena.slice(self.workspace.pool)?;
        let starts = arena.slice(self.workspace.starts)?;
        for (i, step) in self.plan.reduction.steps.iter().enumerate() {
            let args = Args::new().value(self.jobs_at(i)).value(step.jobs.len() as u32);
            let args = args.value(step.segments).slice(starts);
            // SAFETY: the jobs are those of the step, whose points and sums are inside of the pool by the plan.
            unsafe { self.kernels.job_starts.launch(stream, Grid::cover(step.segments as usize, 256), &args)? };
            let accumulation = Accumulation {
                points: pool.address(),
                longer: self.lengths.all().address() + 1024 * i as u64,
                sums: pool.address() + u64::from(step.target) * C::POINT_BYTES as u64,
                stride: 1,
                second_stride: RADIX,
                ..self.accumulation(arena, step.segments as usize)?
            };
            self.accumulate(stream, accumulation)?;
        }
        self.mark(call, "reduction")?;
        let sums = arena.slice(self.workspace.sums)?;
        // SAFETY: the groups are inside of the pool by the plan, and `sums` has a place for each.
        unsafe { self.kernels.group_sums::<C>(stream, pool, self.groups.all(), sums)? };
        self.mark(call, "groups")?;
        sums.download(stream, &mut self.sums)?;
        Ok(C::fold(&self.sums, &self.plan.reduction.groups))
    }

    /// The parts of an accumulation that are the same for all of so many segments.
    fn accumulation(&self, arena: &Arena, segments: usize) -> Result<Accumulation, CudaError> {
        Ok(Accumulation {
            starts: arena.slice(self.workspace.starts)?.address(),
            scratch: arena.slice(self.workspace.scratch)?.address(),
            segments: segments as u32,
            per_lane: self.plan.per_lane(segments) as u32,
            ..Accumulation::default()
        })
    }

    fn accumulate(&self, stream: &Stream, accumulation: Accumulation) -> Result<(), CudaError> {
        let blocks = self.plan.request.sms * plan::ACCUMULATE_BLOCKS;
        // SAFETY: private, and called with addresses of buffers that the plan sized for what they are used for.
        unsafe { self.kernels.accumulate(stream, blocks, accumulation) }
    }

    /// Address of a step's jobs; after the last step, of the one that counts up.
    fn jobs_at(&self, step: usize) -> u64 {
        let before: usize = self.plan.reduction.steps[..step].iter().map(|step| step.jobs.len()).sum();
        self.jobs.all().address() + 16 * before as u64
    }

    fn word<'a>(&self, arena: &'a Arena, word: Word) -> Result<DeviceSlice<'a, u32>, CudaError> {
        arena.slice(self.workspace.words)?.range(word as usize..=word as usize)
    }
}

/// How many of `segments` segments of `length` points are longer than s, at 255 - s.
fn equal_lengths(segments: u32, length: u32) -> [u32; 256] {
    std::array::from_fn(|place| if plan::MAX_LENGTH - (place as u32) < length { segments } else { 0 })
}
