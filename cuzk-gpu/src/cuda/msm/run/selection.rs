//! Variables of a compact witness: which of a query's points count, and the sum of those whose variables are 1.

use super::{Call, Msm, Query, Witness};
use crate::cuda::{
    Args, CudaError, DeviceSlice, Grid,
    msm::{fold::DeviceCurve, kernels::Accumulation, plan, workspace::Word},
};

/// Lists of variables: numbers of points, from one on, and of values.
#[derive(Clone, Copy)]
struct Lists<'a> {
    points: DeviceSlice<'a, u32>,
    first_point: usize,
    values: Option<DeviceSlice<'a, u32>>,
    /// Where the number of listed ones goes, and how many more are counted there.
    total: Word,
    more: usize,
}

impl<C: DeviceCurve> Msm<C> {
    /// Pairs of a query's public inputs and full values.
    pub(super) fn full_values(
        &self,
        call: &Call<'_>,
        number: usize,
        query: Query<'_>,
        witness: Witness<'_>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let inputs = query.inputs.len();
        // No more variables are in `full` than have values, and every list holds as many.
        let listed = (witness.values.len() / 8).saturating_sub(witness.first_value) + inputs;
        if listed > self.plan.request.queries[number].scalars || inputs > query.len {
            let what = format!("query {number}: up to {listed} values, {inputs} of them inputs, {} points", query.len);
            return self.misuse(stream.gpu(), what);
        }
        if listed == 0 {
            return Ok(());
        }
        let [_, points, values] = self.workspace.lists.map(|list| arena.slice(list));
        let (points, values) = (points?.range(..listed)?, values?.range(..listed)?);
        if inputs > 0 {
            // The inputs' points come first, in the same order.
            self.count_up(call, points.range(..inputs)?)?;
            values.range(..inputs)?.copy_from(stream, query.inputs)?;
        }
        let lists = Lists {
            points: points.range(inputs..)?,
            first_point: inputs,
            values: Some(values.range(inputs..)?),
            total: Word::Listed(number),
            more: inputs,
        };
        self.select(call, query, witness, witness.full, lists)?;
        let first_bucket = number * self.plan.windows.buckets();
        let windows = self.plan.windows.kernel_argument(query.len, query.first, first_bucket);
        self.digits(call, number, windows, (witness.values, witness.montgomery), Some([values, points]))
    }

    /// Sums of a query's points whose variables are 1, to the pool from point `target` on.
    pub(super) fn ones(
        &self,
        call: &Call<'_>,
        (number, target): (usize, usize),
        points: DeviceSlice<'_, u8>,
        query: Query<'_>,
        witness: Witness<'_>,
    ) -> Result<(), CudaError> {
        let list = call.arena.slice(self.workspace.lists[0])?;
        let lists = Lists {
            points: list,
            first_point: query.first + query.inputs.len(),
            values: None,
            total: Word::Ones(number),
            more: 0,
        };
        self.select(call, query, witness, witness.ones, lists)?;
        self.deal(call, (number, target), points, list)
    }

    /// Lists the query's variables that are in `set`.
    fn select(
        &self,
        call: &Call<'_>,
        query: Query<'_>,
        witness: Witness<'_>,
        set: DeviceSlice<'_, u32>,
        lists: Lists<'_>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let words = set.len();
        let [in_mask, in_set, in_both] = self.workspace.tiles.map(|tiles| arena.slice(tiles));
        let tiles = [in_mask?, in_set?, in_both?];
        let count = words.div_ceil(plan::SCAN_TILE);
        let most = self.plan.request.queries.iter().map(|size| size.bits).max().unwrap_or(0);
        if 32 * words > most.next_multiple_of(64) || query.mask.is_some_and(|mask| mask.len() != words) {
            return self.misuse(stream.gpu(), format!("bitmaps of {words} words and a mask {:?}", query.mask));
        }
        let totals = [(Word::Passed, 0), (Word::Passed, 0), (lists.total, lists.more)];
        let grid = Grid::new(count.max(1) as u32, 256);
        let args = Args::new().value(query.mask.map_or(0, |mask| mask.address())).slice(set).value(words as u32);
        let args = args.slice(tiles[0]).slice(tiles[1]).slice(tiles[2]);
        let room = lists.points.len() as u32;
        // SAFETY: the bitmaps have `words` words, the tiles' sums their places, and nothing is listed past the lists' ends.
        unsafe {
            self.kernels.select_count.launch(stream, grid, &args)?;
            for (sums, (total, more)) in tiles.iter().zip(totals) {
                let args = Args::new().slice(*sums).value(grid.blocks[0]).value(room).value(more as u32);
                let args = args.value(self.word(arena, total)?);
                self.kernels.scan_tiles.launch(stream, Grid::new(1, 1024), &args)?;
            }
            let args = args.value(lists.first_point as u32).value(witness.first_value as u32).value(room);
            let args = args.slice(lists.points).value(lists.values.map_or(0, |values| values.address()));
            self.kernels.select_list.launch(stream, grid, &args)
        }
    }

    /// Deals the listed points to segments and adds them up.
    fn deal(
        &self,
        call: &Call<'_>,
        (query, target): (usize, usize),
        points: DeviceSlice<'_, u8>,
        list: DeviceSlice<'_, u32>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let dealt = self.plan.dealt[query];
        let longer = arena.slice(self.workspace.dealt_lengths)?;
        let args = Args::new().value(self.word(arena, Word::Ones(query))?).value(dealt as u32).slice(longer);
        // SAFETY: writes 256 words, which are there.
        unsafe { self.kernels.dealt_lengths.launch(stream, Grid::new(1, 256), &args)? };
        self.count_up(call, arena.slice(self.workspace.starts)?.range(..dealt)?)?;
        let place = target + self.plan.dealt_place(query);
        let sums = arena.slice(self.workspace.pool)?.range(place * C::POINT_BYTES..)?;
        let accumulation = Accumulation {
            points: points.address(),
            index: list.address(),
            longer: longer.address(),
            sums: sums.address(),
            stride: dealt as u32,
            ..self.accumulation(arena)?
        };
        self.accumulate(stream, accumulation, dealt)
    }

    /// No bits in this call: their sums are the identity.
    pub(super) fn no_dealt(&self, call: &Call<'_>) -> Result<(), CudaError> {
        let [first, end] = [0, self.plan.dealt.len()].map(|query| self.plan.dealt_place(query) * C::POINT_BYTES);
        call.arena.slice(self.workspace.pool)?.range(first..end)?.fill_bytes(call.stream, 0)
    }
}
