//! Where everything is in a parameter file. The format is bellperson's: the verifying key, then `h`, `l`, `a`, `b_g1`
//! and `b_g2`; each list a big-endian u32 length and that many uncompressed big-endian points.

/// Bytes of an uncompressed point of G1.
pub const G1_BYTES: u64 = 96;
/// Bytes of an uncompressed point of G2.
pub const G2_BYTES: u64 = 192;

/// Bytes of the verifying key before its list `ic`: alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2.
pub(super) const VK_FIXED_BYTES: u64 = 3 * G1_BYTES + 3 * G2_BYTES;

const LENGTH_BYTES: u64 = 4;

/// One list of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Where its first point begins.
    pub offset: u64,
    /// Number of points.
    pub points: u64,
    /// Bytes a point.
    pub point_bytes: u64,
}

impl Section {
    fn end(&self) -> u64 {
        self.offset + self.points * self.point_bytes
    }
}

/// The lists of a parameter file, `ic` of the verifying key first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `ic`, `h`, `l`, `a`, `b_g1`, `b_g2`.
    pub sections: [Section; 6],
}

/// A file that cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// A list would end past the end of the file.
    TooShort { section: &'static str, needs: u64 },
    /// A list is empty that never is.
    Empty { section: &'static str },
    /// The lists end before the file does.
    TooLong { ends: u64 },
}

impl Layout {
    const LISTS: [(&'static str, u64); 6] =
        [("ic", G1_BYTES), ("h", G1_BYTES), ("l", G1_BYTES), ("a", G1_BYTES), ("b_g1", G1_BYTES), ("b_g2", G2_BYTES)];

    /// Lays out a file of `file_bytes` with the lengths that `length_at` reads at the offsets it is asked for. No offset
    /// past the end is ever asked for.
    pub(super) fn scan<E>(
        file_bytes: u64,
        mut length_at: impl FnMut(u64) -> Result<u32, E>,
    ) -> Result<Result<Self, Misfit>, E> {
        let mut end = VK_FIXED_BYTES;
        let mut sections = Vec::with_capacity(6);
        for (name, point_bytes) in Self::LISTS {
            let offset = end + LENGTH_BYTES;
            if offset > file_bytes {
                return Ok(Err(Misfit::TooShort { section: name, needs: offset }));
            }
            let section = Section { name, offset, points: u64::from(length_at(end)?), point_bytes };
            // A circuit may have no variable in B; ONE and at least one coefficient of H are always there.
            if section.points == 0 && !name.starts_with('b') {
                return Ok(Err(Misfit::Empty { section: name }));
            }
            end = section.end();
            if end > file_bytes {
                return Ok(Err(Misfit::TooShort { section: name, needs: end }));
            }
            sections.push(section);
        }
        if end < file_bytes {
            return Ok(Err(Misfit::TooLong { ends: end }));
        }
        let sections = sections.try_into().expect("six lists were pushed");
        Ok(Ok(Self { sections }))
    }

    /// Bytes of the points of all lists.
    pub fn point_bytes(&self) -> u64 {
        self.sections.iter().map(|section| section.points * section.point_bytes).sum()
    }

    /// Bytes of a file with lists of these lengths (in the order of [`Layout::sections`]).
    pub fn file_bytes(lengths: [u64; 6]) -> u64 {
        let lists = Self::LISTS
            .iter()
            .zip(lengths)
            .map(|((_, point_bytes), points)| LENGTH_BYTES + points * point_bytes)
            .sum::<u64>();
        VK_FIXED_BYTES + lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans a file with the given lengths, cut or padded to `file_bytes`.
    fn scan(lengths: [u32; 6], file_bytes: u64) -> Result<Layout, Misfit> {
        let mut lengths = lengths.into_iter();
        Layout::scan(file_bytes, |offset| {
            assert!(offset + LENGTH_BYTES <= file_bytes);
            Ok::<_, ()>(lengths.next().unwrap())
        })
        .unwrap()
    }

    #[test]
    fn every_cut_is_found() {
        let lengths = [2, 7, 3, 4, 1, 1];
        let full = Layout::file_bytes(lengths.map(u64::from));
        let layout = scan(lengths, full).unwrap();
        assert_eq!(layout.sections[5].end(), full);
        assert_eq!(layout.sections[1].offset, VK_FIXED_BYTES + 4 + 2 * 96 + 4);
        for cut in 0..full {
            assert!(matches!(scan(lengths, cut), Err(Misfit::TooShort { needs, .. }) if needs > cut));
        }
        assert_eq!(scan(lengths, full + 1), Err(Misfit::TooLong { ends: full }));
    }

    #[test]
    fn huge_lengths_do_not_overflow() {
        let misfit = scan([u32::MAX; 6], 1 << 20).unwrap_err();
        assert!(matches!(misfit, Misfit::TooShort { section: "ic", .. }));
    }

    #[test]
    fn lists_that_never_are_empty_must_not_be() {
        let lengths = [2, 7, 0, 4, 0, 0];
        let full = Layout::file_bytes(lengths.map(u64::from));
        assert_eq!(scan(lengths, full), Err(Misfit::Empty { section: "l" }));
        let lengths = [2, 7, 3, 4, 0, 0];
        let full = Layout::file_bytes(lengths.map(u64::from));
        assert!(scan(lengths, full).is_ok());
    }
}
