//! The kernels of a multi-scalar multiplication, and their launches.

use super::fold::DeviceCurve;
use crate::cuda::{Args, CudaError, DeviceSlice, Function, Gpu, Grid, Stream, msm::plan};

/// Shared memory of the sort's pass: a tile of pairs, a counter for each of 16 warps and 256 digits.
const SORT_SHARED: u32 = 8 * plan::SORT_TILE as u32 + 16 * 256 * 4;
/// Threads of the sort's pass.
const SORT_THREADS: u32 = 512;
/// Shared memory of the accumulation kernel: its ring of copies.
const RING: u32 = 15_360 * plan::ACCUMULATE_WARPS as u32;
/// Threads of a group's block.
const GROUP_THREADS: u32 = 128;

/// The functions, loaded.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) begin: Function,
    pub(super) digits: Function,
    pub(super) sort_scan: Function,
    pub(super) sort_pass: Function,
    pub(super) bounds: Function,
    pub(super) count_segments: Function,
    pub(super) scan_tiles: Function,
    pub(super) scan_segments: Function,
    pub(super) place_segments: Function,
    pub(super) cut_segments: Function,
    pub(super) order_starts: Function,
    pub(super) job_starts: Function,
    pub(super) dealt_lengths: Function,
    pub(super) select_count: Function,
    pub(super) select_list: Function,
    pub(super) double: Function,
    accumulate: Accumulate,
    group_sums: Function,
}

/// The accumulation kernel of a group.
#[derive(Debug)]
enum Accumulate {
    /// Affine, with and without an index.
    Affine { indexed: Function, direct: Function },
    /// XYZZ, both.
    Plain(Function),
}

/// Arguments of an accumulation: see `msm_accumulate_args`. Addresses, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accumulation {
    pub(super) points: u64,
    pub(super) index: u64,
    pub(super) starts: u64,
    pub(super) order: u64,
    pub(super) longer: u64,
    pub(super) scratch: u64,
    pub(super) sums: u64,
    pub(super) segments: u32,
    pub(super) stride: u32,
    pub(super) second_stride: u32,
    pub(super) level: u64,
    pub(super) part_sums: u64,
}

/// A pass of the sort.
#[derive(Clone, Copy)]
pub(super) struct SortPass<'a> {
    /// Keys and values.
    pub(super) from: [DeviceSlice<'a, u32>; 2],
    /// The same, sorted by the digit.
    pub(super) to: [DeviceSlice<'a, u32>; 2],
    /// The most pairs that there may be.
    pub(super) most: usize,
    /// Address of the number of pairs.
    pub(super) count: u64,
    /// Which digit: 0 is the lowest.
    pub(super) pass: u32,
    /// Where each digit begins.
    pub(super) first: DeviceSlice<'a, u32>,
    /// 256 words for each tile.
    pub(super) status: DeviceSlice<'a, u64>,
    /// Address of a word that is zero.
    pub(super) ticket: u64,
}

impl Kernels {
    pub(super) fn load<C: DeviceCurve>(gpu: &Gpu) -> Result<Self, CudaError> {
        let suffix = C::SUFFIX;
        let accumulate = match suffix {
            "g1" => Accumulate::Affine {
                indexed: gpu.function("msm_accumulate", "msm_accumulate_indexed")?,
                direct: gpu.function("msm_accumulate", "msm_accumulate_direct")?,
            },
            _ => Accumulate::Plain(gpu.function("msm_sums", &format!("msm_accumulate_{suffix}"))?),
        };
        if let Accumulate::Affine { indexed, direct } = &accumulate {
            indexed.allow_shared(RING)?;
            direct.allow_shared(RING)?;
        }
        let sort_pass = gpu.function("sort", "sort_pass")?;
        sort_pass.allow_shared(SORT_SHARED)?;
        Ok(Self {
            begin: gpu.function("msm_segments", "msm_begin")?,
            digits: gpu.function("msm_digits", "msm_digits")?,
            sort_scan: gpu.function("sort", "sort_scan")?,
            sort_pass,
            bounds: gpu.function("msm_segments", "msm_bounds")?,
            count_segments: gpu.function("msm_segments", "msm_count_segments")?,
            scan_tiles: gpu.function("msm_segments", "msm_scan_tiles")?,
            scan_segments: gpu.function("msm_segments", "msm_scan_segments")?,
            place_segments: gpu.function("msm_segments", "msm_place_segments")?,
            cut_segments: gpu.function("msm_segments", "msm_cut_segments")?,
            order_starts: gpu.function("msm_segments", "msm_order_starts")?,
            job_starts: gpu.function("msm_segments", "msm_job_starts")?,
            dealt_lengths: gpu.function("msm_segments", "msm_dealt_lengths")?,
            select_count: gpu.function("msm_select", "msm_select_count")?,
            select_list: gpu.function("msm_select", "msm_select_list")?,
            double: gpu.function("msm_sums", &format!("msm_double_{suffix}"))?,
            accumulate,
            group_sums: gpu.function("msm_sums", &format!("msm_group_sums_{suffix}"))?,
        })
    }

    /// One pass of the sort.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub(super) unsafe fn sort_pass(&self, stream: &Stream, pass: SortPass<'_>) -> Result<(), CudaError> {
        let tiles = pass.most.div_ceil(plan::SORT_TILE);
        pass.status.range(..tiles * 256)?.fill_bytes(stream, 0)?;
        let args = Args::new().slice(pass.from[0]).slice(pass.from[1]).slice(pass.to[0]).slice(pass.to[1]);
        let args = args.value(pass.count).value(8 * pass.pass).slice(pass.first).slice(pass.status).value(pass.ticket);
        let grid = Grid::new(tiles.max(1) as u32, SORT_THREADS).with_shared(SORT_SHARED);
        // SAFETY: the caller's promise.
        unsafe { self.sort_pass.launch(stream, grid, &args) }
    }

    /// Sums of segments; `blocks` blocks of the affine kernel.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub(super) unsafe fn accumulate(&self, stream: &Stream, blocks: usize, a: Accumulation) -> Result<(), CudaError> {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let args = Args::new().value([
            a.points,
            a.index,
            a.starts,
            a.order,
            a.longer,
            a.scratch,
            a.sums,
            pair(a.segments, a.stride),
            u64::from(a.second_stride),
            a.level,
            a.part_sums,
        ]);
        let affine = Grid::new(blocks as u32, 32 * plan::ACCUMULATE_WARPS as u32).with_shared(RING);
        let (function, grid) = match &self.accumulate {
            Accumulate::Affine { indexed, .. } if a.index != 0 => (indexed, affine),
            Accumulate::Affine { direct, .. } => (direct, affine),
            Accumulate::Plain(function) => (function, Grid::cover(a.segments as usize, 128)),
        };
        // SAFETY: the caller's promise.
        unsafe { function.launch(stream, grid, &args) }
    }

    /// Sums of groups.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub(super) unsafe fn group_sums<C: DeviceCurve>(
        &self,
        stream: &Stream,
        points: DeviceSlice<'_, u8>,
        groups: DeviceSlice<'_, u32>,
        sums: DeviceSlice<'_, u8>,
    ) -> Result<(), CudaError> {
        let grid = Grid::new((groups.len() / 4) as u32, GROUP_THREADS);
        let grid = grid.with_shared(GROUP_THREADS * 2 * C::POINT_BYTES as u32);
        // SAFETY: the caller's promise.
        unsafe { self.group_sums.launch(stream, grid, &Args::new().slice(points).slice(groups).slice(sums)) }
    }
}
