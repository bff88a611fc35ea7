//! Certificates, tokens, and the permissions of sockets.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::SystemTime};

use super::finding::Finding;
use crate::{access::Guard, config::Config, listen::Endpoint};

const ABOUT: &str = "access";

/// What was seen.
#[derive(Clone, Debug)]
struct Seen {
    /// What the daemon would say at its start, or what there is to say about the certificate.
    guard: Result<Option<String>, String>,
    sockets: Vec<Socket>,
}

/// A unix socket that the daemon listens at.
#[derive(Clone, Debug)]
struct Socket {
    path: PathBuf,
    /// Whether its folder is there.
    folder: bool,
    /// The permission bits of the socket that is there, if one is.
    mode: Option<u32>,
}

/// Looks and judges.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let now = SystemTime::now();
    let guard = Guard::load(config).map_err(|e| e.to_string());
    let socket = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp(_) => None,
        Endpoint::Unix(path) => Some(Socket {
            path: path.clone(),
            folder: path.parent().is_some_and(|folder| folder.is_dir()),
            mode: fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777),
        }),
    };
    let seen = Seen {
        guard: guard.map(|guard| guard.tls.and_then(|tls| tls.expiry_warning(now))),
        sockets: config.daemon.listen.0.iter().filter_map(socket).collect(),
    };
    judge(config, &seen)
}

fn judge(config: &Config, seen: &Seen) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has = |what: bool, name: &'static str| what.then_some(name);
    let guards = [
        has(config.tls.cert.is_some(), "TLS"),
        has(config.tls.client_ca.is_some(), "client certificates"),
        has(config.auth.tokens.is_some(), "tokens"),
    ];
    let guards: Vec<_> = guards.into_iter().flatten().collect();
    findings.push(match (&seen.guard, guards.is_empty()) {
        (Err(reason), _) => Finding::fail(ABOUT, reason, "the daemon does not start so"),
        (Ok(Some(warning)), _) => Finding::warn(ABOUT, warning, "renew the certificate before then"),
        (Ok(None), false) => Finding::ok(ABOUT, guards.join(", ")),
        (Ok(None), true) => Finding::ok(ABOUT, "neither TLS nor tokens: for this machine's users alone"),
    });
    let exposed: Vec<_> = config.daemon.listen.0.iter().filter(|endpoint| endpoint.is_exposed()).collect();
    if let (true, [first, ..]) = (config.daemon.allow_insecure, &exposed[..]) {
        let text =
            format!("other machines can reach {first}, and daemon.allow_insecure takes that without TLS and tokens");
        findings.push(Finding::warn(ABOUT, text, "set tls.cert, tls.key and auth.tokens, and take allow_insecure out"));
    }
    findings.extend(seen.sockets.iter().map(|socket| judge_socket(config, socket)));
    findings
}

fn judge_socket(config: &Config, socket: &Socket) -> Finding {
    let path = socket.path.display();
    if !socket.folder {
        let advice = "make it, writable for the daemon's user alone (the unit's RuntimeDirectory does)";
        return Finding::fail(ABOUT, format!("the folder of the socket {path} is not there"), advice);
    }
    let mode = socket.mode.unwrap_or(config.daemon.socket_mode.0);
    let there = if socket.mode.is_some() { "has" } else { "will have" };
    let text = format!("socket {path} {there} mode {mode:04o}");
    // To connect is to write.
    match mode & 0o002 != 0 && !config.auth.unix {
        true => Finding::warn(
            ABOUT,
            format!("{text}: every user of this machine can send jobs"),
            "daemon.socket_mode = \"0660\"",
        ),
        false => Finding::ok(ABOUT, text),
    }
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
    use crate::config::{OneOrMany, SocketMode};

    fn seen(guard: Result<Option<String>, String>) -> Seen {
        Seen { guard, sockets: Vec::new() }
    }

    #[test]
    fn files_that_the_daemon_refuses_are_failures() {
        let mut config = Config::default();
        assert_eq!(levels(&judge(&config, &seen(Ok(None)))), [Good]);
        assert_eq!(levels(&judge(&config, &seen(Ok(Some("expires in 3 days".into()))))), [Warn]);
        assert_eq!(levels(&judge(&config, &seen(Err("chmod 0600".into())))), [Fail]);
        config.auth.tokens = Some("/no/such/file".into());
        assert_eq!(levels(&look(&config)), [Fail]);
    }

    #[test]
    fn insecure_by_choice_is_a_warning() {
        let mut config = Config::default();
        config.daemon.listen = OneOrMany(vec!["0.0.0.0:1".parse().expect("an address")]);
        config.daemon.allow_insecure = true;
        assert_eq!(levels(&judge(&config, &seen(Ok(None)))), [Good, Warn]);
    }

    #[test]
    fn sockets_need_a_folder_and_permissions() {
        let mut config = Config::default();
        let socket = |folder, mode| Socket { path: "/run/c.sock".into(), folder, mode };
        let mut of = |mode: u32, unix: bool, socket: &Socket| {
            config.daemon.socket_mode = SocketMode(mode);
            config.auth.unix = unix;
            judge_socket(&config, socket).level
        };
        assert_eq!(of(0o660, false, &socket(true, None)), Good);
        assert_eq!(of(0o666, false, &socket(true, None)), Warn);
        assert_eq!(of(0o666, true, &socket(true, None)), Good);
        assert_eq!(of(0o660, false, &socket(true, Some(0o777))), Warn);
        assert_eq!(of(0o660, false, &socket(false, None)), Fail);
    }
}
