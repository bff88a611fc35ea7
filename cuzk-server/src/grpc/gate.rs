//! The gate in front of all services: who asks, whether they may, whether there is room, and a line for the audit.
//!
//! Nothing of a request's body is read before it has passed.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::seldom::Seldom;
use crate::{
    access::{Access, Denied, Need, Origin, Peer, Scope, Who, method, need},
    metrics::Requests,
};

/// When a client that found no room may come again.
const ROOM_RETRY: Duration = Duration::from_secs(1);
/// Beside those of scope admin, what the audit hears of.
const CANCEL: &str = "/cuzk.v1.ProvingEngine/CancelProof";

/// The gate, as a layer.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    access: Access,
    calls: Arc<Semaphore>,
    most_calls: usize,
    denied: Arc<Seldom>,
    requests: Requests,
}

/// What an audited call is about: its method fills it in.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject(Arc<OnceLock<String>>);

impl Subject {
    /// Says what the call is about; text of a client is made harmless.
    pub(super) fn is(&self, text: &str) {
        // A method says it once.
        let _ = self.0.set(format!("{:?}", text.chars().take(MOST_CHARS).collect::<String>()));
    }
}

impl Gate {
    /// A gate that lets `most_calls` through at once, and counts all in `requests`.
    pub(super) fn new(access: Access, most_calls: usize, requests: Requests) -> Self {
        let calls = Arc::new(Semaphore::new(most_calls.min(Semaphore::MAX_PERMITS)));
        Self { access, calls, most_calls, denied: Arc::default(), requests }
    }

    /// Who asks, if they may.
    fn admit(&self, path: &str, headers: &HeaderMap, peer: &Peer) -> Result<Who, Denied> {
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let admitted = self.access.authorize(authorization, peer, need(path));
        let who = admitted.as_ref().map_or_else(|_| Who::of_peer(peer), Clone::clone);
        // Who guesses tokens is counted as well.
        self.access.count(&who, peer, Instant::now())?;
        admitted
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, gate: self.clone() }
    }
}

/// The layer's service.
#[derive(Clone, Debug)]
pub(super) struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or(UNKNOWN);
        let needed = need(&path);
        let (requests, method) = (self.gate.requests.clone(), method(&path));
        let audited = needed == Need::Scope(Scope::Admin) || path == CANCEL;
        let who = match self.gate.admit(&path, request.headers(), &peer) {
            Ok(who) => who,
            Err(denied) => {
                if let Some(times) = self.gate.denied.now(Instant::now()) {
                    let who = Who::of_peer(&peer);
                    tracing::warn!(target: "audit", %who, from = %peer, what = %shown(&path), times, "denied: {denied}");
                }
                let status = status(&denied);
                requests.count(method, code_name(status.code()));
                return refuse(&status);
            }
        };
        let call = match (needed, self.gate.calls.clone().try_acquire_owned()) {
            (Need::Nothing, permit) => permit.ok(),
            (_, Ok(permit)) => Some(permit),
            (_, Err(_)) => {
                requests.count(method, code_name(Code::ResourceExhausted));
                let text = format!("{} calls are unfinished, of at most that many", self.gate.most_calls);
                return refuse(&with_retry(Status::resource_exhausted(text), ROOM_RETRY));
            }
        };
        let subject = Subject::default();
        // The token goes no further.
        request.headers_mut().remove(AUTHORIZATION);
        request.extensions_mut().insert(who.clone());
        request.extensions_mut().insert(subject.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            // An error comes in the headers: no message precedes it.
            let outcome = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
            requests.count(method, code_name(outcome));
            if audited {
                let about = subject.0.get().map_or("", String::as_str);
                let what = shown(&path);
                tracing::info!(target: "audit", %who, from = %peer, %what, about, ?outcome, "admin action or cancel");
            }
            // A stream is a call until its end.
            Ok(response.map(|inner| Body::new(Held { inner, _call: call })))
        })
    }
}

/// An answer that keeps its call's place.
struct Held {
    inner: Body,
    _call: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The status for a refused request.
fn status(denied: &Denied) -> Status {
    match denied {
        Denied::NoToken | Denied::UnknownToken => Status::unauthenticated(denied.to_string()),
        Denied::MissingScope { .. } => Status::permission_denied(denied.to_string()),
        Denied::TooMany { retry_after, .. } => with_retry(Status::resource_exhausted(denied.to_string()), *retry_after),
    }
}

fn with_retry(mut status: Status, after: Duration) -> Status {
    status.metadata_mut().insert(super::error::RETRY, super::error::millis(after));
    status
}

fn refuse<E: Send + 'static>(status: &Status) -> Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>> {
    let response = status.clone().into_http();
    Box::pin(async move { Ok(response) })
}

/// The method's name without its service, as far as it is harmless.
fn shown(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).take(MOST_CHARS).collect()
}

/// A code's name, as metrics have it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::Unauthenticated => "unauthenticated",
        // None of ours.
        _ => "other",
    }
}

/// A request that did not come over a connection of ours is trusted with nothing.
const UNKNOWN: Peer = Peer {
    origin: Origin::Tcp(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0)),
    certificate: None,
};

const MOST_CHARS: usize = 200;
