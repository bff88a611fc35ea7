//! What a multi-scalar multiplication does and needs: windows, caps, buffers. Pure; a runner follows it.

use super::{
    reduction::{Reduction, Run, Set, Weight},
    windows::Windows,
    workspace::{MAX_QUERIES, Workspace},
};
use crate::cuda::arena::Layout;

/// The longest segment that the kernels take (`MSM_MAX_LENGTH`).
pub const MAX_LENGTH: u32 = 255;
/// The longest segment where values repeat, as in a witness: the additions of a segment follow each other, 0.04 ms each, and
/// thousands of equal values make one long bucket.
const REPEATED_LENGTH: u32 = 32;
/// Points that tables may hold in all: an entry's number has 31 bits, and the last one stands for none.
pub const MAX_ENTRIES: usize = (1 << 31) - 1;
/// Segments that keep every lane busy with enough additions for a reciprocal: about 70 a lane of an H200.
const ENOUGH_SEGMENTS: usize = 2_400_000;
/// Dealt segments whose sums are few enough for groups.
const CHEAP_SEGMENTS: usize = 1 << 18;
/// Pairs of a tile of the sort (`SORT_TILE`).
pub const SORT_TILE: usize = 8192;
/// Buckets of a tile of the scan of segments, words of a tile of the selection (`SCAN_TILE`, `SELECT_TILE`).
pub const SCAN_TILE: usize = 2048;
/// Blocks of the accumulation kernel on a multiprocessor, and its warps a block.
pub const ACCUMULATE_BLOCKS: usize = 2;
/// Warps of a block of it.
pub const ACCUMULATE_WARPS: usize = 4;

/// How large a query can be: a base, and what it is multiplied by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Points of the base.
    pub points: usize,
    /// The most full scalars of a call, public inputs among them.
    pub scalars: usize,
    /// The most variables of a call whose bits select points; 0 if none.
    pub bits: usize,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The sums that a call makes: each from a base of its own, all by the same witness.
    pub queries: Vec<Size>,
    /// The most tables of multiples that the device has room for (1: the points alone).
    pub tables: usize,
    /// Whether a call's points may come in several parts, each of at most as many points, scalars and bits as said.
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
    /// Windows, tables, sets; the same for every query.
    pub windows: Windows,
    /// Longest segment; longer buckets are cut.
    pub cap: u32,
    /// The same for parts of buckets that were cut.
    pub part_cap: u32,
    /// For each query, segments that the bits' points are dealt to, a power of two; 0 if there are no bits.
    pub dealt: Vec<usize>,
    /// Where in the pool the sums of a part are, as many as that, before they are added to those of the parts before:
    /// buckets, and dealt segments.
    pub part_buckets: usize,
    /// From buckets and dealt segments to the sums.
    pub reduction: Reduction,
}

impl Plan {
    /// The fastest plan by the cost model that fits: `None` if none does.
    pub fn choose(request: Request) -> Option<Self> {
        let points: usize = request.queries.iter().map(|size| size.points).sum();
        let tables = (1..=request.tables).filter(|t| t * points <= MAX_ENTRIES);
        let all = tables.flat_map(|tables| (10..=super::windows::MAX_WINDOWS).map(move |count| (count, tables)));
        all.filter_map(|(count, tables)| Windows::balanced(count, tables))
            .map(|windows| (cost(&request, &windows), windows))
            .filter(|(_, windows)| workspace_estimate(&request, windows) <= request.workspace)
            .min_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, windows)| Self::with_windows(request, windows, None))
            .filter(|plan| plan.workspace_bytes() <= plan.request.workspace)
    }

    /// The plan with these windows, and a cap if the usual one is not wanted.
    ///
    /// # Panics
    /// If there are no queries, or more than [`MAX_QUERIES`].
    pub fn with_windows(request: Request, windows: Windows, cap: Option<u32>) -> Self {
        let queries = request.queries.len();
        assert!((1..=MAX_QUERIES).contains(&queries), "{queries} queries in a call");
        let pairs = scalars(&request) * windows.count();
        let repeats = request.queries.iter().any(|size| size.bits > 0);
        let longest = if repeats { REPEATED_LENGTH } else { MAX_LENGTH };
        let usual = match queries * windows.buckets() {
            buckets if buckets >= ENOUGH_SEGMENTS => longest,
            _ => (pairs / ENOUGH_SEGMENTS).clamp(8, longest as usize) as u32,
        };
        let dealt: Vec<usize> = request.queries.iter().map(dealt).collect();
        let mut used = 0;
        let mut take = |len: u32| {
            used += len;
            used - len
        };
        let (mut sets, mut runs) = (Vec::new(), Vec::new());
        // Without full scalars there are no buckets.
        for query in 0..if pairs > 0 { queries } else { 0 } {
            sets.extend(windows.sets().map(|(len, shift)| Set { query, source: take(len), len, shift, base: shift }));
        }
        for (query, &dealt) in dealt.iter().enumerate().filter(|(_, dealt)| **dealt > 0) {
            let weight = Weight { factor: 1, shift: 0 };
            runs.push(Run { query, source: take(dealt as u32), len: dealt as u32, weight });
        }
        let part_buckets = used as usize;
        let used = if request.streamed { 2 * used } else { used };
        let reduction = Reduction::plan(sets, runs, used);
        Self { request, windows, cap: cap.unwrap_or(usual), part_cap: longest, dealt, part_buckets, reduction }
    }

    /// The most (bucket, point) pairs of a call.
    pub fn pairs(&self) -> usize {
        scalars(&self.request) * self.windows.count()
    }

    /// Buckets of all queries; none without full scalars.
    pub fn buckets(&self) -> usize {
        if self.pairs() > 0 { self.request.queries.len() * self.windows.buckets() } else { 0 }
    }

    /// Passes of the sort over all keys.
    pub fn passes(&self) -> u32 {
        passes(self.buckets())
    }

    /// The most segments that a level has: the buckets are cut, then the parts of each bucket.
    pub fn max_segments(&self, level: usize) -> usize {
        let parts = self.pairs() / self.cap as usize;
        self.buckets() + if level == 0 { parts } else { parts / self.part_cap as usize }
    }

    /// Levels that parts of buckets may need to become sums of buckets: on the last one no bucket is longer than the cap,
    /// whatever the scalars are.
    pub fn levels(&self) -> usize {
        let most = self.request.queries.iter().map(|size| size.scalars).max().unwrap_or(0);
        // All windows of a set may have the same digit.
        let mut longest = most * self.windows.tables();
        let mut cap = self.cap as usize;
        let mut levels = 1;
        while longest > cap {
            longest = longest.div_ceil(cap);
            cap = self.part_cap as usize;
            levels += 1;
        }
        levels
    }

    /// Seconds that a call takes an H200, by the cost model. Bits are not counted.
    pub fn seconds(&self) -> f64 {
        cost(&self.request, &self.windows)
    }

    /// Seconds that it takes an H200 to have the scalars and bits of a call come in one part more, by the cost model: a part
    /// has buckets and dealt segments of its own, which are added to those before.
    pub fn part_seconds(&self) -> f64 {
        3.0 * self.part_buckets as f64 / 3.8e9 + 1e-3
    }

    /// First place in the pool of a query's dealt segments.
    pub fn dealt_place(&self, query: usize) -> usize {
        self.buckets() + self.dealt[..query].iter().sum::<usize>()
    }

    /// Adds the buffers to a layout.
    pub fn workspace(&self, layout: &mut Layout) -> Workspace {
        Workspace::new(self, layout)
    }

    /// Bytes of the workspace.
    pub fn workspace_bytes(&self) -> usize {
        let mut layout = Layout::new();
        self.workspace(&mut layout);
        layout.bytes()
    }
}

fn scalars(request: &Request) -> usize {
    request.queries.iter().map(|size| size.scalars).sum()
}

/// Segments for a query's ones: a power of two, so that it can be halved; about twelve points to a segment if half of the
/// bits are ones. Few bits get shorter segments, so that a reciprocal serves more than a few: up to [`CHEAP_SEGMENTS`] they
/// are added up by groups, without a step.
fn dealt(size: &Size) -> usize {
    match size.bits.min(size.points) {
        0 => 0,
        bits => 1 << (bits / 24).max(CHEAP_SEGMENTS.min(bits / 8)).max(1).ilog2(),
    }
}

fn passes(buckets: usize) -> u32 {
    (usize::BITS - buckets.saturating_sub(1).leading_zeros()).div_ceil(8).max(1)
}

/// Seconds on an H200, to choose between windows: rates as measured there.
fn cost(request: &Request, windows: &Windows) -> f64 {
    let (scalars, buckets) = (scalars(request), request.queries.len() * windows.buckets());
    let pairs = (scalars * windows.count()) as f64;
    let sort = pairs * [0.0, 9e-12, 15e-12, 21e-12, 27e-12][passes(buckets) as usize];
    let digits = scalars as f64 * 33e-12 + pairs * 2.8e-12;
    // Cut buckets cost their parts' sums once more, and few segments leave lanes without work.
    let buckets = buckets as f64;
    let parts = (ENOUGH_SEGMENTS as f64 - buckets).max(0.0).min(pairs / 8.0);
    let additions = pairs - buckets.min(pairs) + 2.0 * buckets + 2.0 * parts;
    // Each reduction step waits for a few reciprocals one after the other.
    let steps = (windows.buckets() as f64 / f64::from(1 << 15)).log2().max(0.0) / 3.0;
    sort + digits + additions / 3.8e9 + steps * 0.4e-3
}

/// A lower bound of the workspace, cheap enough for every candidate.
fn workspace_estimate(request: &Request, windows: &Windows) -> usize {
    scalars(request) * windows.count() * 16 + request.queries.len() * windows.buckets() * request.point_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(log: u32, tables: usize) -> Request {
        Request {
            queries: vec![Size { points: 1 << log, scalars: 1 << log, bits: 0 }],
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
    fn equal_scalars_are_added_up_in_few_levels() {
        let levels = |log, tables| Plan::choose(request(log, tables)).map(|plan| plan.levels());
        assert_eq!(levels(2, 1), Some(1));
        // 2^27 points in one bucket: parts of 255, of these 255, and so on.
        assert_eq!(levels(27, 1), Some(4));
        assert!(levels(27, 16).is_some_and(|levels| levels <= super::super::workspace::MAX_LEVELS));
    }

    #[test]
    fn repeated_values_are_added_up_side_by_side() {
        let witness = |log: u32| Request {
            queries: vec![Size { points: 1 << log, scalars: 1 << (log - 5), bits: 1 << log }],
            ..request(log, 1)
        };
        for log in [12, 22, 27] {
            let plan = Plan::choose(witness(log)).expect("fits any memory");
            assert!(plan.cap <= REPEATED_LENGTH && plan.part_cap == REPEATED_LENGTH);
            assert!(plan.levels() <= super::super::workspace::MAX_LEVELS, "{}", plan.levels());
        }
    }

    #[test]
    fn entries_of_tables_stay_below_the_sign_bit() {
        let plan = Plan::choose(request(27, 16)).expect("fits any memory");
        assert!(plan.windows.tables() << 27 <= MAX_ENTRIES);
    }
}
