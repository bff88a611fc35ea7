//! A connection to a running daemon, over TCP, TLS or a unix socket, and its errors in the operator's words.

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use cuzk_proto::v1::proving_engine_client::ProvingEngineClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri},
};

use crate::{
    cli::ClientArgs,
    exit::{Exit, Failure},
    listen::Target,
};

/// The service's client, with message limits that fit the largest C1 outputs.
pub type Client = ProvingEngineClient<InterceptedService<Channel, Bearer>>;

/// Adds the token, if there is one, to each call.
#[derive(Clone, Default)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

/// The largest message sent or taken, in bytes, as for all clients of the protocol.
pub const MAX_MESSAGE: usize = 256 << 20;

/// How long a call may take that a daemon answers from memory.
pub const QUICK: Duration = Duration::from_secs(5);

/// Connects as the command line says, or says why nobody is there.
///
/// # Errors
/// If a file that is named cannot be used, if nobody is at the address, or if one side refuses the other's certificate.
pub async fn open(args: &ClientArgs) -> Result<Client, Failure> {
    let bearer = match &args.token_file {
        None => Bearer::default(),
        Some(path) => Bearer(Some(read_token(path)?)),
    };
    if bearer.0.is_some() && matches!(&args.addr, Target::Tcp(authority) if !is_loopback(authority)) {
        let text = format!("not sending a token to {} in plain text, where others can read it", args.addr);
        return Err(Failure::new(Exit::Usage, text).with_hint("write the address as https://host:port"));
    }
    let tls = match &args.addr {
        Target::Tls(_) => Some(tls_config(args)?),
        Target::Tcp(_) | Target::Unix(_) => None,
    };
    connect_as(&args.addr, tls, bearer).await
}

/// Connects without token and certificates, or says why nobody is there.
pub async fn connect(target: &Target) -> Result<Client, Failure> {
    connect_as(target, None, Bearer::default()).await
}

async fn connect_as(target: &Target, tls: Option<ClientTlsConfig>, bearer: Bearer) -> Result<Client, Failure> {
    let channel = match target {
        Target::Tcp(authority) => connect_tcp(authority).await,
        Target::Tls(authority) => connect_tls(authority, tls.unwrap_or_default()).await,
        Target::Unix(path) => connect_unix(path.clone()).await,
    };
    let channel = channel.map_err(|error| unreachable(target, &error))?;
    let client = Client::new(InterceptedService::new(channel, bearer));
    Ok(client.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// The token is no one's to see.
impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Bearer(…)" } else { "Bearer(none)" })
    }
}

fn read_token(path: &Path) -> Result<MetadataValue<Ascii>, Failure> {
    let text = fs::read_to_string(path).map_err(|e| Failure::io("read the token file", path, e))?;
    let unusable = || {
        let text = format!("{} does not hold one token and nothing else", path.display());
        Failure::new(Exit::Usage, text).with_hint("put there what `cuzk-daemon token new` printed as the token")
    };
    let token = text.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(unusable());
    }
    let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().map_err(|_| unusable())?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls_config(args: &ClientArgs) -> Result<ClientTlsConfig, Failure> {
    let read = |path: &PathBuf| fs::read(path).map_err(|e| Failure::io("read", path, e));
    let Some(ca) = &args.tls_ca else {
        let text = format!("{} needs to know who may sign the daemon's certificate", args.addr);
        let hint = "name the authority's certificate with --tls-ca; for one that the whole world trusts, the system's \
                    bundle (/etc/ssl/certs/ca-certificates.crt)";
        return Err(Failure::new(Exit::Usage, text).with_hint(hint));
    };
    let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?));
    Ok(match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => config.identity(Identity::from_pem(read(cert)?, read(key)?)),
        _ => config,
    })
}

fn is_loopback(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
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
    match (status.code(), exit) {
        (Code::Unauthenticated, _) => failure.with_hint("name the file that holds your token with --token-file"),
        (Code::PermissionDenied, _) => failure.with_hint("ask the operator for a token with that scope"),
        (_, Exit::TryLater) => failure.with_hint("the daemon may accept it later"),
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

async fn connect_tls(authority: &str, tls: ClientTlsConfig) -> Result<Channel, transport::Error> {
    configure(Endpoint::from_shared(format!("https://{authority}"))?).tls_config(tls)?.connect().await
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
    if let Some(fault) = tls_cause(error) {
        let text = format!("no secure connection to {target}: {}", one_line(&fault.to_string()));
        return Failure::new(Exit::Unreachable, text).with_hint(tls_hint(fault));
    }
    let hint = match (io_cause(error).map(io::Error::kind), target) {
        (Some(io::ErrorKind::ConnectionRefused), Target::Tcp(_) | Target::Tls(_)) => {
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
        (_, Target::Tls(_)) => {
            "does it speak TLS there? If its configuration has no [tls] cert, write http://; if it has client_ca, show a \
             certificate with --tls-cert and --tls-key"
        }
        (_, Target::Tcp(_)) => {
            "is the daemon running, and does it speak gRPC at this address? If its configuration has [tls] cert, write \
             https://"
        }
        (_, Target::Unix(_)) => "is the daemon running, and does it speak gRPC at this address?",
    };
    let text = format!("no daemon at {target}: {}", one_line(&root_cause(error)));
    Failure::new(Exit::Unreachable, text).with_hint(hint)
}

/// What to do about a TLS connection that one side refused.
fn tls_hint(fault: &rustls::Error) -> &'static str {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
    match fault {
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the daemon's certificate has expired: its operator must renew it"
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the certificate is for another host: write the host that it names in --addr"
        }
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "its signer is not in the file of --tls-ca: name the one that signed the daemon's certificate"
        }
        Error::AlertReceived(Alert::CertificateRequired | Alert::HandshakeFailure) => {
            "the daemon asks for a certificate: name yours with --tls-cert and --tls-key"
        }
        Error::AlertReceived(_) => {
            "the daemon refused: is the certificate of --tls-cert valid, and signed by its client_ca?"
        }
        Error::InvalidMessage(_) => "it does not speak TLS there: write http:// if that is meant",
        _ => "do --tls-ca, --tls-cert and --tls-key name files that belong to this daemon?",
    }
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

/// The error of TLS, which travels within an I/O error.
fn tls_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| {
        let within = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause.downcast_ref().or_else(|| within?.downcast_ref())
    })
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
    fn a_token_file_holds_one_token_that_is_never_shown() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("token");
        fs::write(&path, "  secret-1\n").expect("writable");
        let value = read_token(&path).expect("one token");
        assert_eq!(value.to_str().expect("text"), "Bearer secret-1");
        assert!(!format!("{value:?} {:?}", Bearer(Some(value.clone()))).contains("secret"));
        for text in ["", "\n", "a b", "a\nb", "caf\u{e9}\u{1}"] {
            fs::write(&path, text).expect("writable");
            assert!(read_token(&path).is_err(), "{text:?}");
        }
    }

    #[test]
    fn hosts_of_this_machine() {
        for host in ["127.0.0.1:1", "[::1]:1", "localhost:1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1:1", "[::]:1", "prover:1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn foreign_text_is_cut_and_cleaned() {
        assert_eq!(one_line("a\nb\x1b[31m"), "a b [31m");
        assert_eq!(one_line(&"é".repeat(600)).chars().count(), MAX_CHARS + 1);
    }
}
