//! Accepting connections on sockets that somebody else has bound.

use std::{fmt, io, time::Duration};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::{Stream, StreamExt, wrappers::UnixListenerStream};
use tonic::transport::server::TcpIncoming;

/// How long to wait after an `accept` that failed for want of resources, such as file descriptors: they come back when
/// connections close. Also bounds the log to one line in this time.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// TCP keepalive: notices a peer that vanished without a word.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// A bound socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// TCP, in plain text.
    Tcp(TcpListener),
    /// A unix socket; its file is the caller's.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Tcp(listener) => listener.local_addr().map(|a| format!("tcp {a}")),
            Self::Unix(listener) => listener.local_addr().map(|a| format!("unix {a:?}")),
        };
        f.write_str(text.as_deref().unwrap_or("a socket"))
    }
}

/// The connections of a TCP socket.
pub(super) fn tcp(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(TCP_KEEPALIVE));
    incoming.then(paced)
}

/// The connections of a unix socket.
pub(super) fn unix(listener: UnixListener) -> impl Stream<Item = io::Result<UnixStream>> {
    UnixListenerStream::new(listener).then(paced)
}

/// The server goes on after any failed `accept`; this keeps it from doing so a million times a second.
async fn paced<IO>(accepted: io::Result<IO>) -> io::Result<IO> {
    if let Err(error) = &accepted
        && !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
    {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(AFTER_FAILURE).await;
    }
    accepted
}
