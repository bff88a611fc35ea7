//! What is planned for, in numbers: a circuit, a card, and what the configuration says.

use cuzk_synth::r1cs::R1cs;

use crate::cuda::{driver::DeviceInfo, kernels::Arch};

/// A circuit, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Public inputs, ONE included.
    pub inputs: usize,
    /// Auxiliary variables.
    pub aux: usize,
    /// Constraints.
    pub rows: usize,
    /// log2 of the evaluation domain.
    pub log_n: u32,
    /// Entries of the matrices A and B.
    pub entries: [usize; 2],
    /// Distinct coefficients of the matrices.
    pub coefficients: usize,
    /// Points of the query `a`.
    pub a_points: usize,
    /// Points of the queries `b_g1` and `b_g2`.
    pub b_points: usize,
    /// How many values other than the most frequent ones there is room for.
    pub room: Room,
}

/// Room for the values that take more than a few bits. A witness or product with more of them is refused by the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Variables that are neither 0 nor 1, public inputs counted in.
    pub full: usize,
    /// Rows of A·w, and of B·w, that are none of 0, 1, 2 and -1.
    pub exceptions: usize,
}

impl Room {
    /// For any witness of a circuit.
    pub fn for_any(variables: usize, rows: usize) -> Self {
        Self { full: variables, exceptions: rows }
    }

    /// For witnesses that are mostly bits, as those of a PoRep: 1.6 % of its variables are other values, and there is room
    /// for 2.1 %; of its rows 3.3 % in B for 2 KiB, and 1.4 % in A for 32 GiB. For any witness of a small circuit.
    pub fn for_bits(variables: usize, rows: usize) -> Self {
        let room = |of: usize, small: usize| (of / 48).max(of.min(small));
        Self { full: room(variables, 1 << 16), exceptions: room(rows, 1 << 19) }
    }
}

impl Shape {
    /// The shape of a constraint system.
    pub fn of(r1cs: &R1cs, room: Room) -> Self {
        let density = &r1cs.density;
        Self {
            inputs: r1cs.num_inputs,
            aux: r1cs.num_aux,
            rows: r1cs.num_constraints(),
            log_n: r1cs.log_domain(),
            entries: [r1cs.a.columns.len(), r1cs.b.columns.len()],
            coefficients: r1cs.coefficients.len(),
            a_points: r1cs.num_inputs + density.a_aux.count_ones(),
            b_points: density.b_inputs.count_ones() + density.b_aux.count_ones(),
            room,
        }
    }
}

/// A device, as far as memory and speed are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Bytes that may be planned with: what is free at the start.
    pub memory: usize,
    /// Architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub sms: usize,
}

impl Card {
    /// A device of which `free` bytes are free.
    pub fn new(info: &DeviceInfo, free: usize) -> Self {
        Self { memory: free, arch: info.arch, sms: info.sms as usize }
    }
}

/// Where Σ w_i B_i in G2 is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BG2 {
    /// On the CPU, after the lock is released.
    Cpu,
    /// In the kernel phase where there is room, else on the CPU.
    Gpu,
    /// As [`Self::Gpu`] if that takes no room from other points; whoever proves then goes by measured times.
    Auto,
}

/// How A·w and B·w come to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Computed there from the matrices.
    Matrices,
    /// As planes, with the witness: no matrix is needed.
    Planes,
}

/// What the configuration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most device memory to use, in bytes; all of it if `None`.
    pub vram_limit: Option<usize>,
    /// Device memory that is left alone below the limit, in bytes: for the driver's own needs.
    pub reserve: usize,
    /// Partitions worked on at once.
    pub workers: usize,
    /// Where `b_g2` is computed.
    pub b_g2: BG2,
    /// How A·w and B·w come to the device.
    pub rows: Rows,
    /// The most page-locked host memory to use, in bytes.
    pub pinned_limit: usize,
}
