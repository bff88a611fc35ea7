//! Variables of a compact witness: which of a query's points count, and the sum of those whose variables are 1.

use super::{Base, Call, Msm, Selected};
use crate::cuda::{
    Args, CudaError, DeviceSlice, Grid,
    msm::{
        fold::DeviceCurve,
        kernels::Accumulation,
        plan::{self, Word},
    },
};

impl<C: DeviceCurve> Msm<C> {
    /// Lists the query's variables that are in `set`.
    pub(super) fn select(
        &self,
        call: &Call<'_>,
        witness: Selected<'_>,
        set: DeviceSlice<'_, u32>,
        points: DeviceSlice<'_, u32>,
        values: Option<DeviceSlice<'_, u32>>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let words = set.len();
        let mask = witness.mask.map_or(0, |mask| mask.address());
        let most = 32 * self.workspace.lists[0].len().div_ceil(32);
        if 32 * words > most || witness.mask.is_some_and(|mask| mask.len() != words) {
            let what = format!("bitmaps of {words} words, planned for {most} variables");
            return Err(stream.gpu().misuse(what));
        }
        let count = words.div_ceil(plan::SCAN_TILE).max(1);
        let [in_mask, in_set, in_both] = self.workspace.tiles.map(|tiles| arena.slice(tiles));
        let tiles = [in_mask?, in_set?, in_both?];
        let totals = [Word::Passed, Word::Passed, Word::Listed];
        let grid = Grid::new(count as u32, 256);
        let args = Args::new().value(mask).slice(set).value(words as u32);
        let args = args.slice(tiles[0]).slice(tiles[1]).slice(tiles[2]);
        // SAFETY: the bitmaps have `words` words, the tiles' sums their places, and the lists room for as many variables
        // as the plan says.
        unsafe {
            self.kernels.select_count.launch(stream, grid, &args)?;
            for (sums, total) in tiles.iter().zip(totals) {
                let args = Args::new().slice(*sums).value(count as u32).slice(self.word(arena, total)?);
                self.kernels.scan_tiles.launch(stream, Grid::new(1, 1024), &args)?;
            }
            let args = args.value(witness.inputs as u32).value(witness.inputs as u32).slice(points);
            let args = args.value(values.map_or(0, |values| values.address()));
            self.kernels.select_list.launch(stream, grid, &args)
        }
    }

    /// Deals the listed points to segments and adds them up.
    pub(super) fn deal(
        &mut self,
        call: &Call<'_>,
        base: Base<'_>,
        list: DeviceSlice<'_, u32>,
    ) -> Result<(), CudaError> {
        let Call { stream, arena } = *call;
        let dealt = self.plan.dealt;
        if dealt == 0 {
            return Ok(());
        }
        let longer = arena.slice(self.workspace.dealt_lengths)?;
        let args = Args::new().slice(self.word(arena, Word::Listed)?).value(dealt as u32).slice(longer);
        // SAFETY: writes 256 words, which are there.
        unsafe { self.kernels.dealt_lengths.launch(stream, Grid::new(1, 256), &args)? };
        self.consecutive(call, dealt)?;
        let first = self.plan.windows.buckets() * C::POINT_BYTES;
        let accumulation = Accumulation {
            points: base.points.address(),
            index: list.address(),
            longer: longer.address(),
            sums: arena.slice(self.workspace.pool)?.address() + first as u64,
            stride: dealt as u32,
            ..self.accumulation(arena, dealt)?
        };
        self.accumulate(stream, accumulation)?;
        self.mark(call, "ones")
    }

    /// No bits in this call: their sums are the identity.
    pub(super) fn no_dealt(&self, call: &Call<'_>) -> Result<(), CudaError> {
        let first = self.plan.windows.buckets() * C::POINT_BYTES;
        let pool = call.arena.slice(self.workspace.pool)?;
        pool.range(first..first + self.plan.dealt * C::POINT_BYTES)?.fill_bytes(call.stream, 0)
    }
}
