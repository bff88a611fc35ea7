//! Accepting connections on sockets that somebody else has bound.
//!
//! The handshake of a connection is made beside the accepting, within a time limit, so that a slow or silent client
//! holds up nobody but itself. Each listener has a bound on its connections, those in their handshake included; the
//! ones beyond it are closed at once, so that a client learns of it instead of waiting.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Sleep,
};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream, wrappers::UnixListenerStream};
use tonic::transport::server::{Connected, TcpIncoming};

use super::seldom::Seldom;
use crate::access::Peer;

/// How long to wait after an `accept` that failed for want of resources, such as file descriptors: they come back when
/// connections close. Also bounds the log to one line in this time.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// TCP keepalive: notices a peer that vanished without a word.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// How long a client may take for the TLS handshake, and again for the first bytes of its first request.
const OPENING: Duration = Duration::from_secs(10);
/// Any protocol that is spoken here begins with at least so many bytes (`GET / HTTP/1.1` and a line's end).
const OPENING_BYTES: usize = 16;

/// What bytes go through.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection after its handshake.
pub struct Secured {
    /// The bytes in clear.
    pub io: Box<dyn Io>,
    /// The subject of the client's certificate, if it showed one and that has been verified.
    pub certificate: Option<Arc<str>>,
}

/// The handshake in progress.
pub type Handshake = Pin<Box<dyn Future<Output = io::Result<Secured>> + Send>>;

/// Makes TCP connections secure: the port behind which TLS stands.
pub trait Secure: Send + Sync + fmt::Debug {
    /// Begins the handshake of the server's side. Its time is limited by the caller.
    fn handshake(&self, stream: TcpStream) -> Handshake;
}

/// A bound socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// TCP, in plain text or secured.
    Tcp(TcpListener, Option<Arc<dyn Secure>>),
    /// A unix socket; its file is the caller's.
    Unix(UnixListener),
}

/// A connection that is ready for its first request.
pub struct Connection {
    io: Box<dyn Io>,
    peer: Peer,
    /// When the first bytes must be there, and how many are missing.
    opening: Option<(Pin<Box<Sleep>>, usize)>,
    _place: OwnedSemaphorePermit,
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener, None)
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
            Self::Tcp(listener, None) => listener.local_addr().map(|a| format!("tcp {a}")),
            Self::Tcp(listener, Some(_)) => listener.local_addr().map(|a| format!("tls {a}")),
            Self::Unix(listener) => listener.local_addr().map(|a| format!("unix {a:?}")),
        };
        f.write_str(text.as_deref().unwrap_or("a socket"))
    }
}

impl Listener {
    /// The connections of this socket, `most` at once. Must be called within a runtime; dropping the stream closes the
    /// socket and abandons handshakes.
    pub fn connections(self, most: usize) -> Connections {
        let (ready, connections) = mpsc::channel(1);
        tokio::spawn(accept(self, most, ready));
        ReceiverStream::new(connections)
    }
}

/// Connections as they become ready. Failed ones are not in it.
pub type Connections = ReceiverStream<io::Result<Connection>>;

async fn accept(listener: Listener, most: usize, ready: mpsc::Sender<io::Result<Connection>>) {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let (full, failed) = (Seldom::default(), Arc::new(Seldom::default()));
    let name = listener.to_string();
    let take_place = || {
        let place = places.clone().try_acquire_owned().ok();
        if place.is_none()
            && let Some(times) = full.now(Instant::now())
        {
            tracing::warn!(
                listener = name,
                most,
                times,
                "connections refused: there are limits.max_connections already"
            );
        }
        place
    };
    match listener {
        Listener::Tcp(listener, secure) => {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(TCP_KEEPALIVE));
            let mut incoming = std::pin::pin!(incoming.then(paced));
            while let Some(accepted) = next(&mut incoming, &ready).await {
                let Ok(stream) = accepted else { continue };
                let (Some(place), Ok(address)) = (take_place(), stream.peer_addr()) else { continue };
                let (secure, ready, failed) = (secure.clone(), ready.clone(), failed.clone());
                tokio::spawn(async move {
                    let opened = tokio::select! {
                        opened = open(stream, secure) => opened,
                        () = ready.closed() => return,
                    };
                    match opened {
                        Ok(Secured { io, certificate }) => {
                            let peer = Peer { certificate, ..Peer::tcp(address) };
                            // Nobody takes it any more when the server ends.
                            let _ = ready.send(Ok(Connection::new(io, peer, place))).await;
                        }
                        Err(error) => {
                            if let Some(times) = failed.now(Instant::now()) {
                                tracing::debug!(%address, times, "no secure connection: {error}");
                            }
                        }
                    }
                });
            }
        }
        Listener::Unix(listener) => {
            let mut incoming = std::pin::pin!(UnixListenerStream::new(listener).then(paced));
            while let Some(accepted) = next(&mut incoming, &ready).await {
                let Ok(stream) = accepted else { continue };
                let Some(place) = take_place() else { continue };
                let who = stream.peer_cred().ok();
                let peer = Peer::unix(who.map(|w| w.uid()), who.and_then(|w| w.pid()));
                if ready.send(Ok(Connection::new(Box::new(stream), peer, place))).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The next connection, until nobody wants one any more.
async fn next<S: Stream + Unpin>(incoming: &mut S, ready: &mpsc::Sender<io::Result<Connection>>) -> Option<S::Item> {
    tokio::select! {
        accepted = incoming.next() => accepted,
        () = ready.closed() => None,
    }
}

async fn open(stream: TcpStream, secure: Option<Arc<dyn Secure>>) -> io::Result<Secured> {
    let Some(secure) = secure else { return Ok(Secured { io: Box::new(stream), certificate: None }) };
    match tokio::time::timeout(OPENING, secure.handshake(stream)).await {
        Ok(opened) => opened,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")),
    }
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

impl Connection {
    fn new(io: Box<dyn Io>, peer: Peer, place: OwnedSemaphorePermit) -> Self {
        let opening = Some((Box::pin(tokio::time::sleep(OPENING)), OPENING_BYTES));
        Self { io, peer, opening, _place: place }
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({:?})", self.peer)
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        let Some((limit, missing)) = &mut self.opening else { return read };
        if read.is_pending() {
            ready!(limit.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was asked")));
        }
        *missing = missing.saturating_sub(buffer.filled().len() - before);
        if *missing == 0 {
            self.opening = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
