//! A constraint matrix in page-locked host memory, of which some rows at a time come into a buffer on the device.

use std::ops::Range;

use cuzk_synth::r1cs::{Matrix, R1cs};

use super::{
    Spmv, WitnessRegion,
    matrix::{Coefficients, RawMatrix, check},
};
use crate::cuda::{
    arena::{ALIGNMENT, Arena},
    error::CudaError,
    gpu::Gpu,
    memory::{DeviceSlice, PinnedBuffer},
    ntt::{PlanesRegion, plan::padded_len},
    stream::Stream,
};

/// The matrix, and which rows come together.
#[derive(Debug)]
pub struct StreamedMatrix {
    starts: PinnedBuffer<u32>,
    columns: PinnedBuffer<u32>,
    values: PinnedBuffer<u16>,
    parts: Vec<Range<usize>>,
    num_columns: usize,
}

/// Rows of a block of the kernel: parts are whole blocks.
const BLOCK: usize = 256;

impl StreamedMatrix {
    /// Copies a matrix of a circuit to page-locked memory, to come in parts of up to `part_bytes`. Its indexes are
    /// checked here, once, so that kernels need not.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if an entry's column or coefficient is not of the circuit or rows are too long for a part,
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(gpu: &Gpu, r1cs: &R1cs, matrix: &Matrix, part_bytes: usize) -> Result<Self, CudaError> {
        check(r1cs, matrix).map_err(|what| gpu.misuse(what))?;
        let Some(parts) = parts(&matrix.starts, part_bytes) else {
            return Err(gpu.misuse(format!("{BLOCK} rows of a matrix take more than {part_bytes} bytes")));
        };
        let mut starts = PinnedBuffer::new(gpu, matrix.starts.len(), "rows of a matrix")?;
        let mut columns = PinnedBuffer::new(gpu, matrix.columns.len(), "columns of a matrix")?;
        let mut values = PinnedBuffer::new(gpu, matrix.values.len(), "values of a matrix")?;
        starts.copy_from_slice(&matrix.starts);
        columns.copy_from_slice(&matrix.columns);
        values.copy_from_slice(&matrix.values);
        Ok(Self { starts, columns, values, parts, num_columns: r1cs.num_variables() })
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Queues the copy of a part into a buffer of the size that parts were made for.
    ///
    /// # Safety
    /// The matrix must live until the stream has done the copy.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the buffer is too small, or what the driver reports.
    pub unsafe fn upload(&self, stream: &Stream, part: usize, buffer: DeviceSlice<'_, u8>) -> Result<(), CudaError> {
        let (rows, entries) = (self.parts[part].clone(), self.entries(part));
        let [columns, values] = places(rows.len(), entries.len());
        let starts = &self.starts[rows.start..rows.end + 1];
        // SAFETY: the caller's promise; page-locked memory that nobody writes to.
        unsafe {
            buffer.range(..size_of_val(starts))?.cast()?.upload_async(stream, starts)?;
            let end = columns + 4 * entries.len();
            buffer.range(columns..end)?.cast()?.upload_async(stream, &self.columns[entries.clone()])?;
            let end = values + 2 * entries.len();
            buffer.range(values..end)?.cast()?.upload_async(stream, &self.values[entries])
        }
    }

    /// Queues the product of a part, which is in `buffer`, with the witness. The first one clears the planes.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the matrix has more rows than the domain or other columns than the witness, or what the
    /// driver reports.
    pub fn multiply(
        &self,
        (stream, spmv): (&Stream, &Spmv),
        (part, buffer): (usize, DeviceSlice<'_, u8>),
        coefficients: &Coefficients,
        (witness_arena, witness): (&Arena, &WitnessRegion),
        (arena, out, log_n): (&Arena, &PlanesRegion, u32),
    ) -> Result<(), CudaError> {
        let (rows, entries) = (self.parts[part].clone(), self.entries(part));
        if self.starts.len() > (1 << log_n) + 1 || self.num_columns != witness.num_variables() {
            let what = format!("{} rows of {} columns for 2^{log_n}", self.starts.len() - 1, self.num_columns);
            return Err(stream.gpu().misuse(what));
        }
        if part == 0 {
            out.clear(stream, arena)?;
        }
        let [columns, values] = places(rows.len(), entries.len());
        let first = entries.start as u64;
        // Rows tell where their entries are in the whole matrix, so entry 0 is thought of as that far before the buffer's.
        let raw = RawMatrix {
            starts: buffer.address(),
            columns: (buffer.address() + columns as u64).wrapping_sub(4 * first),
            values: (buffer.address() + values as u64).wrapping_sub(2 * first),
            coefficients: coefficients.address(),
            rows: rows.len() as u32,
            unused: 0,
        };
        let last = part + 1 == self.parts.len();
        let len = if last { padded_len(log_n) - rows.start } else { rows.len() };
        let (witness, out) = (witness.raw(witness_arena)?, out.raw(arena)?.from_word(rows.start / 32));
        // SAFETY: the matrix was checked, its columns are the witness' variables, and the planes have a word for each 32
        // rows of the padded domain; a part begins at a whole block of them.
        unsafe { spmv.launch(stream, raw, witness, out, len) }
    }

    fn entries(&self, part: usize) -> Range<usize> {
        let rows = &self.parts[part];
        self.starts[rows.start] as usize..self.starts[rows.end] as usize
    }
}

/// Where columns and values of a part are in its buffer.
fn places(rows: usize, entries: usize) -> [usize; 2] {
    let columns = (4 * (rows + 1)).next_multiple_of(ALIGNMENT);
    [columns, (columns + 4 * entries).next_multiple_of(ALIGNMENT)]
}

/// As many whole blocks of rows a part as fit. `None` if a block does not.
fn parts(starts: &[u32], part_bytes: usize) -> Option<Vec<Range<usize>>> {
    let rows = starts.len() - 1;
    let fits = |first: usize, end: usize| {
        let entries = (starts[end] - starts[first]) as usize;
        places(end - first, entries)[1] + 2 * entries <= part_bytes
    };
    let mut parts = Vec::new();
    let mut first = 0;
    while first < rows {
        // The bytes grow with the rows, so halving finds the last block that fits.
        let (mut good, mut bad) = (0, (rows - first).div_ceil(BLOCK) + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if fits(first, rows.min(first + middle * BLOCK)) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        let end = rows.min(first + good * BLOCK);
        if good == 0 {
            return None;
        }
        parts.push(first..end);
        first = end;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn parts_are_whole_blocks_that_fit_and_no_smaller_than_they_must_be() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        for rows in [1, 255, 256, 257, 10_000, 65_536] {
            let mut starts = vec![0u32];
            for row in 0..rows {
                starts.push(starts[row] + rng.gen_range(0..9));
            }
            for part_bytes in [16 << 10, 100_000, 1 << 20] {
                let parts = parts(&starts, part_bytes).unwrap();
                assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, rows));
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
                for (i, part) in parts.iter().enumerate() {
                    let bytes = |end: usize| {
                        let entries = (starts[end] - starts[part.start]) as usize;
                        places(end - part.start, entries)[1] + 2 * entries
                    };
                    assert!(bytes(part.end) <= part_bytes && part.start % BLOCK == 0);
                    if i + 1 < parts.len() {
                        assert!(bytes(rows.min(part.end + BLOCK)) > part_bytes);
                    }
                }
            }
        }
        assert_eq!(parts(&[0, 100_000], 1 << 16), None);
    }
}
