//! What a multi-scalar multiplication does and needs: windows, caps, buffers. Pure; a runner follows it.

use super::{
    reduction::{Reduction, Run, Set, Weight},
    windows::Windows,
};
use crate::cuda::arena::{Layout, Region};

/// The longest segment that the kernels take (`MSM_MAX_LENGTH`).
pub const MAX_LENGTH: u32 = 255;
/// Points that tables may hold in all: an entry's number has 31 bits, and the last one stands for none.
pub const MAX_ENTRIES: usize = (1 << 31) - 1;
/// Segments that keep every lane busy with enough additions for a reciprocal: about 70 a lane of an H200.
const ENOUGH_SEGMENTS: usize = 2_400_000;
/// Pairs of a tile of the sort (`SORT_TILE`).
pub const SORT_TILE: usize = 8192;
/// Buckets of a tile of the scan of segments, words of a tile of the selection (`SCAN_TILE`, `SELECT_TILE`).
pub const SCAN_TILE: usize = 2048;
/// Blocks of the accumulation kernel on a multiprocessor, and its warps a block.
pub const ACCUMULATE_BLOCKS: usize = 2;
/// Warps of a block of it.
pub const ACCUMULATE_WARPS: usize = 4;
/// Bytes of scratch that a lane needs for a segment: accumulator, product, point number.
const SCRATCH: usize = 96 + 48 + 4;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Points of the base.
    pub points: usize,
    /// The most full scalars of a call.
    pub scalars: usize,
    /// The most variables of a call whose bits select points; 0 if none.
    pub bits: usize,
    /// The most tables of multiples that the device has room for (1: the points alone).
    pub tables: usize,
    /// Whether a call's points may come in several parts, each of at most `points`.
    pub streamed: bool,
    /// Bytes of workspace that the device has room for.
    pub workspace: usize,
    /// Bytes of a point.
    pub point_bytes: usize,
    /// Multiprocessors of the device.
    pub sms: usize,
}

/// How it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What was asked for.
    pub request: Request,
    /// Windows, tables, sets.
    pub windows: Windows,
    /// Longest segment; longer buckets are cut.
    pub cap: u32,
    /// Segments that the bits' points are dealt to, a power of two; 0 if there are no bits.
    pub dealt: usize,
    /// Where in the pool the buckets of a streamed part are, before they are added to those of the parts before.
    pub part_buckets: usize,
    /// From buckets and dealt segments to the sum.
    pub reduction: Reduction,
}

/// Single words of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The next tile of a pass of the sort.
    Ticket,
    /// Length of the longest bucket.
    Longest,
    /// Segments of all buckets. Follows `Longest`: they are read together.
    Segments,
    /// Variables that a selection has passed over: in the mask, in the set.
    Passed,
    /// Points of a list.
    Listed,
}

/// Where a plan's buffers are in an arena.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    /// Keys and values, sorted.
    pub sorted: [Region<u32>; 2],
    /// The other ends of the sort's passes. Not in use at the same time as what follows it.
    pub unsorted: [Region<u32>; 2],
    /// Of segments: start, then key, number, and both sorted by length.
    pub segments: [Region<u32>; 5],
    /// Starts in the order of lengths.
    pub starts: Region<u32>,
    /// Of the accumulation kernel.
    pub scratch: Region<u8>,
    /// Sums of the parts of buckets that were cut, and of parts of these.
    pub parts: [Region<u8>; 2],
    /// First positions of buckets, then first segments of buckets in turns.
    pub bounds: [Region<u32>; 3],
    /// Sums of tiles: three of the selection, one of the scan.
    pub tiles: [Region<u32>; 3],
    /// Selected points (of bits), and points and values (of full scalars).
    pub lists: [Region<u32>; 3],
    /// Words of the sort's tiles.
    pub status: Region<u64>,
    /// Counts of digits, four passes.
    pub counts: Region<u32>,
    /// How many of the dealt segments are longer than each length.
    pub dealt_lengths: Region<u32>,
    /// Single words: see `Word`.
    pub words: Region<u32>,
    /// Buckets, dealt segments, and what the reduction adds.
    pub pool: Region<u8>,
    /// Sums of groups, XYZZ.
    pub sums: Region<u8>,
}

impl Plan {
    /// The fastest plan by the cost model that fits: `None` if none does.
    pub fn choose(request: Request) -> Option<Self> {
        let tables = (1..=request.tables).filter(|t| t * request.points <= MAX_ENTRIES);
        let all = tables.flat_map(|tables| (10..=super::windows::MAX_WINDOWS).map(move |count| (count, tables)));
        all.filter_map(|(count, tables)| Windows::balanced(count, tables))
            .map(|windows| (cost(request.scalars, &windows), windows))
            .filter(|(_, windows)| workspace_estimate(&request, windows) <= request.workspace)
            .min_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, windows)| Self::with_windows(request, windows, None))
            .filter(|plan| plan.workspace_bytes() <= request.workspace)
    }

    /// The plan with these windows, and a cap if the usual one is not wanted.
    pub fn with_windows(request: Request, windows: Windows, cap: Option<u32>) -> Self {
        let pairs = request.scalars * windows.count();
        let usual = match windows.buckets() {
            buckets if buckets >= ENOUGH_SEGMENTS => MAX_LENGTH,
            _ => (pairs / ENOUGH_SEGMENTS).clamp(8, MAX_LENGTH as usize) as u32,
        };
        // A power of two, so that it can be halved; about twelve points to a segment if half of the bits are ones.
        let dealt = if request.bits == 0 { 0 } else { 1 << (request.bits / 24).max(1).ilog2() };
        let sources = windows.sets().scan(0, |used, (len, _)| Some(std::mem::replace(used, *used + len)));
        let sets: Vec<Set> =
            sources.zip(windows.sets()).map(|(source, (len, shift))| Set { source, len, shift, base: shift }).collect();
        let used = windows.buckets();
        let runs = match dealt {
            0 => vec![],
            _ => vec![Run { source: used as u32, len: dealt as u32, weight: Weight { factor: 1, shift: 0 } }],
        };
        let part_buckets = used + dealt;
        let used = part_buckets + if request.streamed { windows.buckets() } else { 0 };
        let reduction = Reduction::plan(sets, runs, used as u32);
        Self { request, windows, cap: cap.unwrap_or(usual), dealt, part_buckets, reduction }
    }

    /// (Bucket, point) pairs of a call.
    pub fn pairs(&self) -> usize {
        self.request.scalars * self.windows.count()
    }

    /// The most segments that the buckets are cut into.
    pub fn max_segments(&self) -> usize {
        self.windows.buckets() + self.pairs() / self.cap as usize
    }

    /// Segments of each lane of the accumulation kernel.
    pub fn per_lane(&self, segments: usize) -> usize {
        segments.div_ceil(32 * self.warps()).max(1)
    }

    /// Warps of the accumulation kernel.
    pub fn warps(&self) -> usize {
        self.request.sms * ACCUMULATE_BLOCKS * ACCUMULATE_WARPS
    }

    /// Seconds that a call takes an H200, by the cost model.
    pub fn seconds(&self) -> f64 {
        cost(self.request.scalars, &self.windows)
    }

    fn scratch(&self, segments: usize) -> usize {
        self.per_lane(segments) * self.warps() * 32 * SCRATCH
    }

    /// Adds the buffers to a layout.
    pub fn workspace(&self, layout: &mut Layout) -> Workspace {
        let (pairs, buckets, point) = (self.pairs(), self.windows.buckets(), self.request.point_bytes);
        let segments = self.max_segments();
        let steps = self.reduction.steps.iter().map(|step| step.segments as usize).max().unwrap_or(0);
        let widest = segments.max(steps).max(self.dealt).max(buckets);
        let bit_words = self.request.bits.div_ceil(32).max(self.request.points.div_ceil(32));
        let sorted = [layout.add(pairs), layout.add(pairs)];
        let lists = [layout.add(self.request.bits), layout.add(self.request.scalars), layout.add(self.request.scalars)];
        let status = layout.add(pairs.max(segments).div_ceil(SORT_TILE) * 256);
        let bounds = [(); 3].map(|()| layout.add(buckets + 1));
        let tiles = [(); 3].map(|()| layout.add(buckets.max(bit_words).div_ceil(SCAN_TILE)));
        let (counts, dealt_lengths, words) = (layout.add(4 * 256), layout.add(256), layout.add(8));
        let pool = layout.add(self.reduction.pool as usize * point);
        let sums = layout.add(self.reduction.groups.len() * 2 * point);

        let mut sorting = layout.clone();
        let unsorted = [sorting.add(pairs), sorting.add(pairs)];
        let mut adding = layout.clone();
        let segment_arrays = [(); 5].map(|()| adding.add(segments));
        let starts = adding.add(widest);
        let scratch = adding.add(if point == 96 { self.scratch(widest) } else { 0 });
        let second = buckets + segments / MAX_LENGTH as usize;
        let parts = [adding.add(segments * point), adding.add(second * point)];
        *layout = sorting.overlay(adding);
        Workspace {
            sorted,
            unsorted,
            segments: segment_arrays,
            starts,
            scratch,
            parts,
            bounds,
            tiles,
            lists,
            status,
            counts,
            dealt_lengths,
            words,
            pool,
            sums,
        }
    }

    /// Bytes of the workspace.
    pub fn workspace_bytes(&self) -> usize {
        let mut layout = Layout::new();
        self.workspace(&mut layout);
        layout.bytes()
    }
}

/// Seconds on an H200, to choose between windows: rates as measured there.
fn cost(scalars: usize, windows: &Windows) -> f64 {
    let pairs = (scalars * windows.count()) as f64;
    let buckets = windows.buckets() as f64;
    let sort = pairs * [0.0, 9e-12, 15e-12, 21e-12, 27e-12][windows.passes() as usize];
    let digits = scalars as f64 * 33e-12 + pairs * 2.8e-12;
    // Cut buckets cost their parts' sums once more, and few segments leave lanes without work.
    let parts = (ENOUGH_SEGMENTS as f64 - buckets).max(0.0).min(pairs / 8.0);
    let additions = pairs - buckets.min(pairs) + 2.0 * buckets + 2.0 * parts;
    // Each reduction step waits for a few reciprocals one after the other.
    let steps = (windows.buckets() as f64 / f64::from(1 << 15)).log2().max(0.0) / 3.0;
    sort + digits + additions / 3.8e9 + steps * 0.4e-3
}

/// A lower bound of the workspace, cheap enough for every candidate.
fn workspace_estimate(request: &Request, windows: &Windows) -> usize {
    request.scalars * windows.count() * 16 + windows.buckets() * request.point_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(log: u32, tables: usize) -> Request {
        Request {
            points: 1 << log,
            scalars: 1 << log,
            bits: 0,
            streamed: false,
            tables,
            workspace: usize::MAX,
            point_bytes: 96,
            sms: 132,
        }
    }

    #[test]
    fn shapes_of_the_study_are_chosen() {
        let shape =
            |log, tables| Plan::choose(request(log, tables)).map(|plan| (plan.windows.count(), plan.windows.tables()));
        assert_eq!(shape(26, 4), Some((11, 4)));
        assert_eq!(shape(27, 4), Some((11, 4)));
        assert!(matches!(shape(26, 1), Some((11..=12, 1))));
        assert!(matches!(shape(22, 13), Some((12..=14, 12..=13))), "{:?}", shape(22, 13));
    }

    #[test]
    fn memory_is_a_constraint() {
        let free = Plan::choose(request(22, 4)).expect("fits any memory");
        let bytes = free.workspace_bytes();
        let tight = Request { workspace: bytes - 1, ..request(22, 4) };
        let plan = Plan::choose(tight);
        assert!(plan.is_none_or(|plan| plan.workspace_bytes() < bytes));
        assert_eq!(Plan::choose(Request { workspace: 1 << 20, ..request(22, 4) }), None);
        // 2^27 points on 4 tables: the figure of the study is 84 GB with 51.5 GB of tables and 4.3 GB of scalars.
        let large = Plan::choose(request(27, 4)).expect("fits any memory").workspace_bytes() as f64 / 1e9;
        assert!((25.0..32.0).contains(&large), "{large}");
    }

    #[test]
    fn entries_of_tables_stay_below_the_sign_bit() {
        let plan = Plan::choose(request(27, 16)).expect("fits any memory");
        assert!(plan.windows.tables() << 27 <= MAX_ENTRIES);
    }
}
