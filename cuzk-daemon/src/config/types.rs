//! The types of single keys that are neither numbers nor units.

use std::{fmt, path::PathBuf};

use toml::Value;
use tracing_subscriber::EnvFilter;

use cuzk_synth::{circuit::CircuitId, r1cs::Check};

use super::{
    setting::{Setting, from_string, mismatch},
    units::ByteSize,
};
use crate::{
    fetch::mirror::Mirror,
    listen::{AddressError, Endpoint},
};

/// How much host memory the daemon may plan with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBudget {
    /// What the machine and its control group have, less the safety margin.
    Auto,
    /// A fixed size.
    Fixed(ByteSize),
}

/// Whether proofs are made on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuPolicy {
    /// Only on a GPU; the daemon does not start without one.
    Required,
    /// On a GPU where there is one, otherwise on the CPU.
    Prefer,
    /// Only on the CPU.
    Never,
}

/// Where accepted jobs live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// On disk: they survive a restart.
    Disk,
    /// In memory: they do not.
    Memory,
}

/// The folder of the job store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePath {
    /// The state folder that the supervisor or the user has for programs.
    Auto,
    /// This one.
    Fixed(PathBuf),
}

/// What is done about a damaged job store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedStore {
    /// The daemon does not start.
    Refuse,
    /// Its files get other names, and an empty store is begun.
    MoveAside,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Which log lines are written: a level for cuzk's own code (libraries stay at `warn`), `target=level` directives, or a
/// level with directives behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel(String);

/// One GPU: its index, its PCI address or its UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The position in the driver's enumeration.
    Index(u32),
    /// Anything else; the device code knows what to make of it.
    Name(String),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A device and the only circuits it takes, written "0=porep-32g+porep-64g".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The device's ordinal or id.
    pub device: String,
    /// At least one.
    pub circuits: Vec<CircuitId>,
}

/// The permission bits of a unix socket, written in octal as for `chmod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(pub u32);

impl LogLevel {
    /// The directives for a log filter.
    pub fn directives(&self) -> String {
        let (level, more) = self.0.split_at(self.0.find(',').unwrap_or(self.0.len()));
        if !LEVELS.contains(&level) {
            return self.0.clone();
        }
        let own = OWN_TARGETS.map(|target| format!(",{target}={level}"));
        // Libraries log more than operators can read below this level; never more than was asked for, either.
        let libraries = match level {
            quiet @ ("off" | "error") => quiet,
            _ => "warn",
        };
        libraries.to_owned() + &own.concat() + more
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Setting for Endpoint {
    const EXPECTS: &'static str = "an address such as \"127.0.0.1:9820\" or \"unix:///run/cuzk/cuzk.sock\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, str::parse::<Self>)
    }

    fn to_toml(&self) -> Value {
        self.to_string().into()
    }
}

impl Setting for Option<Endpoint> {
    const EXPECTS: &'static str =
        "an address such as \"127.0.0.1:9821\" or \"unix:///run/cuzk/http.sock\", or \"\" for none";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|e: AddressError| e.to_string()),
            None => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        self.as_ref().map_or(String::new(), Endpoint::to_string).into()
    }
}

impl Setting for Mirror {
    const EXPECTS: &'static str =
        "a URL such as \"https://mirror.example/params/\" or \"https://gateway.example/ipfs/{cid}\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, |text| text.parse().map_err(|error| format!("{text:?} {error}")))
    }

    fn to_toml(&self) -> Value {
        self.to_string().into()
    }
}

impl Setting for MemoryBudget {
    const EXPECTS: &'static str = "\"auto\" or a size such as \"256GiB\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, |text| match text {
            "auto" => Ok(Self::Auto),
            size => size.parse().map(Self::Fixed),
        })
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Fixed(size) => size.to_toml(),
        }
    }
}

impl Setting for GpuPolicy {
    const EXPECTS: &'static str = "\"required\", \"prefer\" or \"never\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("required") => Ok(Self::Required),
            Some("prefer") => Ok(Self::Prefer),
            Some("never") => Ok(Self::Never),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Required => "required",
            Self::Prefer => "prefer",
            Self::Never => "never",
        }
        .into()
    }
}

impl Setting for StoreKind {
    const EXPECTS: &'static str = "\"disk\" or \"memory\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("disk") => Ok(Self::Disk),
            Some("memory") => Ok(Self::Memory),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
        }
        .into()
    }
}

impl Setting for StorePath {
    const EXPECTS: &'static str = "\"auto\" or an absolute path";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("auto") => Ok(Self::Auto),
            _ => PathBuf::from_toml(value).map(Self::Fixed).map_err(|_| mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Fixed(path) => path.to_toml(),
        }
    }
}

impl Setting for DamagedStore {
    const EXPECTS: &'static str = "\"refuse\" or \"move_aside\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("refuse") => Ok(Self::Refuse),
            Some("move_aside") => Ok(Self::MoveAside),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Refuse => "refuse",
            Self::MoveAside => "move_aside",
        }
        .into()
    }
}

impl Setting for Check {
    const EXPECTS: &'static str = "\"off\", \"sampled\" or \"full\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("off") => Ok(Self::Off),
            Some("sampled") => Ok(Self::Sampled),
            Some("full") => Ok(Self::Full),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Off => "off",
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
        .into()
    }
}

impl Setting for LogFormat {
    const EXPECTS: &'static str = "\"text\" or \"json\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("text") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
        .into()
    }
}

impl Setting for LogLevel {
    const EXPECTS: &'static str =
        "\"error\", \"warn\", \"info\", \"debug\", \"trace\", \"off\" or directives such as \"warn,cuzk_server=debug\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, |text| {
            let level = text.to_ascii_lowercase();
            if LEVELS.contains(&level.as_str()) {
                return Ok(Self(level));
            }
            // A misspelt level is also a well-formed directive (for a target of that name): only `=` tells.
            match text.contains('=') && EnvFilter::try_new(text).is_ok() {
                true => Ok(Self(text.to_owned())),
                false => Err(mismatch::<Self>(value)),
            }
        })
    }

    fn to_toml(&self) -> Value {
        self.0.as_str().into()
    }
}

impl Setting for DeviceName {
    const EXPECTS: &'static str = "a GPU's index, PCI address or UUID";

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(_) => u32::from_toml(value).map(Self::Index),
            Value::String(text) if !text.trim().is_empty() => Ok(match text.trim().parse() {
                Ok(index) => Self::Index(index),
                Err(_) => Self::Name(text.trim().to_owned()),
            }),
            other => Err(mismatch::<Self>(other)),
        }
    }

    fn to_toml(&self) -> Value {
        match self {
            Self::Index(index) => index.to_toml(),
            Self::Name(name) => name.as_str().into(),
        }
    }
}

impl Setting for Affinity {
    const EXPECTS: &'static str = "a device and its circuits such as \"0=porep-32g+porep-64g\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        from_string(value, |text| {
            let (device, circuits) = text.split_once('=').ok_or_else(|| mismatch::<Self>(value))?;
            let circuits: Result<Vec<CircuitId>, _> = circuits.split('+').map(|c| c.trim().parse()).collect();
            let circuits = circuits.map_err(|error| format!("{error}"))?;
            let device = device.trim().to_owned();
            if device.is_empty() { Err(mismatch::<Self>(value)) } else { Ok(Self { device, circuits }) }
        })
    }

    fn to_toml(&self) -> Value {
        let circuits: Vec<String> = self.circuits.iter().map(CircuitId::to_string).collect();
        format!("{}={}", self.device, circuits.join("+")).into()
    }
}

impl Setting for SocketMode {
    const EXPECTS: &'static str = "octal permission bits as text, such as \"0660\"";

    fn from_toml(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| mismatch::<Self>(value))?;
        match u32::from_str_radix(text, 8) {
            // Without the owner's own bits nobody could connect, and set-id bits mean nothing on a socket.
            Ok(mode) if text.len() <= 4 && mode <= 0o777 && mode & 0o600 == 0o600 => Ok(Self(mode)),
            _ => Err(mismatch::<Self>(value)),
        }
    }

    fn to_toml(&self) -> Value {
        format!("{:04o}", self.0).into()
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

const OWN_TARGETS: [&str; 6] = ["cuzk_daemon", "cuzk_server", "cuzk_gpu", "cuzk_synth", "audit", "cuzk_timing"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Setting>(text: &str) -> Result<T, String> {
        T::from_toml(&text.into())
    }

    #[test]
    fn a_level_keeps_the_libraries_quiet() {
        let directives = |text| read::<LogLevel>(text).map(|l| l.directives());
        assert_eq!(
            directives("info").as_deref(),
            Ok("warn,cuzk_daemon=info,cuzk_server=info,cuzk_gpu=info,cuzk_synth=info,audit=info,cuzk_timing=info")
        );
        assert!(directives("ERROR").is_ok_and(|d| d.starts_with("error,cuzk_daemon=error")));
        let with_more = directives("info,h2=debug,cuzk_timing=debug");
        assert!(with_more.is_ok_and(|d| d == directives("info").unwrap() + ",h2=debug,cuzk_timing=debug"));
        assert_eq!(directives("h2=debug,info").as_deref(), Ok("h2=debug,info"));
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for text in ["inof", "verbose", "", "cuzk_server=loud", "a=b=c"] {
            assert!(read::<LogLevel>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_level_makes_a_filter() {
        for level in LEVELS {
            let directives = read::<LogLevel>(level).map(|l| l.directives());
            assert!(directives.is_ok_and(|d| EnvFilter::try_new(d).is_ok()), "{level}");
        }
    }

    #[test]
    fn socket_modes_are_octal() {
        assert_eq!(read("0660"), Ok(SocketMode(0o660)));
        assert_eq!(read("777"), Ok(SocketMode(0o777)));
        for text in ["", "0880", "4660", "0060", "00660", "rw-"] {
            assert!(read::<SocketMode>(text).is_err(), "{text}");
        }
        // A TOML integer 660 would be read in decimal.
        assert!(SocketMode::from_toml(&Value::Integer(660)).is_err());
    }

    #[test]
    fn affinities_read_back() {
        let affinity = read::<Affinity>(" 0 = porep-32g + porep-64g").expect("legal");
        assert_eq!((affinity.device.as_str(), affinity.circuits.len()), ("0", 2));
        assert_eq!(read::<Affinity>(affinity.to_toml().as_str().expect("text")), Ok(affinity));
        for text in ["0", "=porep-32g", "0=", "0=porep-33g", "0=porep-32g+"] {
            assert!(read::<Affinity>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mirrors_are_refused_with_the_reason() {
        assert!(read::<Mirror>("https://h/{cid}").is_ok());
        assert!(read::<Mirror>("https://u:p@h").is_err_and(|error| error.contains("password")));
        assert!(Mirror::from_toml(&Value::Integer(1)).is_err_and(|error| error.contains("expected a URL")));
    }

    #[test]
    fn devices_by_index_or_name() {
        assert_eq!(DeviceName::from_toml(&Value::Integer(1)), Ok(DeviceName::Index(1)));
        assert_eq!(read("1"), Ok(DeviceName::Index(1)));
        assert_eq!(read("GPU-5e"), Ok(DeviceName::Name("GPU-5e".into())));
        assert!(DeviceName::from_toml(&Value::Integer(-1)).is_err());
        assert!(read::<DeviceName>(" ").is_err());
    }
}
