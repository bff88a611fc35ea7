//! Where a plan's buffers are in an arena. Pure.

use super::plan::{ACCUMULATE_BLOCKS, ACCUMULATE_WARPS, Plan, SCAN_TILE, SORT_TILE};
use crate::cuda::arena::{Layout, Region};

/// The most queries of a call (`MSM_MAX_QUERIES`).
pub const MAX_QUERIES: usize = 4;
/// The most levels on which parts of buckets are added up (`MSM_MAX_LEVELS`).
pub const MAX_LEVELS: usize = 8;
/// The most passes of the sort of pairs (`SORT_MAX_PASSES`).
pub const MAX_PASSES: usize = 4;
/// Words of `msm_state`.
pub const STATE_WORDS: usize = Word::LevelCut(MAX_LEVELS - 1).place() + 1;
// As `msm_state` asserts.
const _: () = assert!(STATE_WORDS == 49);
/// Bytes of scratch that a lane needs for a segment: accumulator, product, point number.
const SCRATCH: usize = 96 + 48 + 4;

/// Words of `msm_state`, by which kernels tell each other what the host does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// (Bucket, point) pairs.
    Pairs,
    /// Sums that nobody needs.
    Passed,
    /// Full scalars of a query.
    Listed(usize),
    /// Points of a query that count once.
    Ones(usize),
    /// The next tile of a pass of the sort; after those of the pairs' passes, those of the levels' segments.
    Ticket(usize),
    /// A level: the length of its longest bucket, then the two others.
    Level(usize),
    /// Segments of a level.
    LevelSegments(usize),
    /// Whether a level cuts buckets.
    LevelCut(usize),
}

/// The buffers.
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
    /// Of one query at a time: selected points (of bits), and points and values (of full scalars).
    pub lists: [Region<u32>; 3],
    /// Words of the sort's tiles.
    pub status: Region<u64>,
    /// Counts of digits: of the passes over the pairs, then of the levels' lengths.
    pub counts: Region<u32>,
    /// How many of the dealt segments are longer than each length.
    pub dealt_lengths: Region<u32>,
    /// `msm_state`: see [`Word`].
    pub state: Region<u32>,
    /// Buckets, dealt segments, and what the reduction adds.
    pub pool: Region<u8>,
    /// Sums of groups, XYZZ.
    pub sums: Region<u8>,
}

impl Word {
    /// Its number.
    pub const fn place(self) -> usize {
        let tickets = 2 + 2 * MAX_QUERIES;
        // The level before the first one takes the three words after the tickets.
        let levels = tickets + MAX_PASSES + MAX_LEVELS + 3;
        match self {
            Self::Pairs => 0,
            Self::Passed => 1,
            Self::Listed(query) => 2 + query,
            Self::Ones(query) => 2 + MAX_QUERIES + query,
            Self::Ticket(pass) => tickets + pass,
            Self::Level(level) => levels + 3 * level,
            Self::LevelSegments(level) => levels + 3 * level + 1,
            Self::LevelCut(level) => levels + 3 * level + 2,
        }
    }
}

impl Workspace {
    /// Adds a plan's buffers to a layout.
    pub(super) fn new(plan: &Plan, layout: &mut Layout) -> Self {
        let (request, pairs, buckets) = (&plan.request, plan.pairs(), plan.buckets());
        let point = request.point_bytes;
        let segments = plan.max_segments(0);
        let steps = plan.reduction.steps.iter().map(|step| step.segments as usize).max().unwrap_or(0);
        let dealt = plan.dealt.iter().copied().max().unwrap_or(0);
        let of_part = if request.streamed { plan.part_buckets } else { 0 };
        let widest = segments.max(steps).max(dealt).max(buckets).max(of_part);
        let most = |of: fn(&super::plan::Size) -> usize| request.queries.iter().map(of).max().unwrap_or(0);
        let (bits, scalars) = (most(|size| size.bits), most(|size| size.scalars));
        let bit_words = bits.div_ceil(32);
        let sorted = [layout.add(pairs), layout.add(pairs)];
        let scalar_lists = if bits > 0 { scalars } else { 0 };
        let lists =
            [layout.add(most(|size| size.bits.min(size.points))), layout.add(scalar_lists), layout.add(scalar_lists)];
        let status = layout.add(pairs.max(segments).div_ceil(SORT_TILE) * 256);
        let bounds = [(); 3].map(|()| layout.add(buckets + 1));
        let tiles = [(); 3].map(|()| layout.add(buckets.max(bit_words).div_ceil(SCAN_TILE)));
        let counts = layout.add((MAX_PASSES + MAX_LEVELS) * 256);
        let (dealt_lengths, state) = (layout.add(256), layout.add(STATE_WORDS));
        let pool = layout.add(plan.reduction.pool as usize * point);
        let sums = layout.add(plan.reduction.groups.len() * 2 * point);

        let mut sorting = layout.clone();
        let unsorted = [sorting.add(pairs), sorting.add(pairs)];
        let mut adding = layout.clone();
        let segment_arrays = [(); 5].map(|()| adding.add(segments));
        let starts = adding.add(widest);
        let scratch = adding.add(if point == 96 { scratch(plan, widest) } else { 0 });
        // No level cuts if no bucket can be so long.
        let first = if plan.levels() > 1 { segments } else { 0 };
        let second = if plan.levels() > 2 { plan.max_segments(1) } else { 0 };
        let parts = [adding.add(first * point), adding.add(second * point)];
        *layout = sorting.overlay(adding);
        Self {
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
            state,
            pool,
            sums,
        }
    }
}

/// Bytes for so many segments at once.
fn scratch(plan: &Plan, segments: usize) -> usize {
    let lanes = 32 * plan.request.sms * ACCUMULATE_BLOCKS * ACCUMULATE_WARPS;
    segments.div_ceil(lanes).max(1) * lanes * SCRATCH
}
