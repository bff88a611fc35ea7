//! Connections, and their end.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tokio_stream::StreamExt as _;

use super::{
    guard::Guard,
    patient::Patient,
    routes::{self, App},
    source::Source,
};
use crate::{
    access::{Access, Badges},
    grpc::{Connection, Listener},
};

/// How long a client may take to send the head of a request, and stay without sending one.
const HEAD: Duration = Duration::from_secs(30);
/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 << 10;
/// How long a client may leave bytes unread.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests at once in a connection.
const REQUESTS: u32 = 32;
/// HTTP/2 pings notice a client that is gone.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Who may read.
    pub access: Access,
    /// Connections at once.
    pub max_connections: usize,
}

/// A server of one listener, which answers from its start on: that nothing is ready yet, until it is told what to show.
/// Dropping it ends it at once.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    close: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    /// Begins to serve. Must be called within a runtime.
    pub fn start(listener: Listener, options: ServerOptions) -> Self {
        let (close, closing) = watch::channel(());
        let guard = Guard {
            access: options.access,
            badges: Badges::new(rand::random()),
            secure: matches!(listener, Listener::Tcp(_, Some(_))),
            denied: Default::default(),
        };
        let app = Arc::new(App::new(guard, closing.clone()));
        let router = routes::router(app.clone());
        let task = tokio::spawn(serve(listener, router, options.max_connections, closing));
        Self { app, close, task }
    }

    /// Shows this from now on; only the first call counts.
    pub fn show(&self, source: impl Source) {
        self.app.show(Arc::new(source));
    }

    /// Ends the streams, accepts nothing more, and waits for the answers that are under way, but not for long.
    pub async fn close(mut self, at_most: Duration) {
        // Nobody listens if it has ended by itself.
        let _ = self.close.send(());
        if tokio::time::timeout(at_most, &mut self.task).await.is_err() {
            tracing::debug!("closing the status page with connections still open");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: Listener, router: Router, most: usize, mut closing: watch::Receiver<()>) {
    let mut connections = listener.connections(most);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            _ = closing.changed() => break,
            Some(Ok(connection)) = connections.next() => {
                open.spawn(answer(connection, router.clone(), closing.clone()));
            }
            Some(_) = open.join_next() => {}
            else => break,
        }
    }
    drop(connections);
    while open.join_next().await.is_some() {}
}

async fn answer(connection: Connection, router: Router, mut closing: watch::Receiver<()>) {
    let peer = connection.peer().clone();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(REQUESTS)
        .max_header_list_size(HEAD_BYTES as u32);
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let mut served =
        std::pin::pin!(builder.serve_connection(TokioIo::new(Patient::new(connection, PATIENCE)), service));
    let ended = tokio::select! {
        ended = &mut served => ended,
        _ = closing.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!("a connection to the status page: {error}");
    }
}
