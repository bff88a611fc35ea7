//! Which points each call of a stage takes.

use cuzk_synth::bitmap::Bitmap;

use super::Vector;

/// The calls of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Call `i` takes the points from `bounds[i]` to `bounds[i + 1]`.
    pub bounds: Vec<usize>,
    /// The first so many calls find their points in device memory.
    pub resident: usize,
}

impl Parts {
    /// The calls of h, whose points are taken in equal parts.
    pub fn of_h(h: &Vector) -> Self {
        let bounds = (0..h.points).step_by(h.part.max(1)).chain([h.points]).collect();
        Self::new(h, bounds)
    }

    /// The calls of a query of the witness, which take equal parts of the auxiliary variables: `aux` tells which have a
    /// point, `inputs` how many public inputs do, whose points come first.
    pub fn of_query(vector: &Vector, inputs: usize, aux: &Bitmap) -> Self {
        // Parts are whole words of the bitmap: powers of two, but for one that has everything.
        let words = vector.part.div_ceil(64).max(1);
        let counts =
            aux.words().chunks(words).map(|words| words.iter().map(|w| w.count_ones() as usize).sum::<usize>());
        let ends = counts.scan(inputs, |end, count| {
            *end += count;
            Some(*end)
        });
        Self::new(vector, [0].into_iter().chain(ends).collect())
    }

    fn new(vector: &Vector, bounds: Vec<usize>) -> Self {
        let resident = bounds.iter().rposition(|&bound| bound <= vector.resident).unwrap_or(0);
        Self { bounds, resident }
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether there is nothing to sum up.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Points in device memory; those that follow are in page-locked memory.
    pub fn resident_points(&self) -> usize {
        self.bounds[self.resident]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(points: usize, part: usize, resident: usize) -> Vector {
        Vector { name: "a", points, point_bytes: 96, tables: 1, part, resident, most: part }
    }

    #[test]
    fn h_is_cut_evenly() {
        let parts = Parts::of_h(&vector(10, 4, 8));
        assert_eq!((parts.bounds.as_slice(), parts.resident), (&[0, 4, 8, 10][..], 2));
        assert_eq!((parts.len(), parts.resident_points()), (3, 8));
        assert_eq!(Parts::of_h(&vector(10, 10, 10)), Parts { bounds: vec![0, 10], resident: 1 });
    }

    #[test]
    fn queries_are_cut_by_variables() {
        let mut aux = Bitmap::zeros(200);
        [0, 1, 63, 64, 130, 199].into_iter().for_each(|i| aux.set(i));
        let parts = |resident| Parts::of_query(&vector(8, 64, resident), 2, &aux);
        assert_eq!(parts(0).bounds, [0, 5, 6, 7, 8]);
        let stay = |resident| (parts(resident).resident, parts(resident).resident_points());
        assert_eq!([stay(0), stay(4), stay(5), stay(7), stay(8)], [(0, 0), (0, 0), (1, 5), (3, 7), (4, 8)]);
        let whole = Parts::of_query(&vector(8, 200, 8), 2, &aux);
        assert_eq!(whole, Parts { bounds: vec![0, 8], resident: 1 });
    }

    #[test]
    fn a_query_without_points_has_empty_calls() {
        let parts = Parts::of_query(&vector(0, 64, 0), 0, &Bitmap::zeros(100));
        assert_eq!((parts.bounds.as_slice(), parts.resident_points()), (&[0, 0, 0][..], 0));
    }
}
