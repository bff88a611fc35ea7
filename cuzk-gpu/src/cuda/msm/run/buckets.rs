//! Full scalars: from digits to the sum of every bucket.

use super::{Call, Msm};
use crate::cuda::{
    Args, CudaError, DeviceSlice, Grid,
    msm::{
        fold::DeviceCurve,
        kernels::{Accumulation, SortPass},
        plan,
        windows::MAX_WINDOWS,
        workspace::{MAX_PASSES, Word},
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
    /// Pairs of as many scalars as the state lists for the query; `lists` are the numbers of their values and points.
    pub(super) fn digits(
        &self,
        call: &Call<'_>,
        query: usize,
        windows: [u32; 1 + 3 * MAX_WINDOWS],
        (words, montgomery): (DeviceSlice<'_, u32>, bool),
        lists: Option<[DeviceSlice<'_, u32>; 2]>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let [keys, values] = self.ends(call, 0)?;
        let [value_list, point_list] = lists.map_or([0, 0], |lists| lists.map(|list| list.address()));
        let args = Args::new().slice(words).value(query as u32).value(u32::from(montgomery));
        let args = args.value(value_list).value(point_list).value(windows).value(self.plan.passes());
        let args = args.slice(keys).slice(values).slice(arena.slice(self.workspace.counts)?);
        let args = args.slice(arena.slice(self.workspace.state)?);
        let scalars = self.plan.request.queries[query].scalars;
        let blocks = scalars.div_ceil(256).clamp(1, 8 * self.plan.request.sms) as u32;
        // SAFETY: the caller has checked that no more are listed than planned for, with values and points for each.
        unsafe { self.kernels.digits.launch(stream, Grid::new(blocks, 256), &args) }
    }

    /// Where the pairs are before a pass of the sort. The passes go to and fro, so that they end in `sorted`.
    fn ends<'a>(&self, call: &Call<'a>, pass: u32) -> Result<[DeviceSlice<'a, u32>; 2], CudaError> {
        let last = (self.plan.passes() - pass).is_multiple_of(2);
        let [keys, values] = if last { self.workspace.sorted } else { self.workspace.unsorted };
        Ok([call.arena.slice(keys)?, call.arena.slice(values)?])
    }

    /// Sorts the pairs by bucket, and finds where each bucket begins.
    pub(super) fn sort(&mut self, call: &Call<'_>) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let (pairs, passes) = (self.plan.pairs(), self.plan.passes());
        let counts = arena.slice(self.workspace.counts)?;
        let count = self.word(arena, Word::Pairs)?;
        // SAFETY: the pairs are not more than planned for, and their buffers have that size.
        unsafe {
            self.kernels.sort_scan.launch(stream, Grid::new(passes, 256), &Args::new().slice(counts))?;
            for pass in 0..passes {
                let pass = SortPass {
                    from: self.ends(call, pass)?,
                    to: self.ends(call, pass + 1)?,
                    most: pairs,
                    count,
                    pass,
                    first: counts.range(256 * pass as usize..)?,
                    status: arena.slice(self.workspace.status)?,
                    ticket: self.word(arena, Word::Ticket(pass as usize))?,
                };
                self.kernels.sort_pass(stream, pass)?;
            }
            self.mark(call, "sort")?;
            let start = arena.slice(self.workspace.bounds[0])?;
            let args = Args::new().slice(arena.slice(self.workspace.sorted[0])?).value(count);
            let args = args.value(self.plan.buckets() as u32).slice(start);
            self.kernels.bounds.launch(stream, Grid::cover(pairs + 1, 256), &args)
        }
    }

    /// Sums of all buckets, to the pool from point `target` on.
    pub(super) fn add(&mut self, call: &Call<'_>, points: DeviceSlice<'_, u8>, target: usize) -> Result<(), CudaError> {
        let arena = call.arena;
        let pool = arena.slice(self.workspace.pool)?.range(target * C::POINT_BYTES..)?;
        let start = arena.slice(self.workspace.bounds[0])?;
        let index = arena.slice(self.workspace.sorted[1])?.address();
        let mut input = Input { points: points.address(), index, start };
        for level in 0..self.plan.levels() {
            self.add_up(call, input, level, pool)?;
            // What was cut is added up again, part by part.
            input = Input {
                points: arena.slice(self.workspace.parts[level % 2])?.address(),
                index: 0,
                start: arena.slice(self.workspace.bounds[1 + level % 2])?,
            };
        }
        Ok(())
    }

    /// Sums of segments: of whole buckets, to `pool`, if none is longer than the cap; else of their parts, to be added up
    /// on the next level.
    fn add_up(
        &mut self,
        call: &Call<'_>,
        input: Input<'_>,
        level: usize,
        pool: DeviceSlice<'_, u8>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let buckets = self.plan.buckets();
        let cap = if level == 0 { self.plan.cap } else { self.plan.part_cap };
        let most = self.plan.max_segments(level);
        let tiles = arena.slice(self.workspace.tiles[0])?.range(..buckets.div_ceil(plan::SCAN_TILE))?;
        let state = self.word(arena, Word::Level(level))?;
        let count = self.word(arena, Word::LevelSegments(level))?;
        let first_segment = arena.slice(self.workspace.bounds[1 + level % 2])?;
        let [starts, keys, numbers, keys_sorted, order] = self.workspace.segments.map(|region| arena.slice(region));
        let (starts, keys, numbers, keys_sorted, order) = (starts?, keys?, numbers?, keys_sorted?, order?);
        let counts = arena.slice(self.workspace.counts)?.range(256 * (MAX_PASSES + level)..)?.range(..256)?;
        let ordered = arena.slice(self.workspace.starts)?;
        let (by_tile, by_segment) = (Grid::new(tiles.len() as u32, 256), self.grid_stride(most));
        let start = Args::new().slice(input.start).value(buckets as u32);
        // SAFETY: every buffer has the size that the plan gave it for this many buckets and segments.
        unsafe {
            let args = start.clone().value(cap).slice(tiles).value(state);
            self.kernels.count_segments.launch(stream, by_tile, &args)?;
            let args = Args::new().slice(tiles).value(tiles.len() as u32).value(buckets as u32).value(cap).value(state);
            self.kernels.scan_segments.launch(stream, Grid::new(1, 1024), &args)?;
            let args = start.clone().value(cap).slice(tiles).value(state).slice(first_segment);
            self.kernels.place_segments.launch(stream, by_tile, &args)?;
            let args = start.slice(first_segment).value(state).slice(starts).slice(keys).slice(numbers).slice(counts);
            self.kernels.cut_segments.launch(stream, by_segment, &args)?;
            self.kernels.sort_scan.launch(stream, Grid::new(1, 256), &Args::new().slice(counts))?;
            self.kernels.sort_pass(
                stream,
                SortPass {
                    from: [keys, numbers],
                    to: [keys_sorted, order],
                    most,
                    count,
                    pass: 0,
                    first: counts,
                    status: arena.slice(self.workspace.status)?,
                    ticket: self.word(arena, Word::Ticket(MAX_PASSES + level))?,
                },
            )?;
            let args = Args::new().slice(starts).slice(order).value(count).slice(ordered);
            self.kernels.order_starts.launch(stream, by_segment, &args)?;
        }
        let accumulation = Accumulation {
            points: input.points,
            index: input.index,
            starts: ordered.address(),
            order: order.address(),
            longer: counts.address(),
            sums: pool.address(),
            stride: 1,
            level: state,
            part_sums: arena.slice(self.workspace.parts[level % 2])?.address(),
            ..self.accumulation(arena)?
        };
        self.mark(call, "segments")?;
        self.accumulate(stream, accumulation, most)?;
        self.mark(call, "accumulate")
    }

    /// A grid for items whose number only the device knows.
    fn grid_stride(&self, most: usize) -> Grid {
        Grid::new(most.div_ceil(256).clamp(1, 16 * self.plan.request.sms) as u32, 256)
    }

    /// Adds a part's buckets and dealt segments to those of the parts before.
    pub(super) fn add_part(&self, call: &Call<'_>) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let (sums, steps) = (self.plan.part_buckets, self.plan.reduction.steps.len());
        let pool = arena.slice(self.workspace.pool)?.address();
        self.count_up(call, arena.slice(self.workspace.starts)?.range(..sums)?)?;
        let accumulation = Accumulation {
            points: pool,
            longer: self.lengths.all().address() + 1024 * steps as u64,
            sums: pool,
            stride: self.plan.part_buckets as u32,
            ..self.accumulation(arena)?
        };
        self.accumulate(stream, accumulation, sums)
    }
}
