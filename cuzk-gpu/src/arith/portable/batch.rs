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
        Self { denominators: Vec::with_capacity(BATCH), prefixes: Vec::with_capacity(BATCH + 2), cases: Vec::new() }
    }

    /// `points[a] += points[b]` for every pair (a, b). No point that is written occurs in another pair.
    pub fn add(&mut self, points: &mut [Point<F>], pairs: &[(u32, u32)]) {
        for pairs in pairs.chunks(BATCH) {
            self.add_batch(points, pairs);
        }
    }

    fn add_batch(&mut self, points: &mut [Point<F>], pairs: &[(u32, u32)]) {
        self.denominators.clear();
        self.cases.clear();
        self.denominators.extend(pairs.iter().map(|&(a, b)| {
            let (p1, p2) = (&points[a as usize], &points[b as usize]);
            if p1.is_identity() || p2.is_identity() { F::ONE } else { F::sub(&p2.x, &p1.x) }
        }));
        let mut product = self.multiply_up();
        if product.is_zero() {
            self.treat_exceptions(points, pairs);
            product = self.multiply_up();
        }
        let inverse = product.invert();
        // The chains end in the last two prefixes; the inverse of one is that of the product times the other.
        let n = pairs.len();
        let mut chains = [inverse; 2];
        chains[n & 1] = F::mul(&inverse, &self.prefixes[n + 1]);
        chains[n & 1 ^ 1] = F::mul(&inverse, &self.prefixes[n]);
        for (i, &(a, b)) in pairs.iter().enumerate().rev() {
            let chain = &mut chains[i & 1];
            let inverse = F::mul(chain, &self.prefixes[i]);
            *chain = F::mul(chain, &self.denominators[i]);
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

    /// Fills the prefixes and returns the product of all denominators.
    fn multiply_up(&mut self) -> F {
        self.prefixes.clear();
        self.prefixes.extend([F::ONE; 2]);
        for (i, denominator) in self.denominators.iter().enumerate() {
            let product = F::mul(&self.prefixes[i], denominator);
            self.prefixes.push(product);
        }
        let n = self.denominators.len();
        F::mul(&self.prefixes[n], &self.prefixes[n + 1])
    }

    /// Finds out about zero denominators, and replaces them: by 2 y1 for a doubling (not zero, the order is odd), by 1
    /// for a cancellation.
    #[cold]
    fn treat_exceptions(&mut self, points: &[Point<F>], pairs: &[(u32, u32)]) {
        for (denominator, &(a, b)) in self.denominators.iter_mut().zip(pairs) {
            let (y1, y2) = (&points[a as usize].y, &points[b as usize].y);
            let case = match denominator.is_zero() {
                false => Case::Plain,
                true if F::sub(y2, y1).is_zero() => Case::Double,
                true => Case::Cancel,
            };
            match case {
                Case::Plain => {}
                Case::Double => *denominator = F::add(y1, y1),
                Case::Cancel => *denominator = F::ONE,
            }
            self.cases.push(case);
        }
    }
}

#[cold]
fn three_squares<F: Coordinate>(x: &F) -> F {
    let square = F::sqr(x);
    F::add(&F::add(&square, &square), &square)
}
