//! Bounds the bytes of large messages that are received but not yet parsed, over all connections together.
//!
//! A gRPC message says its length in the five bytes before it. A large one gets its bytes from a budget before the rest
//! of it is read; while it waits, HTTP/2 flow control holds its sender back. The budget gets them back when the method
//! lets go of the [`Received`] in the request, or when the call ends. Small messages pass: `GetStatus` never waits here.
//!
//! A sender whose message makes no progress is not waited for: its call ends, and its place is free.
//!
//! Also says what to do about a message over the limit, whose length the decoder refuses.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use crate::memory::{Budget, Reservation, Use};

/// Messages up to this size need no place in the budget.
const SMALL_BYTES: u64 = 64 << 10;
/// The budget's unit: keeps a large one within the semaphore's count.
const UNIT_BYTES: u64 = 1 << 10;
/// A compression flag and a big-endian u32 length.
const PREFIX_BYTES: usize = 5;

/// The budget, as a layer around all services.
#[derive(Clone, Debug)]
pub(super) struct ReceiveBudget {
    /// The turn of each message; the memory itself is in the books of `memory`.
    free: Arc<Semaphore>,
    units: u32,
    memory: Budget,
    limit: u64,
    remedy: Arc<str>,
    /// How long a sender may be silent.
    patience: Duration,
}

/// A message's place in the budget, if it needs one. Dropped when the message has been parsed.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(Arc<Mutex<Option<Taken>>>);

/// A turn, and the memory that goes with it.
type Taken = (OwnedSemaphorePermit, Option<Reservation>);

impl ReceiveBudget {
    /// The budget's share for all messages in reception; no message over `limit`, and `remedy` says how to raise that;
    /// a message that brings nothing for as long as `patience` is given up.
    pub(super) fn new(memory: Budget, limit: u64, remedy: &str, patience: Duration) -> Self {
        let units = (memory.shares().bodies / UNIT_BYTES).clamp(1, u64::from(u32::MAX >> 4)) as u32;
        Self { free: Arc::new(Semaphore::new(units as usize)), units, memory, limit, remedy: remedy.into(), patience }
    }

    /// The answer to a message over the limit, in place of the decoder's.
    fn explain(&self, length: u64, headers: &mut HeaderMap) {
        let out_of_range = HeaderValue::from(Code::OutOfRange as i32);
        if length <= self.limit || headers.get(Status::GRPC_STATUS) != Some(&out_of_range) {
            return;
        }
        let text = format!("the message has {length} bytes, the limit is {} bytes; {}", self.limit, self.remedy);
        if let Ok(text) = HeaderValue::from_str(&text) {
            headers.insert(Status::GRPC_MESSAGE, text);
        }
    }
}

impl<S> Layer<S> for ReceiveBudget {
    type Service = Receiving<S>;

    fn layer(&self, inner: S) -> Receiving<S> {
        Receiving { inner, budget: self.clone() }
    }
}

/// The layer's service.
#[derive(Clone, Debug)]
pub(super) struct Receiving<S> {
    inner: S,
    budget: ReceiveBudget,
}

impl<S> Service<Request<Body>> for Receiving<S>
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let budget = self.budget.clone();
        let (received, length) = (Received::default(), Arc::new(AtomicU64::new(0)));
        let mut request = request.map(|inner| {
            Body::new(MeteredBody {
                inner,
                budget: budget.clone(),
                prefix: Vec::with_capacity(PREFIX_BYTES),
                silence: None,
                waiting: None,
                received: received.clone(),
                length: length.clone(),
            })
        });
        request.extensions_mut().insert(received);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            budget.explain(length.load(Ordering::Relaxed), response.headers_mut());
            Ok(response)
        })
    }
}

type Place = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A request body that waits for its place after the first frame.
struct MeteredBody {
    inner: Body,
    budget: ReceiveBudget,
    /// What is known of the message's prefix.
    prefix: Vec<u8>,
    /// Runs while we wait for the sender; not while the sender waits for us.
    silence: Option<Pin<Box<Sleep>>>,
    /// The frame that completed the prefix, and the place it waits for.
    waiting: Option<(Frame<Bytes>, Place)>,
    received: Received,
    /// The message's length, once known; for the answer.
    length: Arc<AtomicU64>,
}

impl MeteredBody {
    /// Reads the prefix as it comes by. The length, at the moment when it becomes known.
    fn learn(&mut self, data: &[u8]) -> Option<u64> {
        if self.prefix.len() == PREFIX_BYTES {
            return None;
        }
        let missing = PREFIX_BYTES - self.prefix.len();
        self.prefix.extend_from_slice(&data[..missing.min(data.len())]);
        let [_, a, b, c, d] = self.prefix[..] else { return None };
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        self.length.store(length, Ordering::Relaxed);
        Some(length)
    }
}

impl MeteredBody {
    /// Ends when the sender has been silent for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        let patience = self.budget.patience;
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(silence.as_mut().poll(cx));
        Poll::Ready(Status::aborted(format!(
            "nothing of the message came for {} s, which is limits.body_timeout; send it again",
            patience.as_secs()
        )))
    }
}

impl http_body::Body for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.waiting.is_none() {
            let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx)? else {
                return this.poll_silence(cx).map(|status| Some(Err(status)));
            };
            this.silence = None;
            let Some(frame) = frame else { return Poll::Ready(None) };
            let length = frame.data_ref().cloned().and_then(|data| this.learn(&data));
            // Over the limit: let the decoder refuse it at once.
            let Some(length) = length.filter(|n| (SMALL_BYTES..=this.budget.limit).contains(n)) else {
                return Poll::Ready(Some(Ok(frame)));
            };
            // A message larger than the whole budget gets the whole budget.
            let units = length.div_ceil(UNIT_BYTES).min(u64::from(this.budget.units)) as u32;
            this.waiting = Some((frame, Box::pin(this.budget.free.clone().acquire_many_owned(units))));
        }
        if let Some((_, place)) = &mut this.waiting {
            let place = ready!(place.as_mut().poll(cx));
            // A message above the whole share is in the books with the whole share.
            let bytes = this.length.load(Ordering::Relaxed).min(this.budget.memory.free_for(Use::Body));
            let reservation = this.budget.memory.try_reserve(Use::Body, bytes);
            // The semaphore is never closed, so there is a permit.
            *this.received.0.lock().unwrap_or_else(PoisonError::into_inner) =
                place.ok().map(|permit| (permit, reservation));
        }
        Poll::Ready(this.waiting.take().map(|(frame, _)| Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::memory::Shares;

    fn of(bodies: u64, limit: u64, remedy: &str) -> ReceiveBudget {
        ReceiveBudget::new(Budget::new(Shares { bodies, queue: 0, work: 0 }), limit, remedy, Duration::from_secs(5))
    }

    /// A body of these frames, and what is received of it.
    fn body(budget: &ReceiveBudget, frames: Vec<Vec<u8>>) -> (MeteredBody, Received) {
        let received = Received::default();
        let frames = tokio_stream::iter(frames).map(|f| Ok::<_, Status>(Frame::data(Bytes::from(f))));
        let body = MeteredBody {
            inner: Body::new(Frames(Box::pin(frames))),
            budget: budget.clone(),
            prefix: Vec::new(),
            silence: None,
            waiting: None,
            received: received.clone(),
            length: Arc::new(AtomicU64::new(0)),
        };
        (body, received)
    }

    struct Frames(Pin<Box<dyn tokio_stream::Stream<Item = Result<Frame<Bytes>, Status>> + Send>>);

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.as_mut().poll_next(cx)
        }
    }

    fn poll(body: &mut MeteredBody) -> Poll<Option<Vec<u8>>> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        Pin::new(body).poll_frame(&mut cx).map(|frame| frame.map(|f| f.unwrap().into_data().unwrap().to_vec()))
    }

    fn prefix(length: u32) -> Vec<u8> {
        [&[0][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn large_messages_wait_for_their_turn_and_small_ones_do_not() {
        let budget = of(1 << 20, 1 << 20, "");
        let (mut first, received) = body(&budget, vec![prefix(700_000), vec![1]]);
        let (mut second, _received) = body(&budget, vec![prefix(700_000), vec![2]]);
        let (mut small, _) = body(&budget, vec![prefix(10), vec![3]]);
        assert_eq!(poll(&mut first), Poll::Ready(Some(prefix(700_000))));
        assert_eq!(poll(&mut second), Poll::Pending);
        assert_eq!(poll(&mut small), Poll::Ready(Some(prefix(10))));
        assert_eq!(poll(&mut first), Poll::Ready(Some(vec![1])));
        assert_eq!(poll(&mut first), Poll::Ready(None));
        drop(first);
        assert_eq!(poll(&mut second), Poll::Pending, "received, but not parsed");
        assert_eq!(budget.memory.used_for(Use::Body), 700_000);
        drop(received);
        assert_eq!(poll(&mut second), Poll::Ready(Some(prefix(700_000))));
    }

    #[test]
    fn a_prefix_may_come_in_pieces() {
        let budget = of(1 << 20, 1 << 20, "");
        let whole = prefix(300_000);
        let (mut parts, received) = body(&budget, vec![whole[..2].to_vec(), whole[2..].to_vec()]);
        assert_eq!(poll(&mut parts), Poll::Ready(Some(whole[..2].to_vec())));
        assert!(received.0.lock().unwrap().is_none());
        assert_eq!(poll(&mut parts), Poll::Ready(Some(whole[2..].to_vec())));
        assert!(received.0.lock().unwrap().is_some());
    }

    #[test]
    fn a_message_above_the_budget_takes_all_of_it() {
        let budget = of(1 << 20, 1 << 30, "");
        let (mut huge, _received) = body(&budget, vec![prefix(1 << 29)]);
        assert!(poll(&mut huge).is_ready());
        assert_eq!(budget.free.available_permits(), 0);
    }

    #[tokio::test]
    async fn a_silent_sender_is_given_up_but_not_one_that_waits_for_us() {
        let mut budget = of(1 << 20, 1 << 20, "");
        budget.patience = Duration::ZERO;
        let (mut silent, _) = body(&budget, Vec::new());
        silent.inner = Body::new(Frames(Box::pin(tokio_stream::pending())));
        let given_up = std::future::poll_fn(|cx| Pin::new(&mut silent).poll_frame(cx)).await;
        let Some(Err(status)) = given_up else { panic!("it never sends anything") };
        assert_eq!(status.code(), Code::Aborted);
        assert!(status.message().contains("limits.body_timeout"), "{status}");

        let (mut first, held) = body(&budget, vec![prefix(1 << 20)]);
        let (mut second, _received) = body(&budget, vec![prefix(700_000)]);
        assert!(poll(&mut first).is_ready());
        assert!(poll(&mut second).is_pending(), "it waits for its place, whatever its patience");
        drop(held);
        drop(first);
        assert!(poll(&mut second).is_ready());
    }

    #[test]
    fn over_size_is_explained_and_nothing_else_is() {
        let budget = of(1, 1000, "raise it");
        let explained = |length: u64, code: Code| {
            let mut headers = HeaderMap::new();
            headers.insert(Status::GRPC_STATUS, HeaderValue::from(code as i32));
            budget.explain(length, &mut headers);
            headers.get(Status::GRPC_MESSAGE).map(|v| v.to_str().unwrap().to_owned())
        };
        let text = "the message has 1001 bytes, the limit is 1000 bytes; raise it";
        assert_eq!(explained(1001, Code::OutOfRange).as_deref(), Some(text));
        assert_eq!(explained(1000, Code::OutOfRange), None);
        assert_eq!(explained(1001, Code::Unavailable), None);
    }
}
