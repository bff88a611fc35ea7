//! How one value is read from TOML, read from a flag or variable, and written back.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use cuzk_synth::circuit::CircuitId;
use toml::Value;

use super::units::{ByteSize, Span};

/// A type that a configuration key can have.
pub trait Setting: Sized {
    /// What a value looks like, as it stands in error messages after "expected".
    const EXPECTS: &'static str;

    /// Where the key is accepted but has no effect: why.
    const INERT: Option<&'static str> = None;

    /// Reads a TOML value; the error is one line and says why not.
    fn from_toml(value: &Value) -> Result<Self, String>;

    /// Reads the text of a flag or an environment variable, which needs no quotes.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_toml(&Value::String(text.to_owned()))
    }

    /// The TOML value that reads back as this one.
    fn to_toml(&self) -> Value;
}

/// A list which may be written as one bare value: `"a"` means `["a"]`. As text: comma-separated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

/// A key that other daemons have and ours reads, checks and does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inert<T>(pub T);

/// The error for a value of another type or shape.
pub(super) fn mismatch<T: Setting>(found: &Value) -> String {
    let shown = match found {
        Value::String(s) => format!("the text {s:?}"),
        Value::Integer(i) => format!("the integer {i}"),
        Value::Float(x) => format!("the number {x}"),
        Value::Boolean(b) => format!("{b}"),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    };
    format!("expected {}, found {shown}", T::EXPECTS)
}

/// Reads a type whose text form says everything; `parse` gives the reason why a text will not do.
pub(super) fn from_string<T: Setting, E: ToString>(
    value: &Value,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, String> {
    match value {
        Value::String(text) => parse(text).map_err(|e| e.to_string()),
        other => Err(mismatch::<T>(other)),
    }
}

impl Setting for bool {
    const EXPECTS: &'static str = "true or false";

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| mismatch::<Self>(value))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| mismatch::<Self>(&text.into()))
    }

    fn to_toml(&self) -> Value {
        (*self).into()
    }
}

impl Setting for u32 {
    const EXPECTS: &'static str = "an integer from 0 to 4294967295";

    fn from_toml(value: &Value) -> Result<Self, String> {
        let number = value.as_integer().ok_or_else(|| mismatch::<Self>(value))?;
        number.try_into().map_err(|_| mismatch::<Self>(value))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| mismatch::<Self>(&text.into()))
    }

    fn to_toml(&self) -> Value {
        i64::from(*self).into()
    }
}

impl Setting for NonZeroU32 {
    const EXPECTS: &'static str = "an integer from 1 to 4294967295";

    fn from_toml(value: &Value) -> Result<Self, String> {
        let number = u32::from_toml(value).map_err(|_| mismatch::<Self>(value))?;
        Self::new(number).ok_or_else(|| mismatch::<Self>(value))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| mismatch::<Self>(&text.into()))
    }

    fn to_toml(&self) -> Value {
        self.get().to_toml()
    }
}

impl Setting for PathBuf {
    const EXPECTS: &'static str = "an absolute path";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, |text| {
            // A relative path would mean another directory under systemd than in a terminal.
            match Path::new(text).is_absolute() {
                true => Ok(Self::from(text)),
                false => Err(mismatch::<Self>(value)),
            }
        })
    }

    fn to_toml(&self) -> Value {
        self.display().to_string().into()
    }
}

impl Setting for Option<PathBuf> {
    const EXPECTS: &'static str = "an absolute path, or \"\" for none";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("") => Ok(None),
            Some(text) if Path::new(text).is_absolute() => Ok(Some(text.into())),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        self.as_ref().map_or(String::new(), |path| path.display().to_string()).into()
    }
}

impl Setting for Option<String> {
    const EXPECTS: &'static str = "a name or number as text, or \"\" for none";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some(text) if text.chars().any(|c| c.is_whitespace() || c.is_control()) => Err(mismatch::<Self>(value)),
            Some(text) => Ok((!text.is_empty()).then(|| text.to_owned())),
            None => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        self.as_deref().unwrap_or_default().into()
    }
}

impl Setting for ByteSize {
    const EXPECTS: &'static str = "a size with its unit, such as \"16GiB\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, str::parse::<Self>)
    }

    fn to_toml(&self) -> Value {
        self.to_string().into()
    }
}

impl Setting for Span {
    const EXPECTS: &'static str = "a span of time with its unit, such as \"5m\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, str::parse::<Self>)
    }

    fn to_toml(&self) -> Value {
        self.to_string().into()
    }
}

impl Setting for CircuitId {
    const EXPECTS: &'static str = "a circuit id such as \"porep-32g\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, str::parse::<Self>)
    }

    fn to_toml(&self) -> Value {
        self.to_string().into()
    }
}

impl<T: Setting> Setting for OneOrMany<T> {
    const EXPECTS: &'static str = T::EXPECTS;

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => items.iter().map(T::from_toml).collect(),
            one => T::from_toml(one).map(|item| vec![item]),
        }
        .map(Self)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('[') {
            let list = format!("x = {text}");
            let table: toml::Table =
                list.parse().map_err(|e: toml::de::Error| format!("not a list: {}", e.message()))?;
            return Self::from_toml(&table["x"]);
        }
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(T::from_text).collect::<Result<_, _>>().map(Self)
    }

    fn to_toml(&self) -> Value {
        Value::Array(self.0.iter().map(T::to_toml).collect())
    }
}

impl<T: Setting> Setting for Inert<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    const INERT: Option<&'static str> = Some(
        "has no effect here: each partition starts as soon as memory admits it, and none waits for a batch to fill",
    );

    fn from_toml(value: &Value) -> Result<Self, String> {
        T::from_toml(value).map(Self)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Self)
    }

    fn to_toml(&self) -> Value {
        self.0.to_toml()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_text_are_comma_separated_or_toml() {
        let many = |text: &str| OneOrMany::<CircuitId>::from_text(text).map(|l| l.0.len());
        assert_eq!(many(""), Ok(0));
        assert_eq!(many("porep-2k"), Ok(1));
        assert_eq!(many("porep-2k, porep-32g"), Ok(2));
        assert_eq!(many(r#"["porep-2k", "porep-32g"]"#), Ok(2));
        assert!(many("porep-3k").unwrap_err().contains("porep-3k"));
        assert!(many("[porep-2k").unwrap_err().starts_with("not a list"));
    }

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(u32::from_toml(&Value::Integer(7)), Ok(7));
        assert!(u32::from_toml(&Value::Integer(-1)).unwrap_err().contains("-1"));
        assert!(u32::from_toml(&Value::Integer(1 << 32)).is_err());
        assert!(u32::from_toml(&"7".into()).unwrap_err().contains("the text \"7\""));
        assert_eq!(u32::from_text("7"), Ok(7));
        assert!(NonZeroU32::from_toml(&Value::Integer(0)).is_err());
        assert!(NonZeroU32::from_text("0").is_err());
    }

    #[test]
    fn relative_paths_are_refused() {
        assert!(PathBuf::from_text("params").unwrap_err().contains("absolute"));
        assert_eq!(PathBuf::from_text("/p"), Ok(PathBuf::from("/p")));
    }
}
