//! A constraint matrix in device memory.

use cuzk_synth::r1cs::{Matrix, R1cs};

use crate::cuda::{
    error::CudaError,
    fr::{Element, montgomery},
    memory::{DeviceBuffer, Plain},
    stream::Stream,
};

/// The matrix: 4 bytes a row and 6 an entry.
#[derive(Debug)]
pub struct DeviceMatrix {
    starts: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
    values: DeviceBuffer<u16>,
    num_columns: usize,
}

/// The coefficients that the matrices of a circuit share.
#[derive(Debug)]
pub struct Coefficients(DeviceBuffer<Element>);

/// `struct matrix` of `kernels/spmv.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawMatrix {
    pub(super) starts: u64,
    pub(super) columns: u64,
    pub(super) values: u64,
    pub(super) coefficients: u64,
    pub(super) rows: u32,
    pub(super) unused: u32,
}

// SAFETY: integers without padding between them.
unsafe impl Plain for RawMatrix {}

impl Coefficients {
    /// Copies the coefficients of a circuit to the device.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(stream: &Stream, r1cs: &R1cs) -> Result<Self, CudaError> {
        let elements: Vec<Element> = r1cs.coefficients.iter().map(montgomery).collect();
        DeviceBuffer::from_host(stream, &elements, "the coefficients of a circuit").map(Self)
    }

    /// Where they are.
    pub(super) fn address(&self) -> u64 {
        self.0.all().address()
    }
}

impl DeviceMatrix {
    /// Copies a matrix of a circuit to the device. Its indexes are checked here, once, so that kernels need not.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if an entry's column or coefficient is not of the circuit, [`CudaError::OutOfMemory`],
    /// or what the driver reports.
    pub fn new(stream: &Stream, r1cs: &R1cs, matrix: &Matrix) -> Result<Self, CudaError> {
        if let Err(what) = check(r1cs, matrix) {
            return Err(stream.gpu().misuse(what));
        }
        Ok(Self {
            starts: DeviceBuffer::from_host(stream, &matrix.starts, "rows of a matrix")?,
            columns: DeviceBuffer::from_host(stream, &matrix.columns, "columns of a matrix")?,
            values: DeviceBuffer::from_host(stream, &matrix.values, "values of a matrix")?,
            num_columns: r1cs.num_variables(),
        })
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    pub fn num_columns(&self) -> usize {
        self.num_columns
    }

    /// The addresses, for kernels.
    pub fn raw(&self, coefficients: &Coefficients) -> RawMatrix {
        RawMatrix {
            starts: self.starts.all().address(),
            columns: self.columns.all().address(),
            values: self.values.all().address(),
            coefficients: coefficients.address(),
            rows: self.num_rows() as u32,
            unused: 0,
        }
    }
}

/// Bytes of a matrix.
pub fn bytes(rows: usize, entries: usize) -> usize {
    4 * (rows + 1) + 6 * entries
}

/// Whether all indexes of a matrix are of its circuit.
pub(super) fn check(r1cs: &R1cs, matrix: &Matrix) -> Result<(), String> {
    let ascending = matrix.starts.windows(2).all(|pair| pair[0] <= pair[1]);
    let entries = matrix.columns.len();
    let whole = matrix.starts.first() == Some(&0) && matrix.starts.last().is_some_and(|&end| end as usize == entries);
    if !ascending || !whole || matrix.values.len() != entries {
        return Err(format!("a matrix whose rows are not those of its {entries} entries"));
    }
    let column = matrix.columns.iter().copied().max().unwrap_or(0) as usize;
    let value = matrix.values.iter().copied().max().unwrap_or(0) as usize;
    if entries > 0 && (column >= r1cs.num_variables() || value >= r1cs.coefficients.len()) {
        return Err(format!(
            "a matrix with column {column} of {} and coefficient {value} of {}",
            r1cs.num_variables(),
            r1cs.coefficients.len()
        ));
    }
    Ok(())
}
