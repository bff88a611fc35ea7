//! The compact witness on a device: for each 32 columns of the constraint matrices which are 1, which are full
//! values, and how many full values come before, so that a column is looked up with one load of 16 bytes.

use cuzk_synth::{bitmap::Bitmap, witness::CompactWitness};

use crate::cuda::{
    arena::{Arena, Layout, Region},
    error::CudaError,
    fr::{Element, montgomery},
    launch::{Args, Function, Grid},
    memory::Plain,
    stream::Stream,
};

/// Groups of a block of the kernels.
const BLOCK: usize = 1024;

/// Where a witness is on the device: half a byte a variable, and 32 bytes a full value.
#[derive(Clone, Copy, Debug)]
pub struct WitnessRegion {
    num_inputs: usize,
    num_aux: usize,
    ones: Region<u32>,
    full: Region<u32>,
    /// Public inputs, then the full values of auxiliary variables.
    values: Region<Element>,
    groups: Region<[u32; 4]>,
    totals: Region<u32>,
}

/// `struct witness` of `kernels/spmv.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawWitness {
    groups: u64,
    full: u64,
}

// SAFETY: integers without padding.
unsafe impl Plain for RawWitness {}

/// The kernels that expand a witness.
#[derive(Debug)]
pub struct Expand {
    groups: Function,
    totals: Function,
    ranks: Function,
}

impl WitnessRegion {
    /// Room for a witness of a circuit, with up to `capacity` full values, public inputs included.
    pub fn plan(layout: &mut Layout, num_inputs: usize, num_aux: usize, capacity: usize) -> Self {
        Self::with_groups(layout, num_inputs, num_aux, capacity, (num_inputs + num_aux).div_ceil(32))
    }

    /// The same for a witness that sums are made over and no matrix is multiplied with: it is not expanded.
    pub fn plan_for_sums(layout: &mut Layout, num_inputs: usize, num_aux: usize, capacity: usize) -> Self {
        Self::with_groups(layout, num_inputs, num_aux, capacity, 0)
    }

    fn with_groups(layout: &mut Layout, num_inputs: usize, num_aux: usize, capacity: usize, groups: usize) -> Self {
        Self {
            num_inputs,
            num_aux,
            // Bitmaps come in words of 64 bits.
            ones: layout.add(2 * num_aux.div_ceil(64)),
            full: layout.add(2 * num_aux.div_ceil(64)),
            values: layout.add(capacity),
            groups: layout.add(groups),
            totals: layout.add(groups.div_ceil(BLOCK)),
        }
    }

    /// Which auxiliary variables are 1, in words of 32.
    pub fn ones(&self) -> Region<u32> {
        self.ones
    }

    /// Which are neither 0 nor 1.
    pub fn full(&self) -> Region<u32> {
        self.full
    }

    /// Public inputs, then the values of the variables in [`Self::full`], in order.
    pub fn values(&self) -> Region<Element> {
        self.values
    }

    /// Number of public inputs.
    pub fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    /// Number of variables, public inputs included.
    pub fn num_variables(&self) -> usize {
        self.num_inputs + self.num_aux
    }

    /// The addresses, for kernels.
    ///
    /// # Errors
    /// The arena is not of this layout, or the witness is not to be expanded.
    pub fn raw(&self, arena: &Arena) -> Result<RawWitness, CudaError> {
        // ONE is looked up as a bit.
        let full = arena.slice(self.values)?.range(1..)?.address();
        // There is a group for ONE at least, where there are groups.
        Ok(RawWitness { groups: arena.slice(self.groups)?.range(..1)?.address(), full })
    }

    /// Copies a witness to the device, and waits.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if it is of another circuit or has too many full values, or what the driver reports.
    pub fn upload(&self, stream: &Stream, arena: &Arena, witness: &CompactWitness) -> Result<(), CudaError> {
        let shape = (witness.inputs().len(), witness.num_aux());
        if shape != (self.num_inputs, self.num_aux) {
            let expected = (self.num_inputs, self.num_aux);
            let what = format!("a witness of {shape:?} inputs and auxiliary variables in a region for {expected:?}");
            return Err(stream.gpu().misuse(what));
        }
        arena.slice(self.ones)?.upload(stream, &half_words(witness.ones()))?;
        arena.slice(self.full)?.upload(stream, &half_words(witness.full()))?;
        let values = full_values(witness);
        arena.slice(self.values)?.range(..values.len())?.upload(stream, &values)
    }
}

impl Expand {
    /// Loads the kernels.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(stream: &Stream) -> Result<Self, CudaError> {
        let function = |name| stream.gpu().function("spmv", name);
        Ok(Self {
            groups: function("witness_groups")?,
            totals: function("witness_totals")?,
            ranks: function("witness_ranks")?,
        })
    }

    /// Queues the expansion of an uploaded witness. Reads two bits a variable, writes and rewrites four.
    ///
    /// # Errors
    /// The arena is not of the region's layout, or what the driver reports.
    pub fn run(&self, stream: &Stream, arena: &Arena, region: &WitnessRegion) -> Result<(), CudaError> {
        let (groups, totals) = (arena.slice(region.groups)?, arena.slice(region.totals)?);
        let grid = Grid::cover(groups.len(), BLOCK as u32);
        let expand = Args::new()
            .slice(arena.slice(region.ones)?)
            .slice(arena.slice(region.full)?)
            .value(region.ones.len() as u32)
            .value(region.num_inputs as u32)
            .value(groups.len() as u32)
            .slice(groups)
            .slice(totals);
        let sum = Args::new().slice(totals).value(totals.len() as u32);
        let add = Args::new().slice(groups).slice(totals).value(groups.len() as u32);
        // SAFETY: the bitmaps have the words said, groups and totals their lengths; a block has one total.
        unsafe {
            self.groups.launch(stream, grid, &expand)?;
            self.totals.launch(stream, Grid::new(1, BLOCK as u32), &sum)?;
            self.ranks.launch(stream, grid, &add)
        }
    }
}

/// Public inputs, then the full values of auxiliary variables.
fn full_values(witness: &CompactWitness) -> Vec<Element> {
    witness.inputs().iter().chain(witness.scalars()).map(montgomery).collect()
}

fn half_words(bitmap: &Bitmap) -> Vec<u32> {
    bitmap.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect()
}

#[cfg(test)]
mod tests {
    use blstrs::Scalar;

    use super::*;

    #[test]
    fn full_values_are_in_order_of_columns() {
        let [five, six, seven] = [5, 6, 7].map(Scalar::from);
        let zero_one = [Scalar::from(0), Scalar::from(1)];
        let witness = CompactWitness::from_plain(vec![zero_one[1], five], [zero_one[0], six, zero_one[1], seven]);
        assert_eq!(full_values(&witness), [zero_one[1], five, six, seven].map(|v| montgomery(&v)));
        assert_eq!(half_words(witness.ones()), [0b0100, 0]);
        assert_eq!(half_words(witness.full()), [0b1010, 0]);
    }
}
