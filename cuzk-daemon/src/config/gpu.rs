//! The types of keys that are about devices.

use cuzk_gpu::cuda::{plan::BG2, points::Checks};
use toml::Value;

use super::setting::{Setting, mismatch};

/// What is checked of the points of a parameter file on their way to a device, beside its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointChecks {
    /// That they are encoded as points are.
    Off,
    /// That they are on their curve and not the identity.
    Curve,
    /// That they are in the subgroup of prime order.
    Subgroup,
}

impl PointChecks {
    /// As the device takes them.
    pub fn checks(self) -> Checks {
        match self {
            Self::Off => Checks { no_identity: false, curve: false, subgroup: false },
            Self::Curve => Checks::FILE,
            Self::Subgroup => Checks { subgroup: true, ..Checks::FILE },
        }
    }
}

impl Setting for PointChecks {
    const EXPECTS: &'static str = "\"off\", \"curve\" or \"subgroup\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("off") => Ok(Self::Off),
            Some("curve") => Ok(Self::Curve),
            Some("subgroup") => Ok(Self::Subgroup),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Off => "off",
            Self::Curve => "curve",
            Self::Subgroup => "subgroup",
        }
        .into()
    }
}

impl Setting for BG2 {
    const EXPECTS: &'static str = "\"cpu\", \"gpu\" or \"auto\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("cpu") => Ok(Self::Cpu),
            Some("gpu") => Ok(Self::Gpu),
            Some("auto") => Ok(Self::Auto),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Auto => "auto",
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_includes_those_before() {
        let checks = |text: &str| PointChecks::from_toml(&text.into()).map(PointChecks::checks);
        assert!(checks("off").is_ok_and(|c| !c.curve && !c.subgroup && !c.no_identity));
        assert_eq!(checks("curve"), Ok(Checks::FILE));
        assert!(checks("subgroup").is_ok_and(|c| c.curve && c.subgroup && c.no_identity));
        assert!(checks("all").is_err());
    }
}
