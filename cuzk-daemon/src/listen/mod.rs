//! Listening sockets: their addresses as text, and how they are bound.
//!
//! A unix socket is the harder kind. It is a file that outlives a crash, and another daemon may own it: see
//! [`unix`] for how it is taken over without ever taking it away from a living one.

mod activation;
mod address;
mod unix;

use std::{
    io, net,
    os::unix::net as unix_net,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::{
    activation::inherited,
    address::{AddressError, Endpoint, Target},
    unix::{Permissions, UnixGuard, bind as bind_unix},
};

use crate::access::GuardError;

/// A bound, listening, non-blocking socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP; its address is the real one where port 0 was asked for.
    Tcp(net::TcpListener),
    /// Unix. The guard removes the file when it is dropped: keep it until the last connection is done. There is none for a
    /// socket that the supervisor bound.
    Unix(unix_net::UnixListener, Option<UnixGuard>),
}

/// Why a socket was not bound. Each names the address and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The kernel refused.
    #[error("cannot listen at {endpoint}: {source}")]
    Refused {
        /// The address.
        endpoint: Endpoint,
        /// The kernel's reason.
        source: io::Error,
    },
    /// What the supervisor passed is of no use.
    #[error("the sockets that the supervisor passed (LISTEN_FDS): {0}; check the socket unit")]
    Inherited(io::Error),
    /// The supervisor passed a socket that other machines can reach.
    #[error("the supervisor passed a socket (ListenStream) at {endpoint}, which other machines can reach, and {why}")]
    Exposed {
        /// The address.
        endpoint: Endpoint,
        /// What is missing, and what to do.
        why: String,
    },
    /// Certificates or tokens are not fit for use.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Another process listens there.
    #[error("cannot listen at {endpoint}: {holder}; stop it or choose another address")]
    InUse {
        /// The address.
        endpoint: Endpoint,
        /// Who, as far as is known.
        holder: String,
    },
    /// The path holds something that is no socket.
    #[error("cannot listen at unix://{}: a {what} is there, which is left alone; move it or choose another address", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
}

impl Listener {
    /// Where clients of this machine reach it.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(match self {
            Self::Tcp(listener) => Endpoint::Tcp(listener.local_addr()?),
            Self::Unix(_, Some(guard)) => Endpoint::Unix(guard.path().to_owned()),
            Self::Unix(listener, None) => {
                let address = listener.local_addr()?;
                Endpoint::Unix(address.as_pathname().unwrap_or(Path::new("(unnamed)")).to_owned())
            }
        })
    }
}

/// Hands a socket to whoever serves on it, with the file that goes with it. TCP is secured by `secure`, if there is one.
/// Must be called within a runtime.
pub fn hand_over(
    listener: Listener,
    secure: Option<Arc<dyn cuzk_server::Secure>>,
) -> Result<(cuzk_server::Listener, Option<UnixGuard>), BindError> {
    let endpoint = listener.endpoint().map_err(BindError::Inherited)?;
    let refused = |source| BindError::Refused { endpoint, source };
    match listener {
        Listener::Tcp(l) => {
            let l = tokio::net::TcpListener::from_std(l).map_err(refused)?;
            Ok((cuzk_server::Listener::Tcp(l, secure), None))
        }
        Listener::Unix(l, guard) => {
            let l = tokio::net::UnixListener::from_std(l).map_err(refused)?;
            Ok((l.into(), guard))
        }
    }
}

/// Binds one address; `permissions` are those of a unix socket. Blocking, but not for long.
pub fn bind(endpoint: &Endpoint, permissions: &Permissions) -> Result<Listener, BindError> {
    match endpoint {
        Endpoint::Tcp(address) => bind_tcp(*address),
        Endpoint::Unix(path) => unix::bind(path, permissions).map(|(l, guard)| Listener::Unix(l, Some(guard))),
    }
}

fn bind_tcp(address: net::SocketAddr) -> Result<Listener, BindError> {
    let endpoint = Endpoint::Tcp(address);
    let bound = net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    match bound {
        Ok(listener) => Ok(Listener::Tcp(listener)),
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            Err(BindError::InUse { endpoint, holder: "another process listens there".into() })
        }
        Err(source) => Err(BindError::Refused { endpoint, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_0_becomes_a_real_port_that_nobody_else_gets() {
        let any = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        let first = bind(&any, &Permissions::mode(0o660)).expect("a free port");
        let taken = first.endpoint().expect("bound");
        assert!(matches!(&taken, Endpoint::Tcp(a) if a.port() != 0));
        let error = bind(&taken, &Permissions::mode(0o660)).expect_err("taken");
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&taken.to_string()));
    }
}
