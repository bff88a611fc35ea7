//! Batched affine addition, eight independent additions per vector, one field inversion per batch.
//!
//! For P1 + P2 = P3 with l = (y2 - y1) / (x2 - x1): x3 = l^2 - x1 - x2, y3 = l (x1 - x3) - y1. All the denominators of a
//! batch are inverted together (Montgomery's trick, in two chains so that two products are always in flight): 5 products
//! and 1 square per addition, and one inversion of about 2 us for up to 8 * [`BATCH`] additions.
//!
//! Exceptions cost nothing until they happen: an operand that is the identity is known beforehand by a mask; equal or
//! opposite points make the product of all denominators zero, and only then are the lanes looked at one by one.

use std::ops::Range;

use super::point_field::PointField;

/// Most vector additions in one batch: 1024 additions make the inversion 2 ns per addition. The rows of this batch and of
/// the next one (half a MiB in G1), the blocks of a chunk, denominators and prefixes share the second-level cache.
pub const BATCH: usize = 128;

/// Vector additions that go through the second pass together.
const GROUP: usize = 4;

/// A list of vector additions: where the operands are, and where results go.
///
/// # Safety
/// Operands are normalised and below 2.01p in all lanes, also in lanes that are flagged as identity (any such value
/// will do there). No addition of one batch reads what another one of the same batch stores.
pub unsafe trait Additions<F> {
    /// Number of vector additions.
    fn count(&self) -> usize;
    /// Lanes in which the first and the second operand is the identity.
    fn identities(&self, v: usize) -> (u8, u8);
    /// Both x coordinates of addition `v`.
    unsafe fn x(&self, v: usize) -> (F, F);
    /// The first of them.
    unsafe fn x1(&self, v: usize) -> F;
    /// Both y coordinates, which may be raw and in -2.01p..2.01p (a sign applied to a limb vector).
    unsafe fn y(&self, v: usize) -> (F, F);
    /// Asks for one of the 16 rows of an addition, both coordinates, into the second-level cache. `v` past the end is
    /// allowed, and ignored.
    unsafe fn prefetch_row(&self, _v: usize, _row: usize) {}
    /// Asks for a quarter of the lines of x, into the first-level cache. `v` past the end is allowed, and ignored.
    unsafe fn prefetch_x(&self, _v: usize, _quarter: usize) {}
    /// Asks for a quarter of the lines of y, into the first-level cache. `v` is in range.
    unsafe fn prefetch_y(&self, _v: usize, _quarter: usize) {}
    /// Takes the sum: normalised, below 2.01p; `identity` flags the lanes in which it is the identity.
    unsafe fn store(&mut self, v: usize, x: F, y: F, identity: u8);
}

/// Lanes of one vector addition that need more than the plain formula.
#[derive(Clone, Copy, Default)]
struct Exception {
    /// P1 = P2: the slope is 3 x1^2 / 2 y1.
    double: u8,
    /// P1 = -P2: the sum is the identity.
    cancel: u8,
}

/// One vector addition on its way through the second pass. `t` is what the next product needs, or the last one gave.
#[derive(Clone, Copy)]
struct Step<F> {
    slope: F,
    t: F,
    y1: F,
    x3: F,
}

/// Scratch of one thread.
pub struct Batch<F> {
    /// Denominators x2 - x1 (1 where there is nothing to add).
    denominators: Vec<F>,
    /// `prefixes[v + 2]` = `prefixes[v]` times denominator v; `prefixes[0..2]` = 1.
    prefixes: Vec<F>,
    /// Looked at only in batches that had a zero denominator.
    exceptions: Vec<Exception>,
    steps: [Step<F>; GROUP],
}

impl<F: PointField> Batch<F> {
    /// Empty scratch for [`BATCH`] vectors.
    ///
    /// # Safety
    /// The machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn new() -> Self {
        // SAFETY: features as above.
        let one = unsafe { F::one() };
        Self {
            denominators: vec![one; BATCH],
            prefixes: vec![one; BATCH + 2],
            exceptions: vec![Exception::default(); BATCH],
            steps: [Step { slope: one, t: one, y1: one, x3: one }; GROUP],
        }
    }

    /// Does all the additions of a list, batch by batch.
    ///
    /// # Safety
    /// The machine has the AVX-512 features; the list keeps its contract.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn run(&mut self, list: &mut impl Additions<F>) {
        let mut start = 0;
        while start < list.count() {
            let n = BATCH.min(list.count() - start);
            // SAFETY: start..start + n is in range.
            unsafe { self.run_batch(list, start, n) };
            start += n;
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn run_batch(&mut self, list: &mut impl Additions<F>, start: usize, n: usize) {
        let (dx, prefixes) = (self.denominators.as_mut_ptr(), self.prefixes.as_mut_ptr());
        // SAFETY: v < n <= BATCH is in range of the scratch, start + v in range of the list; ranges are given per line.
        unsafe {
            for v in 0..n {
                for quarter in 0..4 {
                    list.prefetch_x(start + v + 3, quarter);
                }
                let (x1, x2) = list.x(start + v);
                let (identity_1, identity_2) = list.identities(start + v);
                let mut d = x2.sub_raw(x1).plus::<4>().norm(); // (1.9p, 6.1p)
                if identity_1 | identity_2 != 0 {
                    d = d.blend(identity_1 | identity_2, F::one());
                }
                *dx.add(v) = d;
                F::mul::<true>(prefixes.add(v + 2), prefixes.add(v), dx.add(v));
            }
            let (inverse, exceptional) = match self.product(n).invert() {
                Some(inverse) => (inverse, false),
                None => {
                    self.treat_exceptions(list, start, n);
                    (self.product(n).invert().expect("denominators of exceptional lanes were replaced"), true)
                }
            };
            // The chains end in prefixes n and n + 1; the inverse of one is that of the product times the other.
            let mut chains = [inverse; 2];
            let last = n & 1; // chain of prefix n
            F::mul::<true>(&raw mut chains[last], &inverse, prefixes.add(n + 1));
            F::mul::<true>(&raw mut chains[last ^ 1], &inverse, prefixes.add(n));
            // From the last vector to the first, a few at a time: what follows for one vector is a chain of four products,
            // and the processor can look less than two products ahead.
            let mut end = n;
            while end > 0 {
                let begin = (end - 1) / GROUP * GROUP;
                self.finish_group(list, start, begin..end, n, &mut chains, exceptional);
                end = begin;
            }
        }
    }

    /// Second pass over vectors `group` of a batch of `n`: the sums. `chains` are the inverses of prefixes
    /// `group.end + 1` and `group.end`, at the index of the chain, and become those of `group.start + 1` and
    /// `group.start`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn finish_group<L: Additions<F>>(
        &mut self,
        list: &mut L,
        start: usize,
        group: Range<usize>,
        n: usize,
        chains: &mut [F; 2],
        exceptional: bool,
    ) {
        let (dx, prefixes) = (self.denominators.as_ptr(), self.prefixes.as_ptr());
        let steps = self.steps.as_mut_ptr();
        // Memory for the first pass of the next batch, and for the next group of this one. Spread over the stages: all at
        // once would fill the line buffers and stall.
        let prefetch = |list: &L, stage: usize, v: usize| {
            // SAFETY: v - GROUP is in range; rows past the end are ignored.
            unsafe {
                for row in 4 * stage..4 * (stage + 1) {
                    list.prefetch_row(start + n + (n - 1 - v), row);
                }
                if v >= GROUP {
                    list.prefetch_y(start + v - GROUP, stage);
                }
            }
        };
        // SAFETY: as in `run_batch`; a group has at most GROUP vectors.
        unsafe {
            for v in group.clone().rev() {
                let step = steps.add(v - group.start);
                let chain = &raw mut chains[v & 1];
                prefetch(list, 0, v);
                F::mul::<true>(&raw mut (*step).slope, chain, prefixes.add(v));
                F::mul::<true>(chain, chain, dx.add(v));
            }
            for v in group.clone() {
                let step = &mut *steps.add(v - group.start);
                prefetch(list, 1, v);
                let (y1, y2) = list.y(start + v);
                step.y1 = y1;
                step.t = y2.sub_raw(y1).plus::<8>().norm(); // (3.9p, 12.1p)
                if exceptional && self.exceptions[v].double != 0 {
                    step.t = step.t.blend(self.exceptions[v].double, three_squares(&list.x(start + v).0));
                }
                let slope = &raw mut step.slope;
                F::mul::<true>(slope, slope, &step.t);
            }
            for i in 0..group.len() {
                prefetch(list, 2, group.start + i);
                let step = &mut *steps.add(i);
                F::sqr::<false>(&mut step.t, &step.slope);
            }
            for v in group.clone() {
                let step = &mut *steps.add(v - group.start);
                prefetch(list, 3, v);
                let x1 = list.x1(start + v);
                let (identity_1, identity_2) = list.identities(start + v);
                let any = identity_1 | identity_2;
                // l^2 - x1 - x2 + 6p in (1.9p, 8.1p), as is x + 6p: to 4.01p, to 2.01p. 4p in place of 6p would not do:
                // x1 + x2 may exceed 4p. Where dx is still x2 - x1 + 4p, it saves loading x2.
                let x3 = if any != 0 || exceptional {
                    let x2 = list.x(start + v).1;
                    let x3 = step.t.sub_raw(x1).sub_raw(x2);
                    x3.blend(any, x1.blend(identity_1, x2)).plus::<6>()
                } else {
                    step.t.sub_raw(*dx.add(v)).sub_raw(x1).sub_raw(x1).plus::<10>()
                };
                step.x3 = x3.cut::<4>().cut::<2>().norm();
                step.t = x1.sub_raw(step.x3).plus::<4>().norm(); // (1.9p, 6.1p)
                let t = &raw mut step.t;
                F::mul::<false>(t, &step.slope, t);
            }
            for v in group.clone() {
                let step = &*steps.add(v - group.start);
                let (identity_1, identity_2) = list.identities(start + v);
                let any = identity_1 | identity_2;
                let mut y3 = step.t.sub_raw(step.y1);
                if any != 0 {
                    y3 = y3.blend(any, step.y1.blend(identity_1, list.y(start + v).1));
                }
                // in (1.9p, 8.1p) with y1 of either sign
                let y3 = y3.plus::<4>().cut::<4>().cut::<2>().norm();
                let cancel = if exceptional { self.exceptions[v].cancel } else { 0 };
                list.store(start + v, step.x3, y3, (identity_1 & identity_2) | cancel);
            }
        }
    }

    /// The product of all `n` denominators, from the ends of the two chains.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn product(&self, n: usize) -> F {
        let mut product = self.prefixes[n];
        // SAFETY: references are valid pointers.
        unsafe { F::mul::<true>(&mut product, &self.prefixes[n], &self.prefixes[n + 1]) };
        product
    }

    /// Replaces zero denominators (2 y1 for a doubling, 1 for a cancellation) and computes the prefixes again.
    ///
    /// 2 y1 is never zero: the curve groups have odd order.
    #[cold]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    unsafe fn treat_exceptions(&mut self, list: &impl Additions<F>, start: usize, n: usize) {
        // SAFETY: indices as in `run_batch`.
        unsafe {
            for v in 0..n {
                let mut d = self.denominators[v];
                let zero = d.zero_lanes();
                self.exceptions[v] = Exception::default();
                if zero != 0 {
                    let (y1, y2) = list.y(start + v);
                    let equal = zero & y2.sub_raw(y1).plus::<6>().cut::<4>().zero_lanes();
                    let twice = y1.add_raw(y1).plus::<6>().cut::<4>().norm(); // (1.9p, 6.1p)
                    d = d.blend(zero, F::one()).blend(equal, twice);
                    self.exceptions[v] = Exception { double: equal, cancel: zero & !equal };
                    self.denominators[v] = d;
                }
                F::mul::<true>(&mut self.prefixes[v + 2], &raw const self.prefixes[v], &d);
            }
        }
    }
}

/// 3 x^2, normalised, below 6.1p.
#[cold]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn three_squares<F: PointField>(x: &F) -> F {
    // SAFETY: `x` is normalised and below 2.01p.
    unsafe {
        let mut square = *x;
        F::sqr::<true>(&mut square, x);
        square.add_raw(square).add_raw(square).norm()
    }
}
