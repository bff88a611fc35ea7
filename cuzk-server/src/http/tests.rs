//! The whole server over real sockets, with an engine that only pretends.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};

use super::{Server, ServerOptions, events::STREAMS};
use crate::{
    EngineConfig,
    access::{Access, Rules, Tokens},
    core::job::Priority,
    engine::{
        Engine, Lifecycle,
        testing::{Fake, submission, urgent},
    },
};

const TOKENS: &str = "watch read s3cret-of-the-watch\nnode submit s3cret-of-the-node\n";

struct Page {
    server: Server,
    at: SocketAddr,
}

async fn page(access: Access) -> Page {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("bound");
    Page { server: Server::start(listener.into(), ServerOptions { access, max_connections: 100 }), at }
}

fn asking(unix: bool) -> Access {
    Access::new(Rules { tokens: Some(Tokens::parse(TOKENS).expect("legal")), unix, rate: 0 })
}

fn engine() -> (Engine<Fake>, Arc<Fake>) {
    let fake = Fake::new(2);
    (Engine::start(EngineConfig::default(), fake.clone()), fake)
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
        line.map_or("", |line| line[name.len() + 1..].trim())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Page {
    /// One request in a connection of its own: "GET /path" and more lines.
    async fn ask(&self, request: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.at).await.expect("it listens");
        let head = head(request, headers, body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.expect("it reads");
        answer(stream).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[], "").await
    }

    /// Opens an event stream and reads its head.
    async fn events(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.at).await.expect("it listens");
        stream.write_all(head("GET /events", &[], 0).as_bytes()).await.expect("it reads");
        BufReader::new(stream)
    }
}

fn head(request: &str, headers: &[&str], length: usize) -> String {
    let mut lines = vec![format!("{request} HTTP/1.1"), "connection: close".to_owned()];
    if !headers.iter().any(|line| line.starts_with("host:")) {
        lines.push("host: 127.0.0.1".to_owned());
    }
    if length > 0 {
        lines.push(format!("content-length: {length}\r\ncontent-type: application/x-www-form-urlencoded"));
    }
    lines.extend(headers.iter().map(|&line| line.to_owned()));
    lines.join("\r\n") + "\r\n\r\n"
}

async fn answer(mut stream: impl tokio::io::AsyncRead + Unpin) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer to its end");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The next event's picture.
async fn next_event(events: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        let read = events.read_line(&mut line).await.expect("a line");
        assert!(read > 0, "the stream has ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).expect("JSON");
        }
    }
}

/// A picture of which something is true.
async fn until(page: &Page, truth: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let picture = page.get("/status.json").await.json();
        if truth(&picture) {
            return picture;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{picture}");
    }
}

/// For how long the first kernels of a picture have run, in ms.
fn kernels_since(picture: &Value) -> Option<u64> {
    let present = picture["timeline"]["present"].as_array()?;
    let from = present.iter().find(|row| row[2] == "lock_hold")?[5].as_u64()?;
    picture["now_unix_ms"].as_u64()?.checked_sub(from)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_says_what_it_is_before_and_after_there_is_an_engine() {
    let page = page(Access::default()).await;
    assert_eq!((page.get("/healthz").await.status, page.get("/").await.status), (200, 200));
    for path in ["/readyz", "/status.json", "/events", "/metrics"] {
        let early = page.get(path).await;
        assert_eq!((early.status, early.header("retry-after")), (503, "5"), "{path}");
        assert!(early.body.contains("opening the job store"), "{path}: {}", early.body);
    }
    let (engine, _fake) = engine();
    engine.announce(Lifecycle::Starting("loading porep-32g, 1 of 2".into()));
    page.server.show(engine.clone());
    let loading = page.get("/readyz").await;
    assert_eq!((loading.status, loading.body.trim()), (503, "starting: loading porep-32g, 1 of 2"));
    engine.announce(Lifecycle::Serving);
    assert_eq!(page.get("/readyz").await.body, "ready\n");
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/status.json", "application/json"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/healthz", "text/plain; charset=utf-8"),
    ] {
        let found = page.get(path).await;
        assert_eq!((found.status, found.header("content-type")), (200, kind), "{path}");
    }
    let lost = page.get("/favicon.ico").await;
    assert_eq!((lost.status, lost.body.as_str()), (404, "nothing is here\n"));
    let wrong = page.ask("POST /status.json", &[], "a=b").await;
    assert_eq!(wrong.status, 405);
    for found in [page.get("/").await, page.get("/metrics").await, lost, wrong] {
        let policy = found.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let both = (found.header("x-content-type-options"), found.header("cache-control"));
        assert_eq!(both, ("nosniff", "no-store"));
    }
    assert!(page.get("/metrics").await.body.contains("\n# TYPE cuzk_start_time_seconds gauge\n"));
    engine.drain(Duration::ZERO).await;
    let draining = page.get("/readyz").await;
    assert_eq!((draining.status, draining.body.starts_with("draining")), (503, true), "{}", draining.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_that_the_pages_name_is_there() {
    let page = page(Access::default()).await;
    let names = |text: &str| {
        let quoted = text.split('"').filter(|word| word.starts_with('/') && word.contains('.') && !word.contains(' '));
        quoted.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut open = vec!["/".to_owned(), "/login".to_owned()];
    let mut seen = Vec::new();
    while let Some(path) = open.pop() {
        if path == "/status.json" || seen.contains(&path) {
            continue;
        }
        let found = page.get(&path).await;
        // Nobody is asked here, so the form leads to the page.
        assert!(found.status == 200 || path == "/login", "{path}: {}", found.status);
        open.extend(names(&found.body));
        seen.push(path);
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_shows_jobs_queue_and_what_the_workers_did() {
    let (engine, fake) = engine();
    let page = page(Access::default()).await;
    page.server.show(engine.clone());
    engine.submit(submission("<img src=x>", "tag=1 parts=2 hold-prove")).await.expect("accepted");
    fake.prove.arrived(1);
    engine.submit(urgent("later", "tag=2 hold-synth", Priority::Low)).await.expect("accepted");
    fake.synth.arrived(1);
    engine.submit(urgent("last", "tag=3", Priority::High)).await.expect("accepted");

    // What takes no time is not kept.
    let picture = until(&page, |picture| kernels_since(picture).is_some_and(|ms| ms > 5)).await;
    assert_eq!(picture["status"]["gpus"].as_array().map(Vec::len), Some(2));
    let jobs = picture["unfinished"].as_array().expect("jobs").clone();
    let of = |name: &str| jobs.iter().find(|job| job["request_id"] == name).expect("it is there");
    assert_eq!((&of("<img src=x>")["state"], &of("last")["state"]), (&"running".into(), &"queued".into()));
    assert_eq!((&picture["waiting"]["high"], &picture["waiting"]["critical"]), (&1.into(), &0.into()));
    let present = picture["timeline"]["present"].as_array().expect("rows");
    let kernels = present.iter().find(|row| row[2] == "lock_hold").expect("it runs");
    assert_eq!((&kernels[3], &kernels[6]), (&of("<img src=x>")["job_id"], &0.into()));
    assert_eq!(picture["timeline"]["whole"], true);

    fake.prove.open();
    fake.synth.open();
    let ended = until(&page, |picture| picture["ended"].as_array().is_some_and(|jobs| jobs.len() == 3)).await;
    assert_eq!((&ended["unfinished"], &ended["timeline"]["present"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let past = ended["timeline"]["past"].as_array().expect("rows");
    assert!(past.iter().any(|row| row[2] == "lock_hold" && row[6].as_u64() >= row[5].as_u64()), "{past:?}");
    let phases = ended["ended"][0]["phases"].as_array().expect("phases");
    assert!(phases.iter().any(|phase| phase["name"] == "lock_hold"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_changes_and_ends_with_the_server() {
    let (engine, fake) = engine();
    let page = page(Access::default()).await;
    page.server.show(engine.clone());
    let mut events = page.events().await;
    let first = next_event(&mut events).await;
    assert_eq!((&first["timeline"]["whole"], &first["ended"]), (&true.into(), &Value::Array(vec![])));
    engine.submit(submission("a job", "tag=1 parts=3 hold-prove")).await.expect("accepted");
    until(&page, |picture| kernels_since(picture).is_some_and(|ms| ms > 5)).await;
    fake.prove.open();
    let mut told = Vec::new();
    let mut ended_before = false;
    loop {
        let picture = next_event(&mut events).await;
        let past = picture["timeline"]["past"].as_array().expect("rows");
        if picture["timeline"]["whole"] == true {
            told.clear();
        }
        told.extend(past.iter().map(Value::to_string));
        if ended_before {
            assert_eq!((past.len(), &picture["timeline"]["whole"]), (0, &false.into()), "it was told before");
            break;
        }
        ended_before = picture["ended"][0]["request_id"] == "a job";
        engine.announce(Lifecycle::Serving);
    }
    assert!(told.iter().any(|row| row.contains("lock_hold")), "{told:?}");
    page.server.close(Duration::from_secs(60)).await;
    let mut rest = String::new();
    events.read_to_string(&mut rest).await.expect("it ends well");
    assert!(TcpStream::connect(page.at).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_and_come_free_again() {
    let (engine, _fake) = engine();
    let page = page(Access::default()).await;
    page.server.show(engine.clone());
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let mut events = page.events().await;
        next_event(&mut events).await;
        open.push(events);
    }
    let refused = page.get("/events").await;
    assert_eq!((refused.status, refused.body.contains("32 event streams")), (503, true), "{}", refused.body);
    assert_eq!(page.get("/status.json").await.status, 200, "others are served");
    drop(open);
    let begun = Instant::now();
    while engine.watchers() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "places are not given back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    next_event(&mut page.events().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_scope_read_opens_as_a_header_and_as_a_cookie() {
    let (engine, _fake) = engine();
    let page = page(asking(false)).await;
    page.server.show(engine);
    for path in ["/status.json", "/events", "/metrics"] {
        let refused = page.get(path).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, "Bearer realm=\"cuzk\""), "{path}");
    }
    assert_eq!((page.get("/healthz").await.status, page.get("/readyz").await.status), (200, 200));
    let led = page.get("/").await;
    assert_eq!((led.status, led.header("location")), (303, "/login"));
    let with = async |token: &str| page.ask("GET /status.json", &[&format!("authorization: Bearer {token}")], "").await;
    assert_eq!(with("s3cret-of-the-watch").await.status, 200);
    assert_eq!(with("s3cret-of-the-node").await.status, 403);
    assert_eq!(with("s3cret-of-nobody-at-all").await.status, 401);

    assert!(page.get("/login").await.body.contains("type=\"password\""));
    let wrong = page.ask("POST /login", &[], "token=s3cret-of-nobody-at-all").await;
    assert_eq!((wrong.status, wrong.body.contains("the token is not known here")), (401, true));
    assert!(!wrong.body.contains("s3cret") && wrong.header("set-cookie").is_empty());
    let scope = page.ask("POST /login", &[], "token=s3cret-of-the-node").await;
    assert_eq!((scope.status, scope.body.contains("lacks the scope &quot;read&quot;")), (403, true));
    let long = page.ask("POST /login", &[], &format!("token={}", "x".repeat(5000))).await;
    assert_eq!(long.status, 413);
    let foreign = page.ask("POST /login", &["sec-fetch-site: cross-site"], "token=s3cret-of-the-watch").await;
    assert_eq!(foreign.status, 403);

    let come_in = page.ask("POST /login", &["sec-fetch-site: same-origin"], "token=s3cret-of-the-watch").await;
    assert_eq!((come_in.status, come_in.header("location")), (303, "/"));
    let cookie = come_in.header("set-cookie");
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("s3cret"), "{cookie}");
    let shown = format!("cookie: {}", cookie.split(';').next().unwrap_or_default());
    assert_eq!(page.ask("GET /status.json", &[&shown], "").await.status, 200);
    let inside = page.ask("GET /", &[&shown], "").await;
    assert!(inside.status == 200 && inside.body.contains("<form method=\"post\" action=\"/logout\">"));
    assert_eq!(page.ask("GET /login", &[&shown], "").await.status, 303);
    let out = page.ask("POST /logout", &[&shown], "").await;
    assert!(out.status == 303 && out.header("set-cookie").contains("Max-Age=0"), "{}", out.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_refused_where_nothing_else_protects_and_who_guesses_is_slowed_down() {
    let open = page(Access::default()).await;
    open.server.show(engine().0);
    let rebound = ["host: evil.example:9821"];
    for path in ["/", "/status.json", "/login", "/events"] {
        assert_eq!(open.ask(&format!("GET {path}"), &rebound, "").await.status, 421, "{path}");
    }
    assert_eq!(open.ask("GET /healthz", &rebound, "").await.status, 200, "it tells nothing");
    assert_eq!(open.ask("GET /", &["host: localhost:9821"], "").await.status, 200);

    let access = asking(false);
    access.replace(Rules { rate: 1, ..(*access.rules()).clone() });
    let asked = page(access).await;
    assert_eq!(asked.ask("GET /", &rebound, "").await.status, 303, "a token protects it");
    let mut answers = Vec::new();
    for _ in 0..9 {
        answers.push(asked.ask("POST /login", &[], "token=s3cret-of-nobody-at-all").await.status);
    }
    assert!(answers.contains(&429), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_too() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).expect("free");
    let server = Server::start(listener.into(), ServerOptions { access: asking(false), max_connections: 9 });
    server.show(engine().0);
    let mut stream = UnixStream::connect(&path).await.expect("it listens");
    stream.write_all(head("GET /status.json", &["host: some.name"], 0).as_bytes()).await.expect("it reads");
    assert_eq!(answer(stream).await.status, 200, "its permissions guard it");
}
