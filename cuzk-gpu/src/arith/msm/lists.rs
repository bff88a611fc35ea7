//! Lists of points to be summed: what they are, their order, and the cutting of long ones.

use std::ops::Range;

use super::Engine;
use crate::arith::curve::Curve;
use crate::arith::memory::huge_filled;

/// Sign flag of an entry: add the negative of the point. The other bits are a row number.
pub const NEGATIVE: u32 = 1 << 31;

/// Shortest list that may be cut: 32 vectors of one lane's work in round 1.
pub const PIECE: u32 = 256;

/// A list of points: a range of the entry array, and where the sum goes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First entry.
    pub start: u32,
    /// Number of entries, not 0.
    pub len: u32,
    /// Index of the result.
    pub result: u32,
}

/// Results: rows with a flag. A row is meaningless where its flag says that the sum is the identity.
pub struct Sums<R> {
    /// Affine sums.
    pub rows: Vec<R>,
    /// Is the sum the identity? Results of no list are.
    pub identity: Vec<bool>,
}

impl<R: Clone + Default> Sums<R> {
    /// `n` identities.
    pub fn identities(n: usize) -> Self {
        Self { rows: huge_filled(n, R::default()), identity: vec![true; n] }
    }
}

/// Sums every list into its place in `sums`. `lists` in any order; those longer than `piece` are cut into pieces, which
/// are lists of their own, and the sums of the pieces are summed again. (One much longer than the rest would be the work of one
/// thread and, with eight lanes, run alone in its lane.)
///
/// # Safety
/// That of [`Engine::sum_ordered`].
pub unsafe fn sum_lists<C: Curve, E: Engine<C>>(
    table: &[E::Row],
    entries: &[u32],
    lists: &[Segment],
    piece: u32,
    sums: &mut Sums<E::Row>,
) {
    let (whole, long): (Vec<Segment>, Vec<Segment>) = lists.iter().copied().partition(|s| s.len <= piece);
    // SAFETY: the caller's.
    unsafe { E::sum_ordered(table, entries, &by_length(whole), sums) };
    if long.is_empty() {
        return;
    }
    let (mut pieces, mut lists_of_pieces) = (Vec::new(), Vec::new());
    for list in &long {
        let first = pieces.len() as u32;
        pieces.extend((0..list.len.div_ceil(piece)).map(|k| Segment {
            start: list.start + k * piece,
            len: piece.min(list.len - k * piece),
            result: first + k,
        }));
        lists_of_pieces.push(Segment { start: first, len: pieces.len() as u32 - first, result: list.result });
    }
    let mut partial = Sums::identities(pieces.len());
    // SAFETY: pieces are parts of the caller's lists.
    unsafe { E::sum_ordered(table, entries, &by_length(pieces), &mut partial) };
    let (entries, lists) = without_identities(&partial, &lists_of_pieces);
    // SAFETY: entries are the rows of `partial` that are points.
    unsafe { sum_lists::<C, E>(&partial.rows, &entries, &lists, piece, sums) };
}

/// Turns lists of consecutive rows of `sums` into entries and lists that leave out the identities.
pub fn without_identities<R>(sums: &Sums<R>, lists: &[Segment]) -> (Vec<u32>, Vec<Segment>) {
    let mut entries = Vec::new();
    let mut kept = Vec::new();
    for list in lists {
        let start = entries.len() as u32;
        entries.extend((list.start..list.start + list.len).filter(|&i| !sums.identity[i as usize]));
        let len = entries.len() as u32 - start;
        if len > 0 {
            kept.push(Segment { start, len, result: list.result });
        }
    }
    (entries, kept)
}

/// Longest first, by counting.
pub fn by_length(lists: Vec<Segment>) -> Vec<Segment> {
    let Some(longest) = lists.iter().map(|s| s.len).max() else { return lists };
    // next[k]: where the next list of length longest - k goes
    let mut next = vec![0u32; longest as usize + 2];
    for list in &lists {
        next[(longest - list.len) as usize + 1] += 1;
    }
    for k in 1..next.len() {
        next[k] += next[k - 1];
    }
    let mut ordered = lists.clone();
    for list in &lists {
        let place = &mut next[(longest - list.len) as usize];
        ordered[*place as usize] = *list;
        *place += 1;
    }
    ordered
}

/// Ranges of lists as units of parallel work: whole groups of `group` lists (the last may be smaller), about `entries`
/// entries each, counted as if all lists of a group were as long as the longest; fewer where that would leave threads idle.
pub fn cut_into_chunks(ordered: &[Segment], group: usize, entries: usize) -> Vec<Range<usize>> {
    debug_assert!(ordered.iter().all(|s| s.len > 0));
    let total: usize = ordered.iter().map(|s| s.len as usize).sum();
    let chunk = entries.min(total.div_ceil(rayon::current_num_threads())).max(1 << 10);
    let mut chunks = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (g, lists) in ordered.chunks(group).enumerate() {
        size += group * lists.iter().map(|s| s.len).max().unwrap_or(0) as usize;
        if size >= chunk || group * (g + 1) >= ordered.len() {
            let end = ordered.len().min(group * (g + 1));
            chunks.push(start..end);
            (start, size) = (end, 0);
        }
    }
    chunks
}
