//! Full scalars: from digits to the sum of every bucket.

use super::{Base, Call, Msm, Scalars};
use crate::cuda::{
    Args, CudaError, DeviceSlice, Grid,
    msm::{
        fold::DeviceCurve,
        kernels::Accumulation,
        plan::{self, Word},
    },
};

/// Sums of what is at these positions.
#[derive(Clone, Copy)]
struct Input<'a> {
    points: u64,
    index: u64,
    start: DeviceSlice<'a, u32>,
}

impl<C: DeviceCurve> Msm<C> {
    /// Sums of all buckets, to the pool from point `target` on.
    pub(super) fn bucket_sums(
        &mut self,
        call: &Call<'_>,
        base: Base<'_>,
        scalars: Scalars<'_>,
        lists: Option<[DeviceSlice<'_, u32>; 2]>,
        target: usize,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let (gpu, windows) = (stream.gpu(), self.plan.windows.clone());
        let (n, buckets) = (scalars.len, windows.buckets());
        let pool = arena.slice(self.workspace.pool)?.range(target * C::POINT_BYTES..)?;
        if n == 0 {
            return pool.range(..buckets * C::POINT_BYTES)?.fill_bytes(stream, 0);
        }
        if n > self.plan.request.scalars || (lists.is_none() && (n > base.len || scalars.words.len() < 8 * n)) {
            let what = format!("{n} scalars for {} points, planned for {}", base.len, self.plan.request.scalars);
            return Err(gpu.misuse(what));
        }
        let pairs = n * windows.count();
        let counts = arena.slice(self.workspace.counts)?;
        let slices = |regions: [_; 2]| -> Result<[DeviceSlice<'_, u32>; 2], CudaError> {
            Ok([arena.slice(regions[0])?, arena.slice(regions[1])?])
        };
        let (sorted, unsorted) = (slices(self.workspace.sorted)?, slices(self.workspace.unsorted)?);
        let passes = windows.passes();
        // The passes go to and fro, so that they end in `sorted`.
        let ends = |pass: u32| if (passes - pass).is_multiple_of(2) { sorted } else { unsorted };
        counts.fill_bytes(stream, 0)?;
        let [scalar_list, point_list] = lists.map_or([0, 0], |lists| lists.map(|list| list.address()));
        let args = Args::new().slice(scalars.words).value(n as u32).value(u32::from(scalars.montgomery));
        let args = args.value(scalar_list).value(point_list).value(windows.kernel_argument(base.len)).value(passes);
        let args = args.slice(ends(0)[0]).slice(ends(0)[1]).slice(counts);
        let blocks = n.div_ceil(256).min(8 * self.plan.request.sms) as u32;
        // SAFETY: scalars, lists and tables are inside of their buffers (checked above and by the caller), and the pairs
        // are not more than planned for; so for all launches below.
        unsafe {
            self.kernels.digits.launch(stream, Grid::new(blocks, 256), &args)?;
            self.mark(call, "digits")?;
            self.kernels.sort_scan.launch(stream, Grid::new(passes, 256), &Args::new().slice(counts))?;
            for pass in 0..passes {
                let (status, ticket) = (arena.slice(self.workspace.status)?, self.word(arena, Word::Ticket)?);
                self.kernels.sort_pass(stream, ends(pass), ends(pass + 1), pairs, pass, counts, status, ticket)?;
            }
            self.mark(call, "sort")?;
            let start = arena.slice(self.workspace.bounds[0])?;
            let args = Args::new().slice(sorted[0]).value(pairs as u32).value(buckets as u32).slice(start);
            self.kernels.bounds.launch(stream, Grid::cover(pairs + 1, 256), &args)?;
        }
        let start = arena.slice(self.workspace.bounds[0])?.range(..buckets + 1)?;
        let mut input = Input { points: base.points.address(), index: sorted[1].address(), start };
        let mut cap = self.plan.cap;
        for level in 0.. {
            let Some(first_segment) = self.add_up(call, input, cap, level, pool)? else { break };
            // What was cut is added up again, part by part.
            input = Input {
                points: arena.slice(self.workspace.parts[level % 2])?.address(),
                index: 0,
                start: first_segment,
            };
            cap = plan::MAX_LENGTH;
        }
        Ok(())
    }

    /// Sums of segments: of whole buckets, to `pool`, if none is longer than the cap. Else of their parts; returns where
    /// each bucket's parts begin.
    fn add_up<'a>(
        &mut self,
        call: &Call<'a>,
        input: Input<'_>,
        cap: u32,
        level: usize,
        pool: DeviceSlice<'_, u8>,
    ) -> Result<Option<DeviceSlice<'a, u32>>, CudaError> {
        let Call { stream, arena } = *call;
        let buckets = self.plan.windows.buckets();
        let tiles = arena.slice(self.workspace.tiles[0])?.range(..buckets.div_ceil(plan::SCAN_TILE))?;
        let found = arena.slice(self.workspace.words)?.range(Word::Longest as usize..=Word::Segments as usize)?;
        let longest = self.word(arena, Word::Longest)?;
        let total = self.word(arena, Word::Segments)?;
        found.fill_bytes(stream, 0)?;
        let grid = Grid::new(tiles.len() as u32, 256);
        let start = Args::new().slice(input.start).value(buckets as u32);
        // SAFETY: every buffer has the size that the plan gave it for this many buckets and segments.
        unsafe {
            let args = start.clone().value(cap).slice(tiles).slice(longest);
            self.kernels.count_segments.launch(stream, grid, &args)?;
            let args = Args::new().slice(tiles).value(tiles.len() as u32).slice(total);
            self.kernels.scan_tiles.launch(stream, Grid::new(1, 1024), &args)?;
        }
        found.download(stream, &mut self.found)?;
        let cut = self.found[0] > cap;
        let segments = if cut { self.found[1] as usize } else { buckets };
        let first_segment = arena.slice(self.workspace.bounds[1 + level % 2])?.range(..buckets + 1)?;
        let [starts, keys, numbers, keys_sorted, order] = self.workspace.segments.map(|region| arena.slice(region));
        let (starts, keys, numbers, keys_sorted, order) = (starts?, keys?, numbers?, keys_sorted?, order?);
        let counts = arena.slice(self.workspace.counts)?.range(..256)?;
        counts.fill_bytes(stream, 0)?;
        let (status, ticket) = (arena.slice(self.workspace.status)?, self.word(arena, Word::Ticket)?);
        let ordered = arena.slice(self.workspace.starts)?;
        // SAFETY: as above.
        unsafe {
            if cut {
                let args = start.clone().value(cap).slice(tiles).slice(total).slice(first_segment);
                self.kernels.place_segments.launch(stream, grid, &args)?;
            }
            let args = start.value(if cut { first_segment.address() } else { 0 }).value(segments as u32);
            let args = args.slice(starts).slice(keys).slice(numbers).slice(counts);
            self.kernels.cut_segments.launch(stream, Grid::cover(segments, 256), &args)?;
            self.kernels.sort_scan.launch(stream, Grid::new(1, 256), &Args::new().slice(counts))?;
            let (from, to) = ([keys, numbers], [keys_sorted, order]);
            self.kernels.sort_pass(stream, from, to, segments, 0, counts, status, ticket)?;
            let args = Args::new().slice(starts).slice(order).value(segments as u32).slice(ordered);
            self.kernels.order_starts.launch(stream, Grid::cover(segments, 256), &args)?;
        }
        let sums = if cut { arena.slice(self.workspace.parts[level % 2])?.address() } else { pool.address() };
        let accumulation = Accumulation {
            points: input.points,
            index: input.index,
            starts: ordered.address(),
            order: order.address(),
            longer: counts.address(),
            sums,
            stride: 1,
            ..self.accumulation(arena, segments)?
        };
        self.mark(call, "segments")?;
        self.accumulate(stream, accumulation)?;
        self.mark(call, "accumulate")?;
        Ok(cut.then_some(first_segment))
    }

    /// Adds a streamed part's buckets to those of the parts before.
    pub(super) fn add_part(&self, call: &Call<'_>) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let (buckets, steps) = (self.plan.windows.buckets(), self.plan.reduction.steps.len());
        let pool = arena.slice(self.workspace.pool)?.address();
        self.consecutive(call, buckets)?;
        let accumulation = Accumulation {
            points: pool,
            longer: self.lengths.all().address() + 1024 * steps as u64,
            sums: pool,
            stride: self.plan.part_buckets as u32,
            ..self.accumulation(arena, buckets)?
        };
        self.accumulate(stream, accumulation)
    }

    /// Starts 0, 1, 2, ...
    pub(super) fn consecutive(&self, call: &Call<'_>, segments: usize) -> Result<(), CudaError> {
        let starts = call.arena.slice(self.workspace.starts)?.range(..segments)?;
        let args = Args::new().value(self.jobs_at(self.plan.reduction.steps.len())).value(1u32);
        let args = args.value(segments as u32).slice(starts);
        // SAFETY: the last job is there, and one word a segment is written.
        unsafe { self.kernels.job_starts.launch(call.stream, Grid::cover(segments, 256), &args) }
    }
}
