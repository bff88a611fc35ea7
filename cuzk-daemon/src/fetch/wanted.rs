//! Which files a circuit needs, and what is known of them before any of it is here.

use std::{ops::RangeInclusive, path::Path};

use cuzk_gpu::params::{Digest, Files, official_cid, official_digest};
use cuzk_synth::{circuit::CircuitId, error::InputError};

/// A file to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name, the same here and at the mirrors.
    pub name: String,
    /// The digest that the network has published.
    pub digest: Digest,
    /// The content id under which the network has published it on IPFS.
    pub cid: String,
    /// How many bytes it can have.
    pub bytes: RangeInclusive<u64>,
}

/// The parameters and the verifying key of a circuit, as the network has published them.
///
/// # Errors
/// For circuits that are not built.
pub fn of_circuit(circuit: CircuitId) -> Result<Vec<Wanted>, InputError> {
    let files = Files::of(circuit, Path::new(""))?;
    let wanted = |path: &Path, bytes| {
        let digest = official_digest(path).and_then(|digest| digest.parse().ok());
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        match (name, digest, official_cid(path)) {
            (Some(name), Some(digest), Some(cid)) => Ok(Wanted { name, digest, cid: cid.to_owned(), bytes }),
            _ => Err(InputError::Unimplemented(format!("the network has published no parameters of {circuit}"))),
        }
    };
    // The small file first: a mirror that is none shows itself at once.
    Ok(vec![wanted(&files.vk, VK_BYTES)?, wanted(&files.params, PARAMS_BYTES)?])
}

/// A verifying key: 864 bytes of fixed points, a length, and a point of 96 bytes a public input. No circuit has ten
/// thousand of these.
const VK_BYTES: RangeInclusive<u64> = 864 + 4 + 96..=1 << 20;

/// Parameters: the smallest circuit's `h` alone has 2^22 - 1 points of 96 bytes. No circuit comes near a terabyte.
const PARAMS_BYTES: RangeInclusive<u64> = 96 * ((1 << 22) - 1)..=1 << 40;

#[cfg(test)]
mod tests {
    use cuzk_synth::circuit::CircuitKind;

    use super::*;

    #[test]
    fn every_porep_has_two_published_files() {
        for circuit in CircuitId::all().filter(|circuit| circuit.kind == CircuitKind::Porep) {
            let wanted = of_circuit(circuit).expect("built");
            let ends = [".vk", ".params"].map(|end| wanted.iter().filter(|w| w.name.ends_with(end)).count());
            assert_eq!(ends, [1, 1], "{circuit}");
            assert!(wanted.iter().all(|w| w.name.starts_with("v28-") && w.cid.starts_with("Qm")), "{wanted:?}");
        }
    }

    #[test]
    fn the_published_digest_is_the_one_asked_for() {
        let wanted = of_circuit("porep-2k".parse().expect("legal")).expect("built");
        assert_eq!(wanted[1].digest.to_string(), "434fb1338ecfaf0f59256f30dde4968f");
        assert_eq!(wanted[1].cid, "QmWceMgnWYLopMuM4AoGMvGEau7tNe5UK83XFjH5V9B17h");
        // The verifying key of 40 public inputs, and the 1.1 GB of the 2 KiB circuit.
        assert!(wanted[0].bytes.contains(&4708) && !wanted[0].bytes.contains(&179));
        assert!(wanted[1].bytes.contains(&1_100_000_000) && !wanted[1].bytes.contains(&322));
    }

    #[test]
    fn circuits_that_are_not_built_are_refused() {
        assert!(of_circuit("wpost-32g".parse().expect("legal")).is_err());
    }
}
