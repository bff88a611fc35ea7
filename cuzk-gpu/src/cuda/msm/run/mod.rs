//! A plan's work on a device: loading, and what follows when all buckets have their sums.
//!
//! Calls only queue work in a stream. What one kernel finds out and the next one needs stays on the device (`msm_state`),
//! so nothing waits for the host before [`Msm::sums`].

mod buckets;
mod calls;
mod selection;

use std::{marker::PhantomData, time::Duration};

use rayon::prelude::*;

pub use self::calls::{Base, Query, Scalars, Witness};
use super::{
    fold::DeviceCurve,
    kernels::{Accumulation, Kernels},
    plan::{self, Plan},
    reduction::{Group, RADIX},
    workspace::{MAX_QUERIES, Word, Workspace},
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
    /// For each step, how many of its segments are longer than each length; then the same for all sums of a part and length 2.
    lengths: DeviceBuffer<u32>,
    groups: DeviceBuffer<u32>,
    sums: PinnedBuffer<u8>,
    /// Where the last call's sums have arrived.
    done: Event,
    marks: Option<Marks>,
    curve: PhantomData<C>,
}

/// The last few hundred points of a call.
#[derive(Clone, Debug)]
pub struct Unfolded<C> {
    sums: Vec<u8>,
    groups: Vec<Group>,
    queries: usize,
    curve: PhantomData<C>,
}

/// Points in time between the stages of a call.
type Marks = Vec<(&'static str, Event)>;

/// One call: where it runs and on what.
#[derive(Clone, Copy)]
struct Call<'a> {
    stream: &'a Stream,
    arena: &'a Arena,
}

impl<C: DeviceCurve> Unfolded<C> {
    /// The sums, one a query.
    pub fn fold(&self) -> Vec<C::Projective> {
        (0..self.queries).into_par_iter().map(|query| C::fold(&self.sums, &self.groups, query)).collect()
    }
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
        lengths.extend(equal_lengths(plan.part_buckets as u32, 2));
        let groups: Vec<u32> = plan.reduction.groups.iter().flat_map(|g| [g.source, g.first, g.end, g.bit]).collect();
        let sum_bytes = plan.reduction.groups.len() * 2 * C::POINT_BYTES;
        Ok(Self {
            workspace,
            kernels: Kernels::load::<C>(gpu)?,
            jobs: DeviceBuffer::from_host(stream, &jobs, "jobs of a multi-scalar multiplication")?,
            lengths: DeviceBuffer::from_host(stream, &lengths, "lengths of a multi-scalar multiplication")?,
            groups: DeviceBuffer::from_host(stream, &groups, "groups of a multi-scalar multiplication")?,
            sums: PinnedBuffer::new(gpu, sum_bytes, "sums of groups")?,
            done: Event::new(gpu)?,
            plan,
            marks: None,
            curve: PhantomData,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The last call's sums, one a query: waits for the device to be done with that call, and folds its last few hundred
    /// points on the CPU, on the current pool of rayon.
    ///
    /// # Errors
    /// What the driver reports, errors of the call's kernels included.
    pub fn sums(&mut self) -> Result<Vec<C::Projective>, CudaError> {
        Ok(self.unfolded()?.fold())
    }

    /// The same, to be folded later: half a millisecond a query, in which the device can work at something else.
    ///
    /// # Errors
    /// As [`Self::sums`].
    pub fn unfolded(&mut self) -> Result<Unfolded<C>, CudaError> {
        self.done.wait()?;
        Ok(Unfolded {
            sums: self.sums.to_vec(),
            groups: self.plan.reduction.groups.clone(),
            queries: self.plan.request.queries.len(),
            curve: PhantomData,
        })
    }

    /// Marks the stages of the next call, whose times [`Self::stages`] then tells.
    pub fn trace(&mut self) {
        self.marks = Some(Vec::new());
    }

    /// Times of the stages of the call since [`Self::trace`], in order. The call must be done.
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

    /// Sets what kernels tell each other; `listed` is what the host knows of the queries' full scalars.
    fn begin(&self, call: &Call<'_>, listed: [u32; MAX_QUERIES]) -> Result<(), CudaError> {
        let args = Args::new().slice(call.arena.slice(self.workspace.state)?);
        let args = args.slice(call.arena.slice(self.workspace.counts)?).value(listed);
        // SAFETY: the state has its size, and the counts have 256 words for each pass and level.
        unsafe { self.kernels.begin.launch(call.stream, Grid::new(1, 256), &args) }
    }

    /// From the pool to the sums.
    fn finish(&mut self, call: &Call<'_>) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
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
                ..self.accumulation(arena)?
            };
            self.accumulate(stream, accumulation, step.segments as usize)?;
        }
        self.mark(call, "reduction")?;
        if self.plan.reduction.groups.is_empty() {
            return self.done.record(stream);
        }
        let sums = arena.slice(self.workspace.sums)?;
        // SAFETY: the groups are inside of the pool by the plan, and `sums` has a place for each.
        unsafe { self.kernels.group_sums::<C>(stream, pool, self.groups.all(), sums)? };
        // SAFETY: the pinned buffer is read by `sums` only, after the event, and dropped after the event.
        unsafe { sums.download_async(stream, &mut self.sums)? };
        self.mark(call, "groups")?;
        self.done.record(stream)
    }

    /// The parts of an accumulation that are the same for all.
    fn accumulation(&self, arena: &Arena) -> Result<Accumulation, CudaError> {
        Ok(Accumulation {
            starts: arena.slice(self.workspace.starts)?.address(),
            scratch: arena.slice(self.workspace.scratch)?.address(),
            ..Accumulation::default()
        })
    }

    /// At most `segments` segments if the accumulation names a level, else so many.
    fn accumulate(&self, stream: &Stream, accumulation: Accumulation, segments: usize) -> Result<(), CudaError> {
        let blocks = self.plan.request.sms * plan::ACCUMULATE_BLOCKS;
        let accumulation = Accumulation { segments: segments as u32, ..accumulation };
        // SAFETY: private, and called with addresses of buffers that the plan sized for what they are used for.
        unsafe { self.kernels.accumulate(stream, blocks, accumulation) }
    }

    /// Address of a step's jobs; after the last step, of the one that counts up.
    fn jobs_at(&self, step: usize) -> u64 {
        let before: usize = self.plan.reduction.steps[..step].iter().map(|step| step.jobs.len()).sum();
        self.jobs.all().address() + 16 * before as u64
    }

    /// Words 0, 1, 2, ...
    fn count_up(&self, call: &Call<'_>, to: DeviceSlice<'_, u32>) -> Result<(), CudaError> {
        let args = Args::new().value(self.jobs_at(self.plan.reduction.steps.len())).value(1u32);
        let args = args.value(to.len() as u32).slice(to);
        // SAFETY: the last job is there, and one word a segment is written.
        unsafe { self.kernels.job_starts.launch(call.stream, Grid::cover(to.len(), 256), &args) }
    }

    /// Address of a word of the state.
    fn word(&self, arena: &Arena, word: Word) -> Result<u64, CudaError> {
        Ok(arena.slice(self.workspace.state)?.address() + 4 * word.place() as u64)
    }

    fn misuse<T>(&self, gpu: &Gpu, what: String) -> Result<T, CudaError> {
        Err(gpu.misuse(format!("{what}, planned for {:?}", self.plan.request.queries)))
    }
}

impl<C> Drop for Msm<C> {
    fn drop(&mut self) {
        // The device may still write the sums to memory that is about to be freed. If waiting fails, it will not.
        drop(self.done.wait());
    }
}

/// How many of `segments` segments of `length` points are longer than s, at 255 - s.
fn equal_lengths(segments: u32, length: u32) -> [u32; 256] {
    std::array::from_fn(|place| if plan::MAX_LENGTH - (place as u32) < length { segments } else { 0 })
}
