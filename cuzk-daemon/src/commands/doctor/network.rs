//! The addresses: whether a daemon answers there, whether they are free, or whose they are.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    time::Duration,
};

use cuzk_proto::v1::GetStatusRequest;
use tonic::Code;

use super::finding::Finding;
use crate::{
    client,
    commands::remote,
    config::Config,
    listen::{Endpoint, Target},
};

const ABOUT: &str = "address";
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen at one address.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    endpoint: Endpoint,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    /// Nobody listens there.
    Nobody,
    /// This machine does not have the address.
    NotOurs(String),
    /// A daemon, what it says of itself and what it warns of.
    Daemon { state: String, warnings: Vec<String> },
    /// A daemon that asks for a token.
    Guarded,
    /// Somebody listens, and is only spoken to with TLS.
    Secure,
    /// Somebody else.
    Other(String),
}

/// Connects to each address of a configuration.
pub(super) fn look(config: &Config) -> Vec<Seen> {
    let seen =
        |endpoint: &Endpoint| Seen { endpoint: endpoint.clone(), answer: ask(endpoint, config.tls.cert.is_some()) };
    config.daemon.listen.0.iter().map(seen).collect()
}

fn ask(endpoint: &Endpoint, secure: bool) -> Answer {
    let reached = match endpoint {
        Endpoint::Tcp(address) => TcpStream::connect_timeout(&reachable(*address), PATIENCE).map(drop),
        Endpoint::Unix(path) => UnixStream::connect(path).map(drop),
    };
    match (reached, endpoint) {
        (Ok(()), Endpoint::Tcp(_)) if secure => Answer::Secure,
        (Ok(()), _) => speak(endpoint),
        (Err(error), Endpoint::Unix(_)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Answer::Other("this user may not connect".to_owned())
        }
        // Any free port of it tells whether this machine has the address.
        (Err(_), Endpoint::Tcp(address)) => match TcpListener::bind(SocketAddr::new(address.ip(), 0)) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Answer::NotOurs(error.to_string()),
            _ => Answer::Nobody,
        },
        (Err(_), Endpoint::Unix(_)) => Answer::Nobody,
    }
}

/// Who listens at all addresses is found at the loopback's.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), v6.port()),
        other => other,
    }
}

fn speak(endpoint: &Endpoint) -> Answer {
    let target = match endpoint {
        Endpoint::Tcp(address) => Target::Tcp(reachable(*address).to_string()),
        Endpoint::Unix(path) => Target::Unix(path.clone()),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Answer::Other(format!("cannot start the runtime: {error}")),
    };
    runtime.block_on(async {
        let mut client = match client::connect(&target).await {
            Ok(client) => client,
            Err(failure) => return Answer::Other(failure.to_string()),
        };
        match client.get_status(remote::quick(GetStatusRequest {})).await {
            Ok(status) => {
                let status = status.into_inner();
                let words = [status.state, status.version].into_iter().filter(|word| !word.is_empty());
                Answer::Daemon { state: words.collect::<Vec<_>>().join(", version "), warnings: status.warnings }
            }
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => Answer::Guarded,
            Err(status) => Answer::Other(client::refused("ask it", &target, &status).to_string()),
        }
    })
}

/// Judges what one address is.
pub(super) fn judge(seen: &Seen) -> Vec<Finding> {
    let at = &seen.endpoint;
    let port_advice = "stop that program, or choose another daemon.listen";
    let finding = match &seen.answer {
        Answer::Nobody => Finding::ok(ABOUT, format!("{at} is free: no daemon runs there")),
        Answer::NotOurs(reason) => {
            Finding::fail(ABOUT, format!("{at}: {reason}"), "name an address of this machine in daemon.listen")
        }
        Answer::Daemon { state, .. } => Finding::ok(ABOUT, format!("a daemon answers at {at}: {state}")),
        Answer::Guarded => Finding::ok(ABOUT, format!("a daemon answers at {at}, and asks for a token")),
        Answer::Secure => {
            Finding::ok(ABOUT, format!("somebody listens at {at}; `cuzk-daemon status --addr https://…` asks who"))
        }
        Answer::Other(reason) => {
            Finding::fail(ABOUT, format!("{at} is taken, and not by a daemon that can be asked: {reason}"), port_advice)
        }
    };
    let mut findings = vec![finding];
    if let Answer::Daemon { warnings, .. } = &seen.answer {
        let warning = |text: &String| Finding::warn("daemon", text, "so says the daemon that runs");
        findings.extend(warnings.iter().map(warning));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{Fail, Ok as Good, Warn},
            levels,
        },
        *,
    };

    #[test]
    fn who_is_there_decides() {
        let judged = |answer| levels(&judge(&Seen { endpoint: "127.0.0.1:1".parse().expect("an address"), answer }));
        assert_eq!(judged(Answer::Nobody), [Good]);
        assert_eq!(judged(Answer::Guarded), [Good]);
        assert_eq!(judged(Answer::Secure), [Good]);
        let daemon = Answer::Daemon { state: "serving".into(), warnings: vec!["development parameters".into()] };
        assert_eq!(judged(daemon), [Good, Warn]);
        assert_eq!(judged(Answer::NotOurs("no such address".into())), [Fail]);
        assert_eq!(judged(Answer::Other("it speaks HTTP/1".into())), [Fail]);
    }

    #[test]
    fn free_ports_and_sockets_and_addresses_of_others_are_told_apart() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
        assert!(matches!(ask(&Endpoint::Tcp(free), false), Answer::Nobody));
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert!(matches!(ask(&Endpoint::Unix(dir.path().join("s")), false), Answer::Nobody));
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = Endpoint::Tcp(taken.local_addr().expect("bound"));
        assert!(matches!(ask(&endpoint, true), Answer::Secure));
    }

    #[test]
    fn all_addresses_are_asked_at_the_loopback() {
        let of = |text: &str| reachable(text.parse().expect("an address")).to_string();
        assert_eq!([of("0.0.0.0:7"), of("[::]:7"), of("10.0.0.1:7")], ["127.0.0.1:7", "[::1]:7", "10.0.0.1:7"]);
    }
}
