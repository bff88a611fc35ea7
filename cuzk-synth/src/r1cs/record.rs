//! Recording a circuit's matrices from a blank instance.

use std::collections::HashMap;

use bellpepper_core::{Circuit, Index, SynthesisError, Variable};
use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::{Matrix, R1cs};
use crate::visit::{Lc, Visitor, visit};

/// A circuit that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The circuit itself failed.
    #[error("synthesis of the blank circuit failed: {0}")]
    Synthesis(#[from] SynthesisError),
    /// More distinct coefficients than a 16-bit index can tell apart.
    #[error("the circuit has more than {} distinct coefficients", 1 << 16)]
    TooManyCoefficients,
    /// More variables or entries than 32-bit indexes can tell apart.
    #[error("the circuit has more variables or matrix entries than 32 bits can count")]
    TooLarge,
}

/// Records a circuit that need not know its values, with the constraint `input_i * 0 = 0` appended for every public input
/// (see [`crate::assignment::Assignment::synthesize`]).
pub(super) fn record<C: Circuit<Scalar>>(circuit: C) -> Result<R1cs, RecordError> {
    let (mut recorder, run) = visit(Recorder::default(), circuit);
    run?;
    for i in 0..recorder.num_inputs {
        let input = Lc::from_variable(Variable(Index::Input(i)));
        recorder.enforce(String::new, || input, Lc::zero, Lc::zero);
    }
    recorder.finish()
}

/// The lowest bit of a column while recording.
const AUX: u32 = 1;

/// A matrix in the making.
struct Rows {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<u16>,
}

struct Recorder {
    num_inputs: usize,
    num_aux: usize,
    matrices: [Rows; 3],
    coefficients: Vec<Scalar>,
    index_of: HashMap<[u8; 32], u16>,
    error: Option<RecordError>,
}

impl Recorder {
    fn push_row(&mut self, which: usize, lc: &Lc) {
        for (variable, coefficient) in lc.iter() {
            // A coefficient of zero (a variable added and taken away again) is no occurrence.
            if bool::from(coefficient.is_zero()) {
                continue;
            }
            let Some(value) = self.index_of(coefficient) else {
                self.error.get_or_insert(RecordError::TooManyCoefficients);
                return;
            };
            let (index, class) = match variable.0 {
                Index::Input(i) => (i, 0),
                Index::Aux(i) => (i, AUX),
            };
            if index >= 1 << 31 {
                self.error.get_or_insert(RecordError::TooLarge);
                return;
            }
            let matrix = &mut self.matrices[which];
            matrix.columns.push((index as u32) << 1 | class);
            matrix.values.push(value);
        }
        let matrix = &mut self.matrices[which];
        match u32::try_from(matrix.columns.len()) {
            Ok(end) => matrix.starts.push(end),
            Err(_) => _ = self.error.get_or_insert(RecordError::TooLarge),
        }
    }

    fn index_of(&mut self, coefficient: &Scalar) -> Option<u16> {
        // Nearly nine in ten coefficients are the first that a circuit uses: one.
        if self.coefficients.first() == Some(coefficient) {
            return Some(0);
        }
        let key = coefficient.to_repr();
        if let Some(&index) = self.index_of.get(&key) {
            return Some(index);
        }
        let index = u16::try_from(self.coefficients.len()).ok()?;
        self.coefficients.push(*coefficient);
        self.index_of.insert(key, index);
        Some(index)
    }

    fn finish(mut self) -> Result<R1cs, RecordError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.num_inputs + self.num_aux > u32::MAX as usize {
            return Err(RecordError::TooLarge);
        }
        let offset = self.num_inputs as u32;
        for matrix in &mut self.matrices {
            for column in &mut matrix.columns {
                let index = *column >> 1;
                *column = if *column & AUX == 0 { index } else { offset + index };
            }
        }
        let matrices = self.matrices.map(|rows| Matrix {
            starts: rows.starts.into(),
            columns: rows.columns.into(),
            values: rows.values.into(),
        });
        Ok(R1cs::new(self.num_inputs, self.num_aux, matrices, self.coefficients.into()))
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            num_inputs: 0,
            num_aux: 0,
            matrices: std::array::from_fn(|_| Rows { starts: vec![0], columns: Vec::new(), values: Vec::new() }),
            coefficients: vec![Scalar::ONE],
            index_of: HashMap::new(),
            error: None,
        }
    }
}

impl Visitor for Recorder {
    fn alloc(&mut self, _: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.num_aux += 1;
        Ok(self.num_aux - 1)
    }

    fn alloc_input(&mut self, _: impl FnOnce() -> Result<Scalar, SynthesisError>) -> Result<usize, SynthesisError> {
        self.num_inputs += 1;
        Ok(self.num_inputs - 1)
    }

    fn enforce(
        &mut self,
        _: impl FnOnce() -> String,
        a: impl FnOnce() -> Lc,
        b: impl FnOnce() -> Lc,
        c: impl FnOnce() -> Lc,
    ) {
        self.push_row(0, &a());
        self.push_row(1, &b());
        self.push_row(2, &c());
    }
}
