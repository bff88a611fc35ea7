//! From the C1 output of a sealed sector to what a prover needs: checked inputs, the circuit's constraint system,
//! the witness. Pure CPU: no async, no device, no network, no file but those a caller hands in.
//!
//! * [`porep`]: a PoRep request, checked and ready to be synthesized, partition by partition;
//! * [`c1`]: the C1 output as data, its parsing and its checks;
//! * [`witness`]: the witness of one partition, compact; `native`: how that of a PoRep is computed, `poseidon`: its hashes;
//! * [`planes`]: A·w and B·w of one partition, compact; [`synthesis`]: both together, as they go to a prover;
//! * [`compare`]: whether those are what the circuit itself computes;
//! * [`r1cs`]: the constraint matrices of a circuit, recorded once and kept in a file; their values at a witness;
//! * [`path`]: where in a circuit a constraint comes from;
//! * [`assignment`]: witness and constraint values of one partition in plain form, the reference for both;
//! * [`circuit`], [`registered`]: names and tables;
//! * [`sample`], [`phantom`]: C1 outputs, bundled real ones and made-up ones of any sector size.

pub mod assignment;
pub mod bitmap;
pub mod c1;
pub mod circuit;
pub mod compare;
pub mod error;
mod native;
pub mod path;
pub mod phantom;
pub mod planes;
pub mod porep;
mod poseidon;
pub mod r1cs;
pub mod registered;
pub mod sample;
pub mod synthesis;
mod visit;
pub mod witness;
