//! Who may do what: tokens, scopes, and how often somebody may ask. No sockets, no files and no clock here.
//!
//! * `scope`: the scopes, and which method needs which
//! * `tokens`: the token file's text, and comparing tokens
//! * `badge`: what a browser keeps instead of a token
//! * `rate`: how often one peer may ask
//! * `peer`: who is at the other end of a connection
//!
//! [`Access`] joins them. It is shared by the gRPC server and by whoever else answers requests; a reload swaps what is
//! in it, and requests see the old or the new rules, never a mixture.

mod badge;
mod peer;
mod rate;
mod scope;
mod tokens;

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

pub use self::{
    badge::Badges,
    peer::{Origin, Peer, Who},
    scope::{Need, Scope, Scopes, UnknownScope, method, need},
    tokens::{Token, TokenProblem, Tokens, digest},
};
use rate::Rates;

/// Who is asked for a token, and how often each may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The tokens; `None`: nobody is asked for one.
    pub tokens: Option<Tokens>,
    /// Whether clients at unix sockets need a token too.
    pub unix: bool,
    /// Requests a second that one client may send; 0: as many as it likes.
    pub rate: u32,
}

/// The rules in force, and what is remembered of each client's requests. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Arc<RwLock<Arc<Rules>>>,
    rates: Arc<Mutex<Rates>>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A token is needed, and there is none.
    #[error("a token is needed: send it as \"authorization: Bearer TOKEN\"")]
    NoToken,
    /// There is one, and it is none of ours.
    #[error("the token is not known here")]
    UnknownToken,
    /// The token is known, and does not allow this.
    #[error("the token {name:?} lacks the scope {scope:?}, which this needs")]
    MissingScope {
        /// The token's name.
        name: String,
        /// What it lacks.
        scope: &'static str,
    },
    /// Too many requests in too little time.
    #[error("more than {rate} requests in a second; retry in {} ms", retry_after.as_millis())]
    TooMany {
        /// What is allowed.
        rate: u32,
        /// When one more is allowed.
        retry_after: Duration,
    },
}

impl Access {
    /// With these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules: Arc::new(RwLock::new(Arc::new(rules))), rates: Arc::default() }
    }

    /// Other rules, from the next request on.
    pub fn replace(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who asks, if they may. `authorization` is the header of that name, if there is one.
    ///
    /// # Errors
    /// Why not, in words for the client: they tell nothing that it does not know.
    pub fn authorize(&self, authorization: Option<&str>, peer: &Peer, need: Need) -> Result<Who, Denied> {
        let rules = self.rules();
        let Need::Scope(scope) = need else { return Ok(Who::of_peer(peer)) };
        let Some(tokens) = &rules.tokens else { return Ok(Who::of_peer(peer)) };
        if peer.is_unix() && !rules.unix {
            return Ok(Who::of_peer(peer));
        }
        let token = bearer(authorization).ok_or(Denied::NoToken)?;
        let found = tokens.find(token).ok_or(Denied::UnknownToken)?;
        match found.scopes.include(scope) {
            true => Ok(Who::Token(found.name.clone())),
            false => Err(Denied::MissingScope { name: found.name.to_string(), scope: scope.name() }),
        }
    }

    /// Counts a request of this client at the time `now`.
    ///
    /// # Errors
    /// If it has sent too many.
    pub fn count(&self, who: &Who, peer: &Peer, now: Instant) -> Result<(), Denied> {
        let rate = self.rules().rate;
        if rate == 0 {
            return Ok(());
        }
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(&who.rate_key(peer), rate, now).map_err(|retry_after| Denied::TooMany { rate, retry_after })
    }
}

/// The token in a header; the scheme's name is of any case (RFC 9110, 11.1).
fn bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(unix: bool) -> Access {
        let tokens = Tokens::parse("node submit,read s3cret-of-the-node\nwatch read s3cret-of-the-watch\n").unwrap();
        Access::new(Rules { tokens: Some(tokens), unix, rate: 0 })
    }

    fn tcp() -> Peer {
        Peer::tcp(([10, 0, 0, 1], 7).into())
    }

    #[test]
    fn a_token_opens_what_its_scopes_say() {
        let access = access(false);
        let ask = |header, scope| access.authorize(header, &tcp(), Need::Scope(scope));
        assert_eq!(ask(None, Scope::Read), Err(Denied::NoToken));
        assert_eq!(ask(Some("Basic s3cret-of-the-node"), Scope::Read), Err(Denied::NoToken));
        assert_eq!(ask(Some("Bearer s3cret-of-the-n0de"), Scope::Read), Err(Denied::UnknownToken));
        assert_eq!(ask(Some("bearer  s3cret-of-the-node"), Scope::Submit), Ok(Who::Token("node".into())));
        let missing = ask(Some("Bearer s3cret-of-the-watch"), Scope::Submit).unwrap_err();
        assert_eq!(missing.to_string(), "the token \"watch\" lacks the scope \"submit\", which this needs");
        assert_eq!(access.authorize(None, &tcp(), Need::Nothing), Ok(Who::Address("10.0.0.1".parse().unwrap())));
    }

    #[test]
    fn a_unix_socket_asks_only_if_it_is_told_to() {
        let peer = Peer::unix(Some(1000), Some(7));
        let asked = |unix| access(unix).authorize(None, &peer, Need::Scope(Scope::Admin));
        assert_eq!(asked(false), Ok(Who::User { uid: Some(1000), pid: Some(7) }));
        assert_eq!(asked(true), Err(Denied::NoToken));
    }

    #[test]
    fn without_tokens_nobody_is_asked_and_a_reload_is_seen_at_once() {
        let open = Access::default();
        let shared = open.clone();
        assert!(open.authorize(None, &tcp(), Need::Scope(Scope::Admin)).is_ok());
        open.replace((*access(false).rules()).clone());
        assert_eq!(shared.authorize(None, &tcp(), Need::Scope(Scope::Read)), Err(Denied::NoToken));
    }

    #[test]
    fn each_client_has_a_rate_of_its_own() {
        let access = Access::new(Rules { rate: 1, ..Rules::default() });
        let (now, who) = (Instant::now(), Who::Token("node".into()));
        let sent = (0..9).take_while(|_| access.count(&who, &tcp(), now).is_ok()).count();
        assert_eq!(sent, 2, "a second's worth beyond the rate");
        assert!(matches!(access.count(&who, &tcp(), now), Err(Denied::TooMany { rate: 1, .. })));
        assert!(access.count(&Who::of_peer(&tcp()), &tcp(), now).is_ok());
    }
}
