//! How scalars are cut into digits: windows, tables of multiples, sets of buckets, keys.
//!
//! A digit of a window of width c is in -2^(c-1)..=2^(c-1), so a set of buckets for it has 2^(c-1) of them. Window j takes
//! its points from table j div S, which holds 2^(t * bits of all sets) times the base, and its buckets from set j mod S:
//! T tables shrink W windows to S = ceil(W / T) sets.

/// Bits that the windows must cover: scalars are below 2^254 after r - k is taken where it is smaller, and a carry.
pub const SCALAR_BITS: u32 = 255;
/// The most windows that the kernels take.
pub const MAX_WINDOWS: usize = 64;
/// The widest window: 2^23 buckets. With the other limits, keys stay below 2^31.
pub const MAX_WIDTH: u32 = 24;

/// The windows of a multi-scalar multiplication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    count: usize,
    tables: usize,
    set_widths: Vec<u32>,
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bits.
    pub width: u32,
    /// The set of its buckets.
    pub set: usize,
    /// The table of its points.
    pub table: usize,
}

impl Windows {
    /// `count` windows on `tables` tables, of widths as equal as can be: `None` if there are too many or too wide ones.
    pub fn balanced(count: usize, tables: usize) -> Option<Self> {
        if count == 0 || count > MAX_WINDOWS || tables == 0 || tables > count {
            return None;
        }
        let sets = count.div_ceil(tables);
        // Windows of a set: as many as tables, one less for the last ones where the last table is not used up.
        let users = |set: usize| (0..count).filter(|j| j % sets == set).count() as u32;
        let mut widths = vec![SCALAR_BITS / count as u32; sets];
        let mut covered: u32 = (0..sets).map(|set| users(set) * widths[set]).sum();
        for set in (0..sets).rev().cycle() {
            if covered >= SCALAR_BITS {
                break;
            }
            widths[set] += 1;
            covered += users(set);
        }
        Self::new(count, tables, widths)
    }

    /// `count` windows on `tables` tables with these widths of the sets: `None` if they do not cover a scalar or pass a
    /// limit.
    pub fn new(count: usize, tables: usize, set_widths: Vec<u32>) -> Option<Self> {
        let windows = Self { count, tables, set_widths };
        let fits = count <= MAX_WINDOWS
            && tables > 0
            && windows.set_widths.len() == count.div_ceil(tables)
            && windows.set_widths.iter().all(|width| (1..=MAX_WIDTH).contains(width))
            && windows.iter().map(|w| w.width).sum::<u32>() >= SCALAR_BITS;
        fits.then_some(windows)
    }

    /// Number of windows, W.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of tables, T.
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// Bits between the multiples of neighbouring tables.
    pub fn table_bits(&self) -> u32 {
        self.set_widths.iter().sum()
    }

    /// All windows, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = Window> + '_ {
        let sets = self.set_widths.len();
        (0..self.count).map(move |j| Window { width: self.set_widths[j % sets], set: j % sets, table: j / sets })
    }

    /// For each set, its number of buckets and the weight of its lowest bit, as an exponent of two.
    pub fn sets(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let shifts = self.set_widths.iter().scan(0, |sum, width| Some(std::mem::replace(sum, *sum + width)));
        self.set_widths.iter().map(|width| 1 << (width - 1)).zip(shifts)
    }

    /// Buckets of all sets.
    pub fn buckets(&self) -> usize {
        self.sets().map(|(buckets, _)| buckets as usize).sum()
    }

    /// The windows as the digit kernel takes them (`msm_windows`), for tables of `points` points, of which the first one is
    /// point `first_point`, and buckets from `first_bucket` on.
    pub fn kernel_argument(
        &self,
        points: usize,
        first_point: usize,
        first_bucket: usize,
    ) -> [u32; 1 + 3 * MAX_WINDOWS] {
        let set_buckets: Vec<u32> =
            self.sets().scan(0, |sum, (buckets, _)| Some(std::mem::replace(sum, *sum + buckets))).collect();
        let mut words = [0; 1 + 3 * MAX_WINDOWS];
        words[0] = self.count as u32;
        for (j, window) in self.iter().enumerate() {
            words[1 + j] = window.width;
            words[1 + MAX_WINDOWS + j] = first_bucket as u32 + set_buckets[window.set];
            words[1 + 2 * MAX_WINDOWS + j] = (first_point + window.table * points) as u32;
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_the_shapes_in_use() {
        let widths = |count, tables| Windows::balanced(count, tables).map(|w| w.set_widths);
        assert_eq!(widths(11, 4), Some(vec![23, 23, 24]));
        assert_eq!(widths(13, 13), Some(vec![20]));
        assert_eq!(widths(12, 1), Some([vec![21; 9], vec![22; 3]].concat()));
        assert_eq!(widths(10, 1), None, "26 bits are too wide");
        assert_eq!(Windows::balanced(11, 4).map(|w| w.buckets()), Some(1 << 24));
    }

    #[test]
    fn every_scalar_bit_is_in_one_window() {
        for count in 11..=MAX_WINDOWS {
            for tables in 1..=count {
                let Some(windows) = Windows::balanced(count, tables) else { continue };
                assert!(windows.iter().map(|w| w.width).sum::<u32>() >= SCALAR_BITS);
                // The weight of a window by its place, and by its table and set.
                let shifts: Vec<u32> = windows.sets().map(|(_, shift)| shift).collect();
                let mut offset = 0;
                for window in windows.iter() {
                    assert_eq!(offset, window.table as u32 * windows.table_bits() + shifts[window.set]);
                    offset += window.width;
                }
            }
        }
    }
}
