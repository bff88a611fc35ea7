//! Which circuit a proof needs: its kind and its sector size, and the short names that operators and clients use.

use std::{fmt, str::FromStr};

/// The kinds of proof the protocol knows, one circuit family each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CircuitKind {
    /// Proof of replication (seal commit), id prefix `porep`.
    Porep,
    /// SnapDeals sector update, id prefix `snap`.
    Snap,
    /// One WindowPoSt partition, id prefix `wpost`.
    WindowPost,
    /// WinningPoSt, id prefix `winning`.
    WinningPost,
}

/// The sector sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB, development networks.
    Kib2,
    /// 8 MiB, development networks.
    Mib8,
    /// 512 MiB, development networks.
    Mib512,
    /// 32 GiB.
    Gib32,
    /// 64 GiB.
    Gib64,
}

/// A circuit, written as in `porep-32g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// The circuit family.
    pub kind: CircuitKind,
    /// The sector size that fixes its shape.
    pub size: SectorSize,
}

/// The text is no circuit id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown circuit id {0:?}: expected porep-, snap-, wpost- or winning- followed by 2k, 8m, 512m, 32g or 64g")]
pub struct UnknownCircuit(pub String);

impl CircuitKind {
    /// All kinds, in the order of the wire enum.
    pub const ALL: [Self; 4] = [Self::Porep, Self::Snap, Self::WindowPost, Self::WinningPost];

    /// The prefix of its circuit ids.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::Snap => "snap",
            Self::WindowPost => "wpost",
            Self::WinningPost => "winning",
        }
    }
}

impl SectorSize {
    /// All sizes, ascending, which is also the order of the registered proof numbers.
    pub const ALL: [Self; 5] = [Self::Kib2, Self::Mib8, Self::Mib512, Self::Gib32, Self::Gib64];

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Kib2 => 2 << 10,
            Self::Mib8 => 8 << 20,
            Self::Mib512 => 512 << 20,
            Self::Gib32 => 32 << 30,
            Self::Gib64 => 64 << 30,
        }
    }

    /// The size of that many bytes, if the network has one.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.bytes() == bytes)
    }

    /// The suffix of its circuit ids.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Kib2 => "2k",
            Self::Mib8 => "8m",
            Self::Mib512 => "512m",
            Self::Gib32 => "32g",
            Self::Gib64 => "64g",
        }
    }
}

impl CircuitId {
    /// The PoRep circuit of a sector size.
    pub const fn porep(size: SectorSize) -> Self {
        Self { kind: CircuitKind::Porep, size }
    }

    /// Every circuit id of the protocol.
    pub fn all() -> impl Iterator<Item = Self> {
        CircuitKind::ALL.into_iter().flat_map(|kind| SectorSize::ALL.into_iter().map(move |size| Self { kind, size }))
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind.prefix(), self.size.suffix())
    }
}

impl FromStr for CircuitId {
    type Err = UnknownCircuit;

    fn from_str(s: &str) -> Result<Self, UnknownCircuit> {
        Self::all().find(|id| id.to_string() == s).ok_or_else(|| UnknownCircuit(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back() {
        let all: Vec<_> = CircuitId::all().collect();
        assert_eq!(all.len(), 20);
        for id in all {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!("porep-32g".parse(), Ok(CircuitId::porep(SectorSize::Gib32)));
    }

    #[test]
    fn other_text_is_refused_by_name() {
        for text in ["", "porep", "porep-", "porep-1k", "Porep-2k", "porep-2k "] {
            let error = text.parse::<CircuitId>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")));
        }
    }

    #[test]
    fn sizes_are_found_by_bytes() {
        assert_eq!(SectorSize::from_bytes(34_359_738_368), Some(SectorSize::Gib32));
        assert_eq!(SectorSize::from_bytes(2049), None);
    }
}
