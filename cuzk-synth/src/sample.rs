//! Real C1 outputs of 2 KiB sectors, bundled for the demonstration, the tests and the benches.

use crate::porep::Claims;

/// A C1 output and what a request for it says.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// For messages.
    pub name: &'static str,
    /// The payload, in its envelope.
    pub c1: &'static [u8],
    /// What a right request claims.
    pub claims: Claims,
}

macro_rules! samples {
    ($($file:literal, proof $registered_proof:literal, sector $sector_number:literal;)*) => {
        /// All bundled samples: two of the variant in general use, one synthetic, one V1.
        pub const ALL: &[Sample] = &[$(Sample {
            name: $file,
            c1: include_bytes!(concat!("../samples/c1-2KiB-", $file, ".json")),
            claims: Claims {
                sector_size: 2048,
                registered_proof: $registered_proof,
                sector_number: $sector_number,
                miner_id: 1000,
            },
        }),*];
    };
}

samples! {
    "v1_1-miner1000-sector42", proof 5, sector 42;
    "v1_1-miner1000-sector43", proof 5, sector 43;
    "synthetic-miner1000-sector45", proof 10, sector 45;
    "v1-miner1000-sector44", proof 0, sector 44;
}
