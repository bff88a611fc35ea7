//! The paths, and what is there.

use std::sync::{Arc, OnceLock};

use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, State},
    middleware::map_response,
    response::{Html, IntoResponse, Redirect, Response, Sse},
    routing::{get, post},
};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use tokio::sync::{Semaphore, watch};

use super::{
    events::{self, STREAMS},
    guard::{self, Guard, Refused},
    headers, login,
    source::Source,
};
use crate::access::{Denied, Peer};

const PAGE: &str = include_str!("page/index.html");
/// What hides the button for leaving.
const NO_WAY_OUT: &str = " hidden data-way-out";
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [(&str, &str); 5] = [
    ("/page.js", include_str!("page/page.js")),
    ("/jobs.js", include_str!("page/jobs.js")),
    ("/parts.js", include_str!("page/parts.js")),
    ("/text.js", include_str!("page/text.js")),
    ("/timeline.js", include_str!("page/timeline.js")),
];
const ICON: &str = include_str!("page/icon.svg");

/// The largest form: a token.
const FORM_BYTES: usize = 4 << 10;
/// What there is to say before there is an engine.
const OPENING: &str = "starting: opening the job store and the devices";
/// When to come back, in seconds.
const LATER: &str = "5";

/// What the answers are made from.
#[derive(Debug)]
pub(super) struct App {
    pub(super) guard: Guard,
    source: OnceLock<Arc<dyn Source>>,
    streams: Arc<Semaphore>,
    closing: watch::Receiver<()>,
}

impl App {
    pub(super) fn new(guard: Guard, closing: watch::Receiver<()>) -> Self {
        Self { guard, source: OnceLock::new(), streams: Arc::new(Semaphore::new(STREAMS)), closing }
    }

    /// Shows this from now on; only the first one counts.
    pub(super) fn show(&self, source: Arc<dyn Source>) {
        self.source.get_or_init(|| source);
    }

    /// What is shown to who may read.
    fn open(&self, headers: &HeaderMap, peer: &Peer) -> Result<Arc<dyn Source>, NotShown> {
        self.guard.admit(headers, peer).map_err(NotShown::Refused)?;
        self.source.get().cloned().ok_or_else(|| NotShown::Later(OPENING.to_owned()))
    }
}

/// Why something is not shown.
enum NotShown {
    /// This one may not see it.
    Refused(Refused),
    /// It is not there now, and why.
    Later(String),
}

impl IntoResponse for NotShown {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refused) => refused.into_response(),
            Self::Later(why) => {
                (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, LATER)], format!("{why}\n")).into_response()
            }
        }
    }
}

/// All paths.
pub(super) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(page))
        .route("/login", get(login::form).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/events", get(pictures))
        .route("/status.json", get(picture))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/page.css", get(|| async { ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route("/icon.svg", get(|| async { ([(CONTENT_TYPE, "image/svg+xml")], ICON) }));
    for (path, script) in SCRIPTS {
        router = router
            .route(path, get(move || async move { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], script) }));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "nothing is here\n") })
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(map_response(headers::add))
        .with_state(app)
}

type Asked = (State<Arc<App>>, Extension<Peer>, HeaderMap);

async fn page((State(app), Extension(peer), headers): Asked) -> Response {
    match app.guard.admit(&headers, &peer) {
        // A way out for those who came in by the form.
        Ok(_) if guard::badge(&headers).is_some() => Html(PAGE.replace(NO_WAY_OUT, "")).into_response(),
        Ok(_) => Html(PAGE).into_response(),
        Err(Refused::Denied(Denied::NoToken | Denied::UnknownToken)) => Redirect::to("/login").into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn picture((State(app), Extension(peer), headers): Asked) -> Result<Response, NotShown> {
    let (picture, _) = app.open(&headers, &peer)?.picture(0);
    Ok(Json(picture).into_response())
}

async fn pictures((State(app), Extension(peer), headers): Asked) -> Result<Response, NotShown> {
    let source = app.open(&headers, &peer)?;
    let place = app.streams.clone().try_acquire_owned();
    let full = || NotShown::Later(format!("{STREAMS} event streams are open, of at most that many"));
    let place = place.map_err(|_| full())?;
    Ok(Sse::new(events::stream(source, place, app.closing.clone())).into_response())
}

async fn metrics((State(app), Extension(peer), headers): Asked) -> Result<Response, NotShown> {
    let text = app.open(&headers, &peer)?.metrics_text();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let ready = app.source.get().map_or_else(|| Err(OPENING.to_owned()), |source| source.readiness());
    match ready {
        Ok(()) => "ready\n".into_response(),
        Err(why) => NotShown::Later(why).into_response(),
    }
}
