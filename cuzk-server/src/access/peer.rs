//! Who is at the other end of a connection.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// Where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A process of this machine, as the kernel tells (SO_PEERCRED).
    Unix {
        /// Its user.
        uid: Option<u32>,
        /// Its id.
        pid: Option<i32>,
    },
}

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it is.
    pub origin: Origin,
    /// The subject of the certificate that it showed, which has been verified.
    pub certificate: Option<Arc<str>>,
}

/// Who asks, as an audit names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The holder of the token of this name.
    Token(Arc<str>),
    /// The holder of the certificate with this subject.
    Certificate(Arc<str>),
    /// A local process.
    User {
        /// Its user.
        uid: Option<u32>,
        /// Its id.
        pid: Option<i32>,
    },
    /// Somebody at this address.
    Address(IpAddr),
}

impl Peer {
    /// One at a TCP address, without a certificate.
    pub fn tcp(address: SocketAddr) -> Self {
        Self { origin: Origin::Tcp(address), certificate: None }
    }

    /// A local process.
    pub fn unix(uid: Option<u32>, pid: Option<i32>) -> Self {
        Self { origin: Origin::Unix { uid, pid }, certificate: None }
    }

    /// Whether it came over a unix socket.
    pub fn is_unix(&self) -> bool {
        matches!(self.origin, Origin::Unix { .. })
    }
}

impl Who {
    /// Who it is by the connection alone.
    pub fn of_peer(peer: &Peer) -> Self {
        match (&peer.certificate, &peer.origin) {
            (Some(subject), _) => Self::Certificate(subject.clone()),
            (None, Origin::Tcp(address)) => Self::Address(address.ip().to_canonical()),
            (None, Origin::Unix { uid, pid }) => Self::User { uid: *uid, pid: *pid },
        }
    }

    /// What requests are counted by: a client with many connections or processes is still one.
    pub(super) fn rate_key(&self, peer: &Peer) -> String {
        match self {
            Self::User { uid: Some(uid), .. } => format!("uid {uid}"),
            Self::User { uid: None, .. } => peer.to_string(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Tcp(address) => address.fmt(f),
            Origin::Unix { .. } => f.write_str("unix socket"),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::Certificate(subject) => write!(f, "certificate {subject:?}"),
            Self::User { uid, pid } => {
                write!(f, "uid {}", uid.map_or("?".to_owned(), |uid| uid.to_string()))?;
                write!(f, " pid {}", pid.map_or("?".to_owned(), |pid| pid.to_string()))
            }
            Self::Address(ip) => write!(f, "address {ip}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_name_that_is_known() {
        let mut peer = Peer::tcp(([10, 0, 0, 1], 7).into());
        assert_eq!(Who::of_peer(&peer).to_string(), "address 10.0.0.1");
        peer.certificate = Some("CN=node".into());
        assert_eq!(Who::of_peer(&peer).to_string(), "certificate \"CN=node\"");
        let local = Peer::unix(Some(0), Some(42));
        assert_eq!(
            (Who::of_peer(&local).to_string().as_str(), local.to_string().as_str()),
            ("uid 0 pid 42", "unix socket")
        );
    }

    #[test]
    fn processes_of_one_user_share_a_rate() {
        let key = |pid| {
            let peer = Peer::unix(Some(7), Some(pid));
            Who::of_peer(&peer).rate_key(&peer)
        };
        assert_eq!(key(1), key(2));
    }
}
