//! A connection to a running daemon, over TCP or a unix socket, and its errors in the operator's words.

use std::{error::Error, io, path::PathBuf, time::Duration};

use cuzk_proto::v1::proving_engine_client::ProvingEngineClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::{
    Code, Status,
    transport::{self, Channel, Endpoint, Uri},
};

use crate::{
    exit::{Exit, Failure},
    listen::Target,
};

/// The service's client, with message limits that fit the largest C1 outputs.
pub type Client = ProvingEngineClient<Channel>;

/// The largest message sent or taken, in bytes, as for all clients of the protocol.
pub const MAX_MESSAGE: usize = 256 << 20;

/// How long a call may take that a daemon answers from memory.
pub const QUICK: Duration = Duration::from_secs(5);

/// Connects, or says why nobody is there.
pub async fn connect(target: &Target) -> Result<Client, Failure> {
    let channel = match target {
        Target::Tcp(authority) => connect_tcp(authority).await,
        Target::Unix(path) => connect_unix(path.clone()).await,
    };
    let channel = channel.map_err(|error| unreachable(target, &error))?;
    Ok(Client::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
}

/// An error answer to a call, in the operator's words.
pub fn refused(doing: &str, target: &Target, status: &Status) -> Failure {
    let io = io_cause(status);
    // The call did not reach a daemon, or its answer did not come back.
    if io.is_some() || is_transport(status) {
        return unreachable(target, status);
    }
    // tonic reports its own timer as a cancellation.
    if status.code() == Code::DeadlineExceeded || status.message() == "Timeout expired" {
        let text = format!("cannot {doing}: {target} did not answer in time");
        return Failure::new(Exit::Unreachable, text);
    }
    let exit = Exit::of_code(status.code());
    let failure = Failure::new(exit, format!("cannot {doing}: {}", one_line(status.message())));
    match exit {
        Exit::TryLater => failure.with_hint("the daemon may accept it later"),
        _ => failure,
    }
}

/// A message from elsewhere, cut to what fits on a terminal.
pub fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

async fn connect_tcp(authority: &str) -> Result<Channel, transport::Error> {
    configure(Endpoint::from_shared(format!("http://{authority}"))?).connect().await
}

async fn connect_unix(path: PathBuf) -> Result<Channel, transport::Error> {
    // The URI gives the authority that is sent: "localhost", since a path is not legal there.
    let endpoint = configure(Endpoint::from_static("http://localhost"));
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await
}

fn configure(endpoint: Endpoint) -> Endpoint {
    endpoint.connect_timeout(QUICK).tcp_keepalive(Some(KEEPALIVE)).http2_keep_alive_interval(KEEPALIVE)
}

fn unreachable(target: &Target, error: &(dyn Error + 'static)) -> Failure {
    let hint = match (io_cause(error).map(io::Error::kind), target) {
        (Some(io::ErrorKind::ConnectionRefused), Target::Tcp(_)) => {
            "nothing listens there: is the daemon running, and is daemon.listen this address?"
        }
        (Some(io::ErrorKind::ConnectionRefused), Target::Unix(_)) => {
            "the socket is left over from a daemon that is gone: start the daemon"
        }
        (Some(io::ErrorKind::NotFound), Target::Unix(_)) => {
            "there is no such socket: is the daemon running, and is daemon.listen this path?"
        }
        (Some(io::ErrorKind::PermissionDenied), Target::Unix(_)) => {
            "this user may not connect: see daemon.socket_mode and the socket's group"
        }
        _ => "is the daemon running, and does it speak gRPC at this address?",
    };
    let text = format!("no daemon at {target}: {}", one_line(&root_cause(error)));
    Failure::new(Exit::Unreachable, text).with_hint(hint)
}

fn is_transport(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<transport::Error>())
}

fn io_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

const KEEPALIVE: Duration = Duration::from_secs(30);
const MAX_CHARS: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure(address: &str) -> Failure {
        let target = address.parse().expect("an address");
        connect(&target).await.expect_err("nobody is there")
    }

    #[tokio::test]
    async fn a_refused_tcp_connection_is_explained() {
        // Bound and closed again: nobody listens there now.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        drop(listener);
        let failure = failure(&address).await;
        assert_eq!(failure.exit, Exit::Unreachable);
        let text = failure.to_string();
        assert!(text.contains(&address) && text.contains("nothing listens there"), "{text}");
    }

    #[tokio::test]
    async fn a_missing_and_a_dead_socket_are_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s");
        let address = format!("unix://{}", path.display());
        let text = failure(&address).await.to_string();
        assert!(text.contains("no such socket"), "{text}");

        drop(std::os::unix::net::UnixListener::bind(&path).expect("free"));
        let text = failure(&address).await.to_string();
        assert!(text.contains("left over"), "{text}");
    }

    #[test]
    fn answers_keep_their_meaning() {
        let target = "127.0.0.1:1".parse().expect("an address");
        let refusal = refused("submit", &target, &Status::invalid_argument("sector_size: 7"));
        assert_eq!(refusal.exit, Exit::Refused);
        assert_eq!(refusal.to_string(), "cannot submit: sector_size: 7");
        let full = refused("submit", &target, &Status::resource_exhausted("queue full"));
        assert_eq!(full.exit, Exit::TryLater);
        let late = refused("ask", &target, &Status::cancelled("Timeout expired"));
        assert_eq!(late.exit, Exit::Unreachable);
    }

    #[test]
    fn foreign_text_is_cut_and_cleaned() {
        assert_eq!(one_line("a\nb\x1b[31m"), "a b [31m");
        assert_eq!(one_line(&"é".repeat(600)).chars().count(), MAX_CHARS + 1);
    }
}
