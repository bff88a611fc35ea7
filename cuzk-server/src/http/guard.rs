//! Who may look.

use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{AUTHORIZATION, COOKIE, HOST, RETRY_AFTER, WWW_AUTHENTICATE},
};

use crate::{
    access::{Access, Badges, Denied, Peer, Who},
    grpc::seldom::Seldom,
};

/// The cookie that holds a badge.
pub(super) const BADGE: &str = "cuzk_badge";

/// The rules of one server.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) access: Access,
    pub(super) badges: Badges,
    /// Whether connections are encrypted.
    pub(super) secure: bool,
    pub(super) denied: Seldom,
}

/// Why an answer is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// By the rules of access.
    Denied(Denied),
    /// A name in place of an address, where only the address protects the daemon.
    Host(String),
}

impl Guard {
    /// Who asks, if they may read.
    pub(super) fn admit(&self, headers: &HeaderMap, peer: &Peer) -> Result<Who, Refused> {
        self.check_host(headers, peer)?;
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let admitted = self.badges.authorize(&self.access, authorization, badge(headers), peer);
        self.count(admitted, peer)
    }

    /// Counts a request; who guesses is counted as well.
    pub(super) fn count<T: AsWho>(&self, admitted: Result<T, Denied>, peer: &Peer) -> Result<T, Refused> {
        let who = admitted.as_ref().map_or_else(|_| Who::of_peer(peer), |admitted| admitted.who().clone());
        let counted = self.access.count(&who, peer, Instant::now()).and(admitted);
        counted.map_err(|denied| {
            // A browser that has not come in yet asks without a token, and is shown the way.
            if denied != Denied::NoToken
                && let Some(times) = self.denied.now(Instant::now())
            {
                tracing::warn!(target: "audit", who = %Who::of_peer(peer), from = %peer, what = "http", times, "denied: {denied}");
            }
            Refused::Denied(denied)
        })
    }

    /// A page elsewhere may let its own name lead to this machine, and ask in its visitors' name (DNS rebinding). Where
    /// neither a token nor a certificate keeps it out, the name must not be one.
    pub(super) fn check_host(&self, headers: &HeaderMap, peer: &Peer) -> Result<(), Refused> {
        if self.secure || peer.is_unix() || self.access.rules().tokens.is_some() {
            return Ok(());
        }
        // HTTP/2 has no such header; browsers speak it over TLS only.
        let Some(host) = headers.get(HOST) else { return Ok(()) };
        let host = host.to_str().unwrap_or_default();
        match is_address(host) {
            true => Ok(()),
            false => Err(Refused::Host(host.escape_default().take(64).collect())),
        }
    }
}

/// Something that says who it is.
pub(super) trait AsWho {
    fn who(&self) -> &Who;
}

impl AsWho for Who {
    fn who(&self) -> &Who {
        self
    }
}

impl<T> AsWho for (Who, T) {
    fn who(&self) -> &Who {
        &self.0
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let denied = match self {
            Self::Host(host) => {
                let text = format!(
                    "the host {host:?} is a name: without tokens or TLS this page is only at an IP address or localhost\n"
                );
                return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
            }
            Self::Denied(denied) => denied,
        };
        let mut response = (status(&denied), format!("{denied}\n")).into_response();
        let headers = response.headers_mut();
        match denied {
            Denied::NoToken | Denied::UnknownToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"cuzk\""));
            }
            Denied::TooMany { retry_after, .. } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds(retry_after)));
            }
            Denied::MissingScope { .. } => {}
        }
        response
    }
}

/// How HTTP calls it.
pub(super) fn status(denied: &Denied) -> StatusCode {
    match denied {
        Denied::NoToken | Denied::UnknownToken => StatusCode::UNAUTHORIZED,
        Denied::MissingScope { .. } => StatusCode::FORBIDDEN,
        Denied::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// Rounded up, at least one.
fn seconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}

/// Whether a Host header holds an IP address or `localhost`, with or without a port.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => return address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok()
}

/// The badge among a request's cookies (RFC 6265, 4.2).
pub(super) fn badge(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == BADGE).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_localhost() {
        for host in ["127.0.0.1", "127.0.0.1:9821", "[::1]:9821", "[::1]", "localhost", "LOCALHOST:1", "10.0.0.1:80"] {
            assert!(is_address(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9821", "127.0.0.1.evil.example", "[evil]:1", "localhost.evil"] {
            assert!(!is_address(host), "{host}");
        }
    }

    #[test]
    fn the_badge_is_found_among_cookies() {
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, line.parse().expect("a header"));
            }
            badge(&headers).map(str::to_owned)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["a=b; cuzk_badge=00ff; c=d"]).as_deref(), Some("00ff"));
        assert_eq!(of(&["a=b", "cuzk_badge=1"]).as_deref(), Some("1"));
        assert_eq!(of(&["xcuzk_badge=1; cuzk_badgex=2; cuzk_badge"]), None);
    }
}
