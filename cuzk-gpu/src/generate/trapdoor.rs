//! The secret of a setup, derived from a seed.

use blake2b_simd::Params;
use blstrs::Scalar;
use cuzk_synth::circuit::CircuitId;
use ff::Field;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// Version of the derivation: part of what it derives from, so that files of different versions are never confused.
pub const DERIVATION: u32 = 1;

/// The five secret scalars of a setup; none is zero.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Trapdoor {
    pub alpha: Scalar,
    pub beta: Scalar,
    pub gamma: Scalar,
    pub delta: Scalar,
    pub tau: Scalar,
}

impl Trapdoor {
    /// The trapdoor that belongs to a circuit and a seed.
    pub fn derive(circuit: CircuitId, seed: &str) -> Self {
        let hash = Params::new()
            .hash_length(32)
            .personal(b"cuzk dev params")
            .hash(format!("{DERIVATION}/{circuit}/{seed}").as_bytes());
        let key: [u8; 32] = hash.as_bytes().try_into().expect("a hash of 32 bytes");
        let mut rng = ChaCha20Rng::from_seed(key);
        let mut draw = || {
            std::iter::repeat_with(|| Scalar::random(&mut rng))
                .find(|s| !bool::from(s.is_zero()))
                .expect("the generator does not end")
        };
        Self { alpha: draw(), beta: draw(), gamma: draw(), delta: draw(), tau: draw() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_circuit_and_seed() {
        let tau = |circuit: &str, seed| Trapdoor::derive(circuit.parse().unwrap(), seed).tau;
        assert_eq!(tau("porep-2k", "x"), tau("porep-2k", "x"));
        assert_ne!(tau("porep-2k", "x"), tau("porep-2k", "y"));
        assert_ne!(tau("porep-2k", "x"), tau("porep-8m", "x"));
    }
}
