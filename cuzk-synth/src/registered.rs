//! The registered seal proofs: 20 numbers, assigned by the network and never changed.

use filecoin_proofs_api::RegisteredSealProof;

use crate::{
    circuit::{CircuitId, SectorSize},
    error::InputError,
};

/// What a registered seal proof number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealProof {
    /// The network's number, 0 to 19.
    pub number: u64,
    /// The sector size it is for.
    pub size: SectorSize,
    /// The protocol variant.
    pub variant: Variant,
}

/// The variants of the PoRep protocol. They share one circuit and differ in how challenges are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Proofs API 1.0, before the network's version 7.
    V1,
    /// Proofs API 1.1.
    V1_1,
    /// Synthetic PoRep (FIP-0059).
    Synthetic,
    /// Non-interactive PoRep (FIP-0092): many more challenges, aggregated proofs.
    NonInteractive,
}

impl Variant {
    const ALL: [Self; 4] = [Self::V1, Self::V1_1, Self::Synthetic, Self::NonInteractive];
}

impl SealProof {
    /// The proof of a sector size and a variant.
    pub fn new(size: SectorSize, variant: Variant) -> Self {
        // Both enumerations are in the order of the numbers.
        let number = variant as u64 * SectorSize::ALL.len() as u64 + size as u64;
        Self { number, size, variant }
    }

    /// The proof of that number.
    pub fn from_number(number: u64) -> Option<Self> {
        let index = usize::try_from(number).ok()?;
        let sizes = SectorSize::ALL.len();
        Some(Self { number, size: SectorSize::ALL[index % sizes], variant: *Variant::ALL.get(index / sizes)? })
    }

    /// The proof of that upstream name, such as `StackedDrg32GiBV1_1`.
    pub fn from_name(name: &str) -> Option<Self> {
        (0..).map_while(Self::from_number).find(|proof| proof.name() == name)
    }

    /// Its name in the C1 output. (Synthetic PoRep was published under a name with the older version in it.)
    pub fn name(self) -> String {
        format!("{:?}", self.upstream())
    }

    /// The circuit that proves it.
    pub fn circuit(self) -> CircuitId {
        CircuitId::porep(self.size)
    }

    /// The same proof in the upstream library's terms.
    pub fn upstream(self) -> RegisteredSealProof {
        use RegisteredSealProof::*;
        const TABLE: [RegisteredSealProof; 20] = [
            StackedDrg2KiBV1,
            StackedDrg8MiBV1,
            StackedDrg512MiBV1,
            StackedDrg32GiBV1,
            StackedDrg64GiBV1,
            StackedDrg2KiBV1_1,
            StackedDrg8MiBV1_1,
            StackedDrg512MiBV1_1,
            StackedDrg32GiBV1_1,
            StackedDrg64GiBV1_1,
            StackedDrg2KiBV1_1_Feat_SyntheticPoRep,
            StackedDrg8MiBV1_1_Feat_SyntheticPoRep,
            StackedDrg512MiBV1_1_Feat_SyntheticPoRep,
            StackedDrg32GiBV1_1_Feat_SyntheticPoRep,
            StackedDrg64GiBV1_1_Feat_SyntheticPoRep,
            StackedDrg2KiBV1_2_Feat_NonInteractivePoRep,
            StackedDrg8MiBV1_2_Feat_NonInteractivePoRep,
            StackedDrg512MiBV1_2_Feat_NonInteractivePoRep,
            StackedDrg32GiBV1_2_Feat_NonInteractivePoRep,
            StackedDrg64GiBV1_2_Feat_NonInteractivePoRep,
        ];
        TABLE[self.number as usize]
    }

    /// Refuses the variants that are not built.
    pub fn require_built(self) -> Result<(), InputError> {
        match self.variant {
            Variant::V1 | Variant::V1_1 | Variant::Synthetic => Ok(()),
            Variant::NonInteractive => Err(InputError::Unimplemented(format!(
                "registered proof {} ({}): non-interactive PoRep is not built",
                self.number,
                self.name()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_upstream() {
        for number in 0..20 {
            let proof = SealProof::from_number(number).unwrap();
            let upstream = proof.upstream();
            assert_eq!(u64::from(upstream.sector_size()), proof.size.bytes());
            let config = upstream.as_v1_config();
            assert_eq!(config.porep_id[..8], number.to_le_bytes());
            assert_eq!(SealProof::from_name(&proof.name()), Some(proof));
            assert_eq!(SealProof::new(proof.size, proof.variant), proof);
            assert_eq!(proof.require_built().is_err(), number >= 15, "number {number}");
        }
        assert_eq!(SealProof::from_number(20), None);
        assert_eq!(SealProof::from_number(u64::MAX), None);
        assert_eq!(SealProof::from_name("StackedDrg1KiBV1"), None);
    }
}
