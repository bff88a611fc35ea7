//! The addresses a daemon listens at and a client connects to, as text.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

/// Where a daemon listens: `"127.0.0.1:9820"` or `"unix:///run/cuzk/cuzk.sock"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A TCP socket. Port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// A unix socket at an absolute path.
    Unix(PathBuf),
}

/// Where a client finds a daemon: as for [`Endpoint`], but a TCP host may be a name, with `http://` in front or, for TLS,
/// `https://` or `tls://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `host:port`, in plain text.
    Tcp(String),
    /// `host:port`, with TLS.
    Tls(String),
    /// A unix socket.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A unix address without an absolute path.
    #[error("{0:?} has no absolute path; write unix:///run/cuzk/cuzk.sock (three slashes)")]
    RelativeSocket(String),
    /// A host where only an IP address will do.
    #[error("{0:?} is not IP:port; write 127.0.0.1:9820, [::1]:9820 or unix:///run/cuzk/cuzk.sock")]
    NotIpAndPort(String),
    /// A host without a port, or something else.
    #[error("{0:?} is not host:port; write 127.0.0.1:9820, https://host:9820 or unix:///run/cuzk/cuzk.sock")]
    NotHostAndPort(String),
}

impl Endpoint {
    /// Whether others than this machine's users can reach it.
    pub fn is_exposed(&self) -> bool {
        match self {
            // An IPv4 loopback address in IPv6 dress is loopback too.
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => false,
        }
    }
}

impl FromStr for Endpoint {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = unix_path(text)? {
            return Ok(Self::Unix(path));
        }
        let bare = text.strip_prefix("http://").unwrap_or(text);
        // Other names are not resolved: what a listener binds to must not depend on a name server.
        if let Some(port) = bare.strip_prefix("localhost:").and_then(|p| p.parse().ok()) {
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        bare.parse().map(Self::Tcp).map_err(|_| AddressError::NotIpAndPort(text.into()))
    }
}

impl FromStr for Target {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = unix_path(text)? {
            return Ok(Self::Unix(path));
        }
        let secure = text.strip_prefix("https://").or_else(|| text.strip_prefix("tls://"));
        let bare = secure.or_else(|| text.strip_prefix("http://")).unwrap_or(text);
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        let well_formed = bare.rsplit_once(':').is_some_and(|(host, port)| {
            let bracketed = host.starts_with('[') && host.ends_with(']');
            let plain = !host.is_empty() && !host.contains([':', '/', '@', '?', '#', ' ']);
            (bracketed || plain) && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        match well_formed {
            true if secure.is_some() => Ok(Self::Tls(bare.to_owned())),
            true => Ok(Self::Tcp(bare.to_owned())),
            false => Err(AddressError::NotHostAndPort(text.into())),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => authority.fmt(f),
            Self::Tls(authority) => write!(f, "https://{authority}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl From<Endpoint> for Target {
    fn from(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::Tcp(address) => Self::Tcp(address.to_string()),
            Endpoint::Unix(path) => Self::Unix(path),
        }
    }
}

/// The path of `unix:///path` or `unix:/path`; `None` where the text names no unix socket.
fn unix_path(text: &str) -> Result<Option<PathBuf>, AddressError> {
    let Some(rest) = text.strip_prefix("unix:") else {
        return Ok(None);
    };
    let path = rest.strip_prefix("//").unwrap_or(rest);
    // A path that ends in a slash names a directory.
    if !path.starts_with('/') || path.ends_with('/') {
        return Err(AddressError::RelativeSocket(text.into()));
    }
    Ok(Some(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_read_back() {
        for text in ["127.0.0.1:9820", "0.0.0.0:0", "[::1]:9820", "unix:///run/cuzk/cuzk.sock"] {
            assert_eq!(text.parse::<Endpoint>().map(|e| e.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("localhost:9820".parse(), Ok(Endpoint::Tcp(([127, 0, 0, 1], 9820).into())));
        assert_eq!("unix:/run/c.sock".parse(), Ok(Endpoint::Unix("/run/c.sock".into())));
    }

    #[test]
    fn bad_listen_addresses_say_what_to_write() {
        for text in ["", "9820", ":9820", "host:9820", "127.0.0.1", "127.0.0.1:99999"] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert_eq!(error, AddressError::NotIpAndPort(text.into()));
        }
        for text in ["unix://run/cuzk.sock", "unix:", "unix:cuzk.sock", "unix:///run/"] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert_eq!(error, AddressError::RelativeSocket(text.into()));
        }
    }

    #[test]
    fn only_loopback_and_unix_are_private() {
        let exposed = |text: &str| text.parse::<Endpoint>().map(|e| e.is_exposed());
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:///s"] {
            assert_eq!(exposed(text), Ok(false), "{text}");
        }
        for text in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
            assert_eq!(exposed(text), Ok(true), "{text}");
        }
    }

    #[test]
    fn clients_take_names_and_urls() {
        for (text, want) in [
            ("http://prover:9820", "prover:9820"),
            ("http://127.0.0.1:9820/", "127.0.0.1:9820"),
            ("prover:9820", "prover:9820"),
            ("[::1]:9820", "[::1]:9820"),
            ("unix:///run/cuzk.sock", "unix:///run/cuzk.sock"),
            ("https://prover:9820/", "https://prover:9820"),
            ("tls://[::1]:9820", "https://[::1]:9820"),
        ] {
            assert_eq!(text.parse::<Target>().map(|t| t.to_string()), Ok(want.to_owned()));
        }
        for text in ["", "prover", "prover:", ":9820", "::1:9820", "http://a/b:1", "a:0", "u@h:1", "https://h"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
