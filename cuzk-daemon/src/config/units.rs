//! Sizes and spans of time as operators write them: a number and a unit, `"16GiB"`, `"500ms"`.
//!
//! The unit is compulsory. A bare number is refused instead of guessed at, because the same number means bytes to
//! one program and megabytes to the next.

use std::{fmt, str::FromStr, time::Duration};

/// A number of bytes, written with a unit: `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024) or `KB`, `MB`, `GB`,
/// `TB` (powers of 1000), in any letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// A span of time, written with a unit: `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

/// Why a text is no size or no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// There is no number in front.
    #[error("{text:?} does not begin with a number; write {example}")]
    NoNumber {
        /// The text as given.
        text: String,
        /// A text that would do.
        example: &'static str,
    },
    /// A number alone.
    #[error("{text:?} has no unit; write {example} (units: {units})")]
    NoUnit {
        /// The text as given.
        text: String,
        /// A text that would do.
        example: &'static str,
        /// All units.
        units: &'static str,
    },
    /// A number and something else.
    #[error("unknown unit {unit:?} in {text:?}; the units are {units}")]
    UnknownUnit {
        /// The text as given.
        text: String,
        /// What stands where the unit should be.
        unit: String,
        /// All units.
        units: &'static str,
    },
    /// The value does not fit.
    #[error("{text:?} is too large")]
    TooLarge {
        /// The text as given.
        text: String,
    },
}

impl ByteSize {
    /// That many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// That many times 2^20 bytes.
    pub const fn from_mib(mib: u32) -> Self {
        Self((mib as u64) << 20)
    }

    /// That many times 2^30 bytes.
    pub const fn from_gib(gib: u32) -> Self {
        Self((gib as u64) << 30)
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Span {
    /// That many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// The span as the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, factor) = SIZE_UNITS.split(text)?;
        number.checked_mul(factor).map(Self).ok_or_else(|| UnitError::TooLarge { text: text.into() })
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, factor) = TIME_UNITS.split(text)?;
        number
            .checked_mul(factor)
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| UnitError::TooLarge { text: text.into() })
    }
}

/// Exact: the largest binary unit that divides the size.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = largest_divisor(self.0, &SIZE_UNITS.units[..5]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

/// Exact: the largest unit that divides the span.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Built from a u64 of milliseconds or from seconds written in this program: it fits.
        let millis = self.0.as_millis() as u64;
        let (unit, factor) = match millis {
            0 => ("s", 1),
            _ => largest_divisor(millis, TIME_UNITS.units),
        };
        write!(f, "{}{unit}", millis / factor)
    }
}

/// The last unit in the ascending list that divides the value; the first one always does.
fn largest_divisor(value: u64, units: &[(&'static str, u64)]) -> (&'static str, u64) {
    let divides = |&&(_, factor): &&(&str, u64)| value != 0 && value.is_multiple_of(factor);
    units.iter().rev().find(divides).copied().unwrap_or(units[0])
}

struct Units {
    /// Name and factor; the first names are those that `Display` uses, ascending.
    units: &'static [(&'static str, u64)],
    names: &'static str,
    example: &'static str,
}

impl Units {
    /// The number and the factor of the unit behind it.
    fn split(&self, text: &str) -> Result<(u64, u64), UnitError> {
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..digits], trimmed[digits..].trim_start());
        if number.is_empty() {
            return Err(UnitError::NoNumber { text: text.into(), example: self.example });
        }
        if unit.is_empty() {
            return Err(UnitError::NoUnit { text: text.into(), example: self.example, units: self.names });
        }
        let Some(&(_, factor)) = self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
            return Err(UnitError::UnknownUnit { text: text.into(), unit: unit.into(), units: self.names });
        };
        // Only digits are left, so the one way to fail is overflow.
        let number = number.parse().map_err(|_| UnitError::TooLarge { text: text.into() })?;
        Ok((number, factor))
    }
}

const SIZE_UNITS: Units = Units {
    units: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
    names: "B, KiB, MiB, GiB, TiB, KB, MB, GB, TB",
    example: "\"16GiB\"",
};

const TIME_UNITS: Units = Units {
    units: &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)],
    names: "ms, s, m, h, d",
    example: "\"5m\"",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_all_units() {
        for (text, bytes) in [
            ("0B", 0),
            ("7b", 7),
            ("1KiB", 1024),
            ("256MiB", 268_435_456),
            ("16 GiB", 17_179_869_184),
            ("2tib", 2_199_023_255_552),
            ("1KB", 1_000),
            ("256GB", 256_000_000_000),
        ] {
            assert_eq!(text.parse::<ByteSize>().map(ByteSize::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn spans_in_all_units() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2 h", 7_200_000), ("1d", 86_400_000)]
        {
            let span = text.parse::<Span>().map(Span::duration);
            assert_eq!(span, Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn each_fault_has_its_error() {
        let size = |text: &str| text.parse::<ByteSize>().unwrap_err();
        assert!(matches!(size(""), UnitError::NoNumber { .. }));
        assert!(matches!(size("GiB"), UnitError::NoNumber { .. }));
        assert!(matches!(size("-1GiB"), UnitError::NoNumber { .. }));
        assert!(matches!(size("16"), UnitError::NoUnit { .. }));
        assert!(matches!(size("1.5GiB"), UnitError::UnknownUnit { .. }));
        assert!(matches!(size("5m"), UnitError::UnknownUnit { .. }));
        assert!(matches!(size("16777216TiB"), UnitError::TooLarge { .. }));
        assert!(matches!(size("99999999999999999999B"), UnitError::TooLarge { .. }));
        assert_eq!("16777215TiB".parse::<ByteSize>().map(|s| s.bytes() >> 40), Ok(16_777_215));
        assert!(matches!("5GiB".parse::<Span>().unwrap_err(), UnitError::UnknownUnit { .. }));
        assert!(matches!("300".parse::<Span>().unwrap_err(), UnitError::NoUnit { .. }));
    }

    #[test]
    fn what_is_written_reads_back() {
        for bytes in [0, 1, 1023, 1024, 1536, 5 << 30, 3 << 40, u64::MAX, 1_000_000] {
            let size = ByteSize::from_bytes(bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!(ByteSize::from_gib(5).to_string(), "5GiB");
        assert_eq!(ByteSize::from_mib(256).to_string(), "256MiB");
        for millis in [0, 1, 999, 1000, 90_000, 86_400_000] {
            let span = Span(Duration::from_millis(millis));
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        assert_eq!(Span::from_secs(300).to_string(), "5m");
        assert_eq!(Span::from_secs(0).to_string(), "0s");
    }
}
