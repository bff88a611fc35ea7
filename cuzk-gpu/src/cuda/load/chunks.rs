//! A load, cut into chunks.

use std::ops::Range;

use crate::srs::Section;

/// Points of a list that are read and converted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Which of the lists that are loaded.
    pub list: usize,
    /// The first point, in the list.
    pub first: u64,
    /// Number of points.
    pub points: u64,
    /// Where the first point is in the file.
    pub offset: u64,
    /// Bytes of all points.
    pub bytes: usize,
    /// Whether they stay on the device. No chunk has points of both kinds.
    pub stays: bool,
}

/// The chunks of some lists, of which the first `resident` points stay on the device, in the order of the file.
pub(super) fn chunks(lists: &[(Section, u64)], chunk_bytes: usize) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (list, (section, resident)) in lists.iter().enumerate() {
        let most = chunk_bytes as u64 / section.point_bytes;
        for (range, stays) in [(0..*resident, true), (*resident..section.points, false)] {
            let Range { mut start, end } = range;
            while start < end {
                let points = most.min(end - start);
                let offset = section.offset + start * section.point_bytes;
                let bytes = (points * section.point_bytes) as usize;
                chunks.push(Chunk { list, first: start, points, offset, bytes, stays });
                start += points;
            }
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_point_once_in_order() {
        let section = |offset, points, point_bytes| Section { name: "list", offset, points, point_bytes };
        let lists = [(section(100, 7, 96), 7), (section(5000, 0, 96), 0), (section(772, 11, 192), 4)];
        let chunks = chunks(&lists, 400);
        let mut at = [0; 3];
        for chunk in &chunks {
            let (section, resident) = lists[chunk.list];
            assert_eq!(chunk.first, at[chunk.list]);
            assert_eq!(chunk.offset, section.offset + chunk.first * section.point_bytes);
            assert_eq!(chunk.bytes as u64, chunk.points * section.point_bytes);
            assert!(chunk.bytes <= 400 && chunk.points > 0);
            let end = chunk.first + chunk.points;
            assert!(if chunk.stays { end <= resident } else { chunk.first >= resident });
            at[chunk.list] = end;
        }
        assert_eq!(at, [7, 0, 11]);
        assert!(chunks.is_sorted_by_key(|chunk| chunk.list));
    }
}
