//! Batched affine addition, eight independent additions per vector, one field inversion per batch.
//!
//! For P1 + P2 = P3 with l = (y2 - y1) / (x2 - x1): x3 = l^2 - x1 - x2, y3 = l (x1 - x3) - y1. All the denominators of a
//! batch are inverted together (Montgomery's trick, in two chains so that two products are always in flight): 5 products
//! and 1 square per addition, and one inversion of about 2 us for up to 8 * [`BATCH`] additions.
//!
//! Exceptions cost nothing until they happen: an operand that is the identity is known beforehand by a mask; equal or
//! opposite points make the product of all denominators zero, and only then are the lanes looked at one by one.

use super::point_field::PointField;

/// Most vector additions in one batch: 2048 additions make the inversion 1 ns per addition, and the scratch (48 KiB of
/// prefixes and denominators per 64 vectors) stays in the second-level cache.
pub const BATCH: usize = 256;

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
    /// Both y coordinates, which may be raw and in -2.01p..2.01p (a sign applied to a limb vector).
    unsafe fn y(&self, v: usize) -> (F, F);
    /// Asks for a quarter of the lines of x, into the second-level cache, or (`NEAR`) the first. Indices past the end are
    /// allowed, and ignored.
    unsafe fn prefetch_x<const NEAR: bool>(&self, _v: usize, _quarter: usize) {}
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

/// Scratch of one thread.
pub struct Batch<F> {
    /// Denominators x2 - x1 (1 where there is nothing to add).
    denominators: Vec<F>,
    /// `prefixes[v + 2]` = `prefixes[v]` times denominator v; `prefixes[0..2]` = 1.
    prefixes: Vec<F>,
    /// Looked at only in batches that had a zero denominator.
    exceptions: Vec<Exception>,
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
                    list.prefetch_x::<true>(start + v + 3, quarter);
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
            let mut slope = inverse;
            for v in (0..n).rev() {
                // Memory for the next batch's first pass, and for this pass a little later. Spread between the products:
                // all at once would fill the line buffers and stall (a sixth of the whole time, when measured).
                let prefetch = |quarter| {
                    list.prefetch_x::<false>(start + n + (n - 1 - v), quarter);
                    if v >= 2 {
                        list.prefetch_y(start + v - 2, quarter);
                    }
                };
                prefetch(0);
                let chain = &raw mut chains[v & 1];
                let exception = if exceptional { self.exceptions[v] } else { Exception::default() };
                F::mul::<true>(&mut slope, chain, prefixes.add(v));
                prefetch(1);
                F::mul::<true>(chain, chain, dx.add(v));
                prefetch(2);
                let (x1, x2) = list.x(start + v);
                let (y1, y2) = list.y(start + v);
                let mut t = y2.sub_raw(y1).plus::<8>().norm(); // (3.9p, 12.1p)
                if exception.double != 0 {
                    t = t.blend(exception.double, three_squares(&x1));
                }
                F::mul::<true>(&mut slope, &slope, &t);
                prefetch(3);
                F::sqr::<false>(&mut t, &slope);
                let mut x3 = t.sub_raw(x1).sub_raw(x2);
                let (identity_1, identity_2) = list.identities(start + v);
                let any = identity_1 | identity_2;
                if any != 0 {
                    x3 = x3.blend(any, x1.blend(identity_1, x2));
                }
                // l^2 - x1 - x2 + 6p in (1.9p, 8.1p), as is x + 6p: to 4.01p, to 2.01p. 4p in place of 6p would not do:
                // x1 + x2 may exceed 4p.
                let x3 = x3.plus::<6>().cut::<4>().cut::<2>().norm();
                t = x1.sub_raw(x3).plus::<4>().norm(); // (1.9p, 6.1p)
                F::mul::<false>(&mut t, &slope, &t);
                let mut y3 = t.sub_raw(y1);
                if any != 0 {
                    y3 = y3.blend(any, y1.blend(identity_1, y2));
                }
                // in (1.9p, 8.1p) with y1 of either sign
                let y3 = y3.plus::<4>().cut::<4>().cut::<2>().norm();
                list.store(start + v, x3, y3, (identity_1 & identity_2) | exception.cancel);
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
