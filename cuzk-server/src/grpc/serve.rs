//! The life of the server: listen, serve, drain, close.

use std::{future::Future, time::Duration};

use cuzk_proto::v1::{FILE_DESCRIPTOR_SET, proving_engine_server::ProvingEngineServer};
use tokio::{sync::watch, task::JoinSet};
use tonic::{
    service::Routes,
    transport::{Server, server::Router},
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::layer::util::{Identity, Stack};

use super::{gate::Gate, listener::Listener, receive::ReceiveBudget, service::Service};
use crate::{
    access::Access,
    engine::{DrainReport, Engine, Lifecycle},
    proving::Proving,
};

/// What health checks ask for by name.
const SERVICE_NAME: &str = "cuzk.v1.ProvingEngine";
/// A message's fields beside its payload: a request id, commitments, lengths.
const ENVELOPE_BYTES: usize = 1 << 20;
/// HTTP/2 pings keep proxies from cutting a quiet call, and notice dead peers.
const PING_EVERY: Duration = Duration::from_secs(30);
/// A peer that does not answer a ping is gone.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Calls at once a connection: each client that waits is one.
const STREAMS: u32 = 1024;
/// Bytes that may be under way in one call.
const STREAM_WINDOW: u32 = 1 << 20;
/// Bytes that may be under way in one connection: so many that calls which wait for a place in the receive budget do not
/// hold up `GetStatus` beside them.
const CONNECTION_WINDOW: u32 = 256 << 20;

/// How to serve. [`Default`] suits the known clients, and asks nobody who they are.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The largest payload of a message, both ways; a message may be a little larger for what is around it.
    pub max_message_bytes: usize,
    /// What a client with a larger message is told to do, such as the configuration key to change.
    pub message_limit_remedy: String,
    /// How long accepted jobs may take after the shutdown began.
    pub drain_for: Duration,
    /// How long connections may take to close after that.
    pub close_for: Duration,
    /// Who may do what.
    pub access: Access,
    /// Connections at once, of each listener.
    pub max_connections: usize,
    /// Unfinished calls at once, over all listeners; health checks do not count.
    pub max_calls: usize,
    /// How long a request's body may bring nothing before its call is ended.
    pub body_timeout: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_message_bytes: 256 << 20,
            message_limit_remedy: "raise the daemon's message limit, or send less".to_owned(),
            drain_for: Duration::from_secs(60),
            close_for: Duration::from_secs(5),
            access: Access::default(),
            max_connections: 1024,
            max_calls: 4096,
            body_timeout: Duration::from_secs(60),
        }
    }
}

/// Why serving ended too early or never began.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing to listen on.
    #[error("no listener was given: there is nothing to serve on")]
    NoListener,
    /// The descriptors that reflection shows are broken: a fault of the build.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// One server ended by itself.
    #[error("serving on {listener}: {reason}")]
    Listener {
        /// Which.
        listener: String,
        /// Why.
        reason: String,
    },
}

/// Serves an engine on sockets that are bound already, until `shutdown` resolves. Then takes no new jobs, reports
/// NOT_SERVING, goes on answering while jobs end or `drain_for` passes, cancels the rest, and closes the connections.
///
/// Dropping the future stops serving at once, without draining; connections close when their calls end.
pub async fn serve<P: Proving>(
    engine: Engine<P>,
    listeners: Vec<Listener>,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<DrainReport, ServeError> {
    if listeners.is_empty() {
        return Err(ServeError::NoListener);
    }
    // Before anybody can ask: a service without a status is answered as unknown.
    let health = HealthReporter::new();
    let mut lifecycle = engine.lifecycle();
    let at_start = lifecycle.borrow_and_update().clone();
    set_health(&health, &at_start).await;
    let routes = routes(&engine, &health, &options)?;
    let limit = message_limit(&options) as u64;
    let budget =
        ReceiveBudget::new(engine.budget().clone(), limit, &options.message_limit_remedy, options.body_timeout);
    let gate = Gate::new(options.access.clone(), options.max_calls, engine.requests().clone());
    let (close, closing) = watch::channel(());
    let mut servers = JoinSet::new();
    for listener in listeners {
        let name = listener.to_string();
        tracing::debug!(listener = name, "serving");
        let router = router(gate.clone(), budget.clone(), routes.clone());
        let connections = listener.connections(options.max_connections);
        let mut closing = closing.clone();
        let closed = async move {
            // Also when the sender is dropped, that is when this function is.
            let _ = closing.changed().await;
        };
        servers.spawn(async move {
            let served = router.serve_with_incoming_shutdown(connections, closed).await;
            (name, served)
        });
    }
    drop(closing);

    let report = tokio::select! {
        report = async { shutdown.await; engine.drain(options.drain_for).await } => report,
        () = follow_health(&health, lifecycle) => unreachable!("`engine` keeps its lifecycle going"),
        Some(ended) = servers.join_next() => return Err(ended_early(ended)),
    };
    set_health(&health, &Lifecycle::Draining).await;
    if report.cancelled > 0 {
        tracing::warn!(jobs = report.cancelled, "jobs cancelled at shutdown: their clients must submit them again");
    }
    drop(close);
    let all_closed = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(options.close_for, all_closed).await.is_err() {
        tracing::info!("closing with connections still open");
    }
    Ok(report)
}

fn routes<P: Proving>(
    engine: &Engine<P>,
    health: &HealthReporter,
    options: &ServeOptions,
) -> Result<Routes, ServeError> {
    let limit = message_limit(options);
    let service = ProvingEngineServer::new(Service::new(engine.clone()))
        .max_decoding_message_size(limit)
        .max_encoding_message_size(limit);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(Routes::new(service)
        .add_service(tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(health.clone()),
        ))
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?))
}

fn message_limit(options: &ServeOptions) -> usize {
    options.max_message_bytes.saturating_add(ENVELOPE_BYTES)
}

type Layers = Stack<ReceiveBudget, Stack<Gate, Identity>>;

fn router(gate: Gate, budget: ReceiveBudget, routes: Routes) -> Router<Layers> {
    Server::builder()
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // The first is the outermost: nothing is received of a request that may not come in.
        .layer(gate)
        .layer(budget)
        .add_routes(routes)
}

/// Lets health checks follow the engine. Ends when the engine is gone.
async fn follow_health(health: &HealthReporter, mut lifecycle: watch::Receiver<Lifecycle>) {
    while lifecycle.changed().await.is_ok() {
        let now = lifecycle.borrow_and_update().clone();
        set_health(health, &now).await;
    }
}

async fn set_health(health: &HealthReporter, lifecycle: &Lifecycle) {
    let status = match lifecycle {
        Lifecycle::Serving => ServingStatus::Serving,
        Lifecycle::Starting(_) | Lifecycle::Draining => ServingStatus::NotServing,
    };
    for name in ["", SERVICE_NAME] {
        health.set_service_status(name, status).await;
    }
}

fn ended_early(ended: Result<(String, Result<(), tonic::transport::Error>), tokio::task::JoinError>) -> ServeError {
    let (listener, reason) = match ended {
        Ok((listener, Ok(()))) => (listener, "ended without a reason".to_owned()),
        Ok((listener, Err(error))) => (listener, error.to_string()),
        Err(lost) => ("a socket".to_owned(), lost.to_string()),
    };
    ServeError::Listener { listener, reason }
}
