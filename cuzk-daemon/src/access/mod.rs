//! Who may reach the daemon: certificates and tokens, read from their files at the start and again when they change.
//!
//! * `files`: reading what must be private
//! * [`tls`]: certificates, and the handshake
//! * [`changes`]: which keys of a new configuration apply without a restart (pure)
//! * [`reload`]: SIGHUP, and looking at the files
//!
//! What a request may do is decided in [`cuzk_server::access`].

pub mod changes;
mod files;
pub mod reload;
pub mod tls;

use std::path::PathBuf;

use cuzk_server::access::{Access, Rules, TokenProblem, Tokens};

pub use self::{files::FileError, tls::Tls};
use crate::config::Config;

/// What stands between strangers and the engine. Clones share it, and see what a reload brings.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Who may do what; for every server that answers requests.
    pub access: Access,
    /// The certificates of all TCP listeners; `None`: they speak plain text.
    pub tls: Option<Tls>,
}

/// Why certificates or tokens cannot be used. Each names the file and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The token file is not understood.
    #[error("auth.tokens: {}: {source}", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: TokenProblem,
    },
    /// The token file has no token.
    #[error("auth.tokens: {} has no token, so nobody could come in: add one with `cuzk-daemon token new`", path.display())]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
}

impl Guard {
    /// Reads the files that the configuration names.
    ///
    /// # Errors
    /// If one of them is not fit for use.
    pub fn load(config: &Config) -> Result<Self, GuardError> {
        let rules = rules(config)?;
        let tls = Tls::load(&config.tls)?;
        Ok(Self { access: Access::new(rules), tls })
    }

    /// Reads all files again and puts what is in them into force, or keeps everything as it is.
    ///
    /// # Errors
    /// If one of them is not fit for use: nothing has changed then.
    pub fn reload(&self, config: &Config) -> Result<(), GuardError> {
        let rules = rules(config)?;
        if let Some(tls) = &self.tls {
            tls.reload(&config.tls)?;
        }
        self.access.replace(rules);
        Ok(())
    }
}

fn rules(config: &Config) -> Result<Rules, GuardError> {
    let tokens = match &config.auth.tokens {
        None => None,
        Some(path) => {
            let text = files::read_private("auth.tokens", path, files::Privacy::OwnerOnly)?;
            let tokens = Tokens::parse(&text).map_err(|source| GuardError::Tokens { path: path.clone(), source })?;
            if tokens.is_empty() {
                return Err(GuardError::NoTokens { path: path.clone() });
            }
            Some(tokens)
        }
    };
    Ok(Rules { tokens, unix: config.auth.unix, rate: config.limits.rate })
}

/// What keeps a configuration's TCP listeners from being reachable by other machines; `None` where they may be.
/// Holds for every listener of the daemon.
pub fn exposure_refused(config: &Config) -> Option<String> {
    let someone_is_asked = config.auth.tokens.is_some() || config.tls.client_ca.is_some();
    let missing = match (config.tls.cert.is_some(), someone_is_asked) {
        (true, true) => return None,
        _ if config.daemon.allow_insecure => return None,
        (false, false) => {
            "neither TLS nor tokens are configured: set tls.cert, tls.key and auth.tokens (or tls.client_ca)"
        }
        (false, true) => "nothing is encrypted: set tls.cert and tls.key",
        (true, false) => "nobody is asked who they are: set auth.tokens, or tls.client_ca",
    };
    Some(format!("{missing}; or listen at 127.0.0.1 or a unix socket, or set daemon.allow_insecure = true"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use cuzk_server::access::{Denied, Need, Peer, Scope};

    use super::*;

    #[test]
    fn a_listener_for_others_needs_tls_and_somebody_who_asks() {
        let mut config = Config::default();
        assert!(exposure_refused(&config).is_some_and(|why| why.contains("tls.cert") && why.contains("auth.tokens")));
        config.auth.tokens = Some("/t".into());
        assert!(exposure_refused(&config).is_some_and(|why| why.contains("nothing is encrypted")));
        config.tls.cert = Some("/c".into());
        assert_eq!(exposure_refused(&config), None);
        config.auth.tokens = None;
        assert!(exposure_refused(&config).is_some_and(|why| why.contains("tls.client_ca")));
        config.tls.client_ca = Some("/a".into());
        assert_eq!(exposure_refused(&config), None);
        config = Config::default();
        config.daemon.allow_insecure = true;
        assert_eq!(exposure_refused(&config), None);
    }

    #[test]
    fn a_bad_token_file_keeps_the_old_tokens() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("tokens");
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        };
        let mut config = Config::default();
        config.auth.tokens = Some(path.clone());
        assert!(Guard::load(&config).is_err_and(|e| e.to_string().contains("auth.tokens")));
        write("node submit a-token-long-enough\n", 0o600);
        let guard = Guard::load(&config).expect("good");
        let ask = |token: &str| {
            let header = format!("Bearer {token}");
            let peer = Peer::tcp(([127, 0, 0, 1], 1).into());
            guard.access.authorize(Some(&header), &peer, Need::Scope(Scope::Submit)).map(|who| who.to_string())
        };
        assert_eq!(ask("a-token-long-enough"), Ok("token node".into()));
        for (text, mode, reason) in [
            ("node submit\n", 0o600, "line 1"),
            ("# nobody\n", 0o600, "has no token"),
            ("node submit another-token-of-it\n", 0o640, "chmod 0600"),
        ] {
            write(text, mode);
            let error = guard.reload(&config).expect_err("bad").to_string();
            assert!(error.contains(reason), "{error}");
            assert!(ask("a-token-long-enough").is_ok(), "{reason}");
        }
        write("node submit another-token-of-it\n", 0o600);
        guard.reload(&config).expect("good");
        assert_eq!(ask("a-token-long-enough"), Err(Denied::UnknownToken));
        assert!(ask("another-token-of-it").is_ok());
    }
}
