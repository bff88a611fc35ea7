//! Architectures of devices, as the compiler names them.

use std::{fmt, str::FromStr};

/// An architecture: 90 is sm_90, compute capability 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(u32);

/// What kernels are built and tested for: A100, RTX 30, RTX 40 and L40, H100 and H200, B200, RTX 50.
pub const RELEASED: [Arch; 6] = [Arch(80), Arch(86), Arch(89), Arch(90), Arch(100), Arch(120)];

impl Arch {
    /// From a compute capability.
    pub fn new(major: u32, minor: u32) -> Self {
        Self(10 * major + minor)
    }

    /// Whether kernels can run on it at all.
    pub fn is_supported(self) -> bool {
        self >= Self(80)
    }

    /// Whether its fp64 units run at full rate, so that kernels use the hybrid form of Fq (as `g1_batch_form.cuh` says).
    pub fn prefers_hybrid(self) -> bool {
        matches!(self.0, 80 | 90 | 100)
    }

    /// The architectures whose code this one runs: itself, and the lower ones of the same major number.
    pub fn runs(self) -> impl Iterator<Item = Self> {
        (self.0 / 10 * 10..=self.0).rev().map(Self)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("sm_").and_then(|n| n.parse().ok()).map(Self);
        number
            .filter(|arch| arch.is_supported() && arch.0 < 1000)
            .ok_or_else(|| format!("{text:?} is no architecture with kernels, such as sm_90 (sm_80 is the oldest)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_there_and_back() {
        for arch in RELEASED {
            assert_eq!(arch.to_string().parse(), Ok(arch));
        }
        assert_eq!(Arch::new(9, 0).to_string(), "sm_90");
        for bad in ["", "90", "sm_", "sm_75", "sm_90a", "compute_90", "sm_9000"] {
            assert!(bad.parse::<Arch>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_form_of_fq_is_what_the_header_says() {
        let header = include_str!("../../../kernels/g1_batch_form.cuh");
        for arch in RELEASED {
            assert_eq!(arch.prefers_hybrid(), header.contains(&format!("__CUDA_ARCH__ != {}0", arch.0)), "{arch}");
        }
    }

    #[test]
    fn code_runs_on_later_chips_of_its_family_only() {
        let names: Vec<_> = Arch::new(8, 9).runs().map(|a| a.0).collect();
        assert_eq!(names, [89, 88, 87, 86, 85, 84, 83, 82, 81, 80]);
        assert!(!Arch::new(9, 0).runs().any(|a| a == Arch::new(8, 9)));
    }
}
