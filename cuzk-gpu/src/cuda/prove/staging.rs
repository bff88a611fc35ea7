//! The compact witness as bytes: in host memory as it will be on the device, so that it goes there in one copy.

use blstrs::Scalar;
use cuzk_synth::witness::CompactWitness;

use crate::cuda::{arena::Layout, plan::Shape, spmv::WitnessRegion};

/// Where a worker's witness is, in its device memory and in the pinned copy of the beginning of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staging {
    /// The witness.
    pub witness: WitnessRegion,
}

impl Staging {
    /// Adds the buffers of a worker to a layout that is empty.
    pub(super) fn plan(layout: &mut Layout, shape: &Shape) -> Self {
        Self { witness: WitnessRegion::plan(layout, shape.inputs, shape.aux, shape.room.full) }
    }

    /// Bytes of the pinned copy.
    pub(super) fn host_bytes(&self) -> usize {
        self.witness.values().bytes().end
    }

    /// Writes a witness of the circuit, whose sizes the caller has checked. Tells how many bytes, from the beginning, are
    /// to be copied to the device.
    ///
    /// # Errors
    /// It has more full values than there is room for.
    pub(super) fn write(&self, host: &mut [u8], witness: &CompactWitness) -> Result<usize, String> {
        let (inputs, scalars) = (witness.inputs(), witness.scalars());
        let room = self.witness.values().len();
        if inputs.len() + scalars.len() > room {
            return Err(format!(
                "the witness has {} public inputs and {} other values than 0 and 1, there is room for {room}",
                inputs.len(),
                scalars.len()
            ));
        }
        for (region, bitmap) in [(self.witness.ones(), witness.ones()), (self.witness.full(), witness.full())] {
            let words = bitmap.words();
            // SAFETY: any bytes may be read as such. Words of 64 bits, little-endian, are pairs of words of 32.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
            host[region.bytes()].copy_from_slice(bytes);
        }
        let values = self.witness.values().bytes().start;
        let behind_inputs = append(host, values, inputs);
        let end = append(host, behind_inputs, scalars);
        Ok(end)
    }
}

/// Writes scalars from a place on, and tells where they end.
fn append(host: &mut [u8], begin: usize, scalars: &[Scalar]) -> usize {
    let bytes = scalar_bytes(scalars);
    host[begin..begin + bytes.len()].copy_from_slice(bytes);
    begin + bytes.len()
}

fn scalar_bytes(scalars: &[Scalar]) -> &[u8] {
    // SAFETY: a scalar is its eight words in Montgomery form and nothing else.
    unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast::<u8>(), size_of_val(scalars)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cuda::{
            fr::{Element, montgomery},
            plan::Room,
        },
        prover::Partition,
        toy::Toy,
    };

    fn elements(bytes: &[u8]) -> Vec<Element> {
        let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes")));
        words.collect::<Vec<_>>().chunks_exact(8).map(|e| e.try_into().expect("8 words")).collect()
    }

    #[test]
    fn everything_is_where_the_regions_say() {
        let toy = Toy { seed: 5, constraints: 300, percent_inputs: 20, b_constant: false, blank: false };
        let Partition { r1cs, witness, .. } = toy.partition();
        let shape = Shape::of(&r1cs, Room::for_any(r1cs.num_variables(), r1cs.num_constraints()));
        let mut layout = Layout::new();
        let staging = Staging::plan(&mut layout, &shape);
        let mut host = vec![0xdb; staging.host_bytes()];
        let end = staging.write(&mut host, &witness).expect("it fits");
        let values: Vec<Element> = witness.inputs().iter().chain(witness.scalars()).map(montgomery).collect();
        assert_eq!(elements(&host[staging.witness.values().bytes().start..end]), values);
        let ones: Vec<u8> = witness.ones().words().iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(host[staging.witness.ones().bytes()], ones);
        assert!(end <= layout.bytes());
    }

    #[test]
    fn too_many_values_are_refused() {
        let toy = Toy { seed: 6, constraints: 30, percent_inputs: 0, b_constant: false, blank: false };
        let Partition { r1cs, witness, .. } = toy.partition();
        let staging = Staging::plan(&mut Layout::new(), &Shape::of(&r1cs, Room { full: 3, exceptions: 0 }));
        let mut host = vec![0; staging.host_bytes()];
        let refused = staging.write(&mut host, &witness);
        assert!(refused.as_ref().is_err_and(|e| e.contains("room for 3")), "{refused:?}");
    }
}
