//! The status page of a whole daemon, over its own sockets.

use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsConnector;

use super::{access::Authority, *};

/// What is answered to one request: the whole text.
async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    // Who closes without a word has said what there was to say.
    let _ = stream.read_to_string(&mut text).await;
    text
}

fn anywhere() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 0).into())
}

fn config(http: Endpoint) -> Config {
    let mut config = Config::default();
    config.daemon.listen = OneOrMany(vec![anywhere()]);
    config.http.listen = Some(http);
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_answers_before_the_engine_is_there_and_ends_with_the_daemon() {
    let config = config(anywhere());
    let bound = Bound::bind(&config).expect("free ports");
    let Some(Endpoint::Tcp(at)) = bound.page().cloned() else { panic!("it is TCP") };
    let ask = async |path| get(TcpStream::connect(at).await.expect("it listens"), path).await;
    assert!(ask("/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(ask("/readyz").await.starts_with("HTTP/1.1 503 "));

    let (trigger, asked) = shutdown::manual();
    let task =
        tokio::spawn(async move { run::run_daemon(&config, &PLAN, bound, None, Arc::new(Pretender), asked).await });
    while !ask("/readyz").await.starts_with("HTTP/1.1 200 ") {}
    assert!(ask("/status.json").await.contains("\"name\":\"Pretender\""));
    let mut stream = TcpStream::connect(at).await.expect("it listens");
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it reads");
    trigger.ask();
    task.await.expect("no panic").expect("drained");
    let mut events = String::new();
    stream.read_to_string(&mut events).await.expect("the stream ends well");
    assert!(events.contains("\"state\":\"draining\"") || events.contains("\"state\":\"serving\""), "{events}");
    assert!(TcpStream::connect(at).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_has_the_permissions_of_the_others_and_is_gone_at_the_end() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = dir.path().join("http.sock");
    let mut config = config(Endpoint::Unix(socket.clone()));
    config.daemon.socket_mode = cuzk_daemon::config::SocketMode(0o600);
    let bound = Bound::bind(&config).expect("free");
    let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let alive = get(UnixStream::connect(&socket).await.expect("it listens"), "/healthz").await;
    assert!(alive.ends_with("alive\n"), "{alive}");

    let taken = Bound::bind(&config).expect_err("taken").to_string();
    assert!(taken.contains("http.sock"), "{taken}");
    drop(bound);
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_certificates_the_page_speaks_tls() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ours = Authority::new(dir.path(), "ours");
    ours.sign("server", |_| ());
    let config = Config { http: config(anywhere()).http, ..ours.config("server") };
    let bound = Bound::bind(&config).expect("free ports");
    let Some(Endpoint::Tcp(at)) = bound.page().cloned() else { panic!("it is TCP") };

    let mut roots = RootCertStore::empty();
    let authority = std::fs::read(ours.path("ca.pem")).expect("written");
    roots.add(CertificateDer::from_pem_slice(&authority).expect("PEM")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("known");
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").expect("a name");
    let plain = TcpStream::connect(at).await.expect("it listens");
    let secure = TlsConnector::from(Arc::new(client)).connect(name, plain).await.expect("it speaks TLS");
    assert!(get(secure, "/healthz").await.starts_with("HTTP/1.1 200 "));
    let clear = get(TcpStream::connect(at).await.expect("it listens"), "/healthz").await;
    assert!(!clear.contains("alive"), "{clear}");
}
