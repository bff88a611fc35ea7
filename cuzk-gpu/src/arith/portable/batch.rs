//! Batched affine addition: for P1 + P2 = P3 with l = (y2 - y1) / (x2 - x1): x3 = l^2 - x1 - x2, y3 = l (x1 - x3) - y1.
//!
//! All the denominators of a batch are inverted together (Montgomery's trick, in two chains, so that a product need not
//! wait for the one before): 5 products and 1 square per addition, and one inversion of about 3 us per batch.
//!
//! Exceptions cost next to nothing until they happen: a zero denominator, from equal or opposite points, makes the
//! product of all zero, and only then are they looked for.

use super::coordinate::{Coordinate, Point};

/// Most additions in one batch: the inversion is then below 2 ns per addition, and the scratch of G1 is 200 KiB.
const BATCH: usize = 2048;

/// What an addition needs other than the plain formula.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Different points, or an identity among them.
    Plain,
    /// P1 = P2: the slope is 3 x1^2 / 2 y1.
    Double,
    /// P1 = -P2: the sum is the identity.
    Cancel,
}

/// Scratch of one thread.
pub struct Batch<F> {
    /// x2 - x1, or 1 where there is nothing to add.
    denominators: Vec<F>,
    /// `prefixes[i + 2]` = `prefixes[i]` times denominator i; `prefixes[0..2]` = 1.
    prefixes: Vec<F>,
    /// Empty but for batches that had a zero denominator.
    cases: Vec<Case>,
}

impl<F: Coordinate> Batch<F> {
    /// Scratch for [`BATCH`] additions.
    pub fn new() -> Self {
        Self { denominators: Vec::with_capacity(BATCH), prefixes: vec![F::ONE; BATCH + 2], cases: Vec::new() }
    }

    /// `points[a] += points[b]` for every pair (a, b). No point that is written occurs in another pair.
    pub fn add(&mut self, points: &mut [Point<F>], pairs: &[(u32, u32)]) {
        self.load_and_add(points, pairs, |_, _| ());
    }

    /// [`Self::add`] of points that `load` puts into places a and b first, pair by pair: so products hide the latency of
    /// memory.
    pub fn load_and_add(
        &mut self,
        points: &mut [Point<F>],
        pairs: &[(u32, u32)],
        load: impl Fn(&mut [Point<F>], (u32, u32)),
    ) {
        for pairs in pairs.chunks(BATCH) {
            self.add_batch(points, pairs, &load);
        }
    }

    fn add_batch(&mut self, points: &mut [Point<F>], pairs: &[(u32, u32)], load: impl Fn(&mut [Point<F>], (u32, u32))) {
        self.clear();
        for &(a, b) in pairs {
            load(points, (a, b));
            let (p1, p2) = (&points[a as usize], &points[b as usize]);
            self.push(if p1.is_identity() || p2.is_identity() { F::ONE } else { F::sub(&p2.x, &p1.x) });
        }
        if self.product().is_zero() {
            self.treat_exceptions(points, pairs);
        }
        let inverse = self.product().invert();
        // From here on, prefix i + 2 is the inverse of what it was. The chains end in the last two, and the inverse of one
        // is that of the product times the other.
        let n = pairs.len();
        let last = [n + 1, n].map(|other| F::mul(&inverse, &self.prefixes[other]));
        self.prefixes[n..n + 2].copy_from_slice(&last);
        for (i, &(a, b)) in pairs.iter().enumerate().rev() {
            let (lower, upper) = self.prefixes.split_at_mut(i + 2);
            let inverse = F::mul(&upper[0], &lower[i]);
            F::mul_to(&mut lower[i], &upper[0], &self.denominators[i]);
            let (p1, p2) = (points[a as usize], points[b as usize]);
            let case = self.cases.get(i).copied().unwrap_or(Case::Plain);
            points[a as usize] = if p1.is_identity() {
                p2
            } else if p2.is_identity() {
                p1
            } else if case == Case::Cancel {
                Point::default()
            } else {
                let numerator = if case == Case::Double { three_squares(&p1.x) } else { F::sub(&p2.y, &p1.y) };
                let slope = F::mul(&inverse, &numerator);
                let x = F::sub_both(&F::sqr(&slope), &p1.x, &p2.x);
                let y = F::sub(&F::mul(&slope, &F::sub(&p1.x, &x)), &p1.y);
                Point { x, y }
            };
        }
    }

    fn clear(&mut self) {
        self.denominators.clear();
        self.cases.clear();
        self.prefixes[..2].fill(F::ONE);
    }

    fn push(&mut self, denominator: F) {
        let n = self.denominators.len();
        let (done, rest) = self.prefixes.split_at_mut(n + 2);
        F::mul_to(&mut rest[0], &done[n], &denominator);
        self.denominators.push(denominator);
    }

    /// The product of all denominators, from the ends of the two chains.
    fn product(&self) -> F {
        let n = self.denominators.len();
        F::mul(&self.prefixes[n], &self.prefixes[n + 1])
    }

    /// Finds the zero denominators and replaces them: by 2 y1 for a doubling (not zero, the order is odd), by 1 for a
    /// cancellation.
    #[cold]
    fn treat_exceptions(&mut self, points: &[Point<F>], pairs: &[(u32, u32)]) {
        let denominators = self.denominators.clone();
        self.clear();
        for (denominator, &(a, b)) in denominators.into_iter().zip(pairs) {
            let (y1, y2) = (&points[a as usize].y, &points[b as usize].y);
            let (case, denominator) = match denominator.is_zero() {
                false => (Case::Plain, denominator),
                true if F::sub(y2, y1).is_zero() => (Case::Double, F::add(y1, y1)),
                true => (Case::Cancel, F::ONE),
            };
            self.cases.push(case);
            self.push(denominator);
        }
    }
}

#[cold]
fn three_squares<F: Coordinate>(x: &F) -> F {
    let square = F::sqr(x);
    F::add(&F::add(&square, &square), &square)
}
