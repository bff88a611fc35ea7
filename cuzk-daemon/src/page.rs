//! The status page: its socket, and its life beside the daemon's. What is on it is the room of `cuzk_server::http`.

use std::{fmt, time::Duration};

use cuzk_server::http::{Server, ServerOptions, Source};

use crate::{
    access::{Guard, tls},
    config::Config,
    listen::{self, BindError, Endpoint, UnixGuard},
    run,
};

/// The status page at its address. Dropping it ends it at once.
#[derive(Debug)]
pub(crate) struct Page {
    server: Server,
    endpoint: Endpoint,
    secure: bool,
    /// Dropped last: it removes the socket file.
    _guard: Option<UnixGuard>,
}

impl Page {
    /// Binds the address, if one is configured, and answers there from now on: that nothing is ready yet. Must be called
    /// within a runtime.
    pub(crate) fn open(config: &Config, guard: &Guard) -> Result<Option<Self>, BindError> {
        let Some(at) = &config.http.listen else { return Ok(None) };
        let listener = listen::bind(at, &run::permissions(config))?;
        let endpoint = listener.endpoint().map_err(|source| BindError::Refused { endpoint: at.clone(), source })?;
        let secure = guard.tls.as_ref().map(|tls| tls.acceptor(tls::WEB));
        let is_secure = secure.is_some();
        let (listener, file) = listen::hand_over(listener, secure)?;
        let options = ServerOptions {
            access: guard.access.clone(),
            max_connections: config.limits.max_connections.get() as usize,
        };
        Ok(Some(Self { server: Server::start(listener, options), endpoint, secure: is_secure, _guard: file }))
    }

    /// Its address, with its real port.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Shows this from now on.
    pub(crate) fn show(&self, source: impl Source) {
        self.server.show(source);
    }

    /// Ends its streams and waits for answers that are under way, but not for long.
    pub(crate) async fn close(self, at_most: Duration) {
        self.server.close(at_most).await;
    }
}

/// As a browser takes it, where one can.
impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.endpoint, self.secure) {
            (Endpoint::Tcp(address), true) => write!(f, "https://{address}/"),
            (Endpoint::Tcp(address), false) => write!(f, "http://{address}/"),
            (unix, _) => unix.fmt(f),
        }
    }
}
