//! The compact witness as bytes: in host memory as it will be on the device.

use std::ops::Range;

use cuzk_synth::{planes::Rows, witness::CompactWitness};

use crate::cuda::{
    pieces::{self, Piece},
    plan::Staging,
};

/// Writes a witness of the circuit, whose sizes the caller has checked, and A·w and B·w if there is a place for them. Tells
/// which bytes are to be copied to the device. Parallel on the current rayon pool.
///
/// # Errors
/// There is no room for all values that take more than a few bits, or rows are needed and did not come.
pub(super) fn write(
    staging: &Staging,
    host: &mut [u8],
    witness: &CompactWitness,
    rows: Option<&Rows>,
) -> Result<Vec<Range<usize>>, String> {
    let region = &staging.witness;
    let (inputs, scalars) = (pieces::scalar_bytes(witness.inputs()), pieces::scalar_bytes(witness.scalars()));
    let values = region.values().bytes();
    if inputs.len() + scalars.len() > values.len() {
        return Err(format!(
            "the witness has {} public inputs and {} other values than 0 and 1, there is room for {}",
            witness.inputs().len(),
            witness.scalars().len(),
            region.values().len()
        ));
    }
    let behind_inputs = values.start + inputs.len();
    let end = behind_inputs + scalars.len();
    let bits = |bitmap| pieces::bit_bytes(bitmap, witness.num_aux());
    let mut all = vec![
        Piece::new(region.ones().bytes(), bits(witness.ones())),
        Piece::new(region.full().bytes(), bits(witness.full())),
        Piece::new(values.start..behind_inputs, inputs),
        Piece::new(behind_inputs..end, scalars),
    ];
    let of_witness = 0..end;
    let mut used = vec![of_witness];
    if let Some(regions) = &staging.rows {
        let rows =
            rows.ok_or("A·w and B·w did not come with the witness, and there are no matrices to make them from")?;
        for (name, region, planes) in [("A", regions[0], &rows.a), ("B", regions[1], &rows.b)] {
            all.extend(region.pieces(planes).map_err(|what| format!("{name}·w: {what}"))?);
            used.push(region.used(planes.scalars().len()));
        }
    }
    pieces::write(host, all);
    Ok(used)
}

#[cfg(test)]
mod tests {
    use cuzk_synth::planes::Planes;

    use super::*;
    use crate::{
        cuda::{
            arena::Layout,
            fr::{Element, montgomery},
            plan::{self, Room, Shape},
        },
        prover::Partition,
        toy::Toy,
    };

    fn elements(bytes: &[u8]) -> Vec<Element> {
        let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes")));
        words.collect::<Vec<_>>().chunks_exact(8).map(|e| e.try_into().expect("8 words")).collect()
    }

    fn staged(
        partition: &Partition,
        room: Room,
        rows: plan::Rows,
    ) -> (Staging, Vec<u8>, Result<Vec<Range<usize>>, String>) {
        let mut layout = Layout::new();
        let staging = Staging::plan(&mut layout, &Shape::of(&partition.r1cs, room), rows);
        assert!(staging.host_bytes() <= layout.bytes());
        let mut host = vec![0xdb; staging.host_bytes()];
        let used = write(&staging, &mut host, &partition.witness, partition.rows.as_ref());
        (staging, host, used)
    }

    #[test]
    fn everything_is_where_the_regions_say() {
        let toy = Toy { seed: 5, constraints: 300, percent_inputs: 20, b_constant: false, blank: false };
        let partition = toy.partition_with_rows();
        let (r1cs, witness) = (&partition.r1cs, &partition.witness);
        let room = Room::for_any(r1cs.num_variables(), r1cs.num_constraints());
        for rows in [plan::Rows::Matrices, plan::Rows::Planes] {
            let (staging, host, used) = staged(&partition, room, rows);
            let used = used.expect("it fits");
            let values: Vec<Element> = witness.inputs().iter().chain(witness.scalars()).map(montgomery).collect();
            assert_eq!(elements(&host[staging.witness.values().bytes().start..used[0].end]), values);
            let ones: Vec<u8> = witness.ones().words().iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(host[staging.witness.ones().bytes()], ones);
            assert_eq!((used.len(), used[0].start), (if rows == plan::Rows::Planes { 3 } else { 1 }, 0));
            for (used, planes) in used[1..].iter().zip(partition.rows.iter().flat_map(|rows| [&rows.a, &rows.b])) {
                let list: Vec<Element> = planes.scalars().iter().map(montgomery).collect();
                assert_eq!(elements(&host[used.end - 32 * list.len()..used.end]), list);
                let low: Vec<u8> = planes.low().words().iter().flat_map(|word| word.to_le_bytes()).collect();
                let bytes = planes.len().div_ceil(32) * 4;
                assert_eq!(host[used.start..][..bytes], low[..bytes]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let toy = Toy { seed: 6, constraints: 30, percent_inputs: 0, b_constant: false, blank: false };
        let mut partition = toy.partition_with_rows();
        let refused = |partition: &Partition, full, exceptions| {
            staged(partition, Room { full, exceptions }, plan::Rows::Planes).2.expect_err("no room")
        };
        assert!(refused(&partition, 3, 100).contains("room for 3"));
        let few = refused(&partition, 100, 1);
        assert!(few.starts_with("A·w: ") && few.ends_with("and 1"), "{few}");
        partition.rows.as_mut().expect("they came").b = Planes::from_plain([]);
        assert!(partition.is_whole().is_err_and(|error| error.to_string().contains("B·w has 0 values")));
        partition.rows = None;
        assert!(refused(&partition, 100, 100).contains("did not come"));
    }
}
