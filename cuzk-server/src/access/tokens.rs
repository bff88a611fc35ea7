//! The token file's text, and comparing a token with all of it.

use std::{collections::HashSet, fmt, sync::Arc};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::scope::{Scopes, UnknownScope};

/// Fewer characters than these can be guessed.
const LEAST_CHARS: usize = 16;
/// In front of a digest that stands in place of the token.
const SHA256: &str = "sha256:";

/// One line of the file: a name, what it may do, and the SHA-256 of the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What logs call it.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Scopes,
    digest: [u8; 32],
}

/// All tokens of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(Vec<Token>);

/// What is wrong with a line. The token itself is never shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TokenProblem {
    /// Counted from 1.
    pub line: usize,
    /// In one line.
    pub reason: String,
}

/// The SHA-256 of a token, as it is compared.
pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// What stands for a token, of which this is the digest, at a door that has this key: nothing to other doors, and
/// nothing about the token to whoever sees it.
fn badge(key: &[u8; 32], digest: &[u8; 32]) -> [u8; 32] {
    // Both have a fixed length, so that no other pair of them gives the same text.
    Sha256::new().chain_update(key).chain_update(digest).finalize().into()
}

impl Tokens {
    /// Reads lines of `name scope[,scope] TOKEN`, where TOKEN may be `sha256:` and its digest in hexadecimal. Lines that
    /// are empty or begin with `#` are comments.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn parse(text: &str) -> Result<Self, TokenProblem> {
        let mut tokens = Vec::new();
        let (mut names, mut digests) = (HashSet::new(), HashSet::new());
        for (i, line) in text.lines().enumerate() {
            let problem = |reason: String| TokenProblem { line: i + 1, reason };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let token = Token::parse(line).map_err(problem)?;
            if !names.insert(token.name.clone()) {
                return Err(problem(format!("the name {:?} is there twice", token.name)));
            }
            if !digests.insert(token.digest) {
                return Err(problem(format!("the token of {:?} is there twice", token.name)));
            }
            tokens.push(token);
        }
        Ok(Self(tokens))
    }

    /// The entry of this token. Takes the same time whichever it is, and whether it is there or not.
    pub fn find(&self, token: &str) -> Option<&Token> {
        let digest = digest(token);
        let mut found = None;
        for entry in &self.0 {
            if bool::from(entry.digest.ct_eq(&digest)) {
                found = Some(entry);
            }
        }
        found
    }

    /// The entry whose badge this is. Takes the same time whichever it is, and whether it is there or not.
    pub(super) fn find_badge(&self, key: &[u8; 32], shown: &[u8]) -> Option<&Token> {
        let mut found = None;
        for entry in &self.0 {
            if bool::from(badge(key, &entry.digest).ct_eq(shown)) {
                found = Some(entry);
            }
        }
        found
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, so that nobody can come in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Token {
    /// What stands for it at a door that has this key.
    pub(super) fn badge(&self, key: &[u8; 32]) -> [u8; 32] {
        badge(key, &self.digest)
    }

    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(scopes), Some(secret), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("expected \"name scope[,scope] token\"".to_owned());
        };
        let scopes = scopes.parse().map_err(|e: UnknownScope| e.to_string())?;
        let digest = match secret.strip_prefix(SHA256) {
            Some(hex) => {
                let mut digest = [0; 32];
                hex::decode_to_slice(hex, &mut digest)
                    .map_err(|_| format!("after {SHA256} there must be 64 hexadecimal digits"))?;
                digest
            }
            None if secret.len() < LEAST_CHARS => {
                return Err(format!(
                    "the token has fewer than {LEAST_CHARS} characters: make one with `cuzk-daemon token new`"
                ));
            }
            None => digest(secret),
        };
        Ok(Self { name: name.into(), scopes, digest })
    }

    /// The line for the file that stands for this token.
    pub fn line(name: &str, scopes: Scopes, token: &str) -> String {
        format!("{name} {scopes} {SHA256}{}", hex::encode(digest(token)))
    }
}

/// Shows no digest: of a weak token it would tell the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({} {})", self.name, self.scopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;

    #[test]
    fn plain_and_hashed_tokens_are_found() {
        let hashed = Token::line("ops", "admin".parse().unwrap(), "another-secret-token");
        let text = format!("# who may come in\n\n  node submit,read a-secret-token-of-it \n{hashed}\n");
        let tokens = Tokens::parse(&text).unwrap();
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens.find("a-secret-token-of-it").map(|t| &*t.name), Some("node"));
        let ops = tokens.find("another-secret-token").unwrap();
        assert!(ops.scopes.include(Scope::Admin));
        assert!(tokens.find("").is_none() && tokens.find("a-secret-token-of-i").is_none());
        assert!(!hashed.contains("another-secret"));
    }

    #[test]
    fn bad_lines_are_told_without_the_secret() {
        for (line, reason) in [
            ("node submit", "expected \"name scope"),
            ("node submit s3cret-and-long-enough more", "expected \"name scope"),
            ("node write s3cret-and-long-enough", "\"write\" is no scope"),
            ("node read s3cret", "fewer than 16 characters"),
            ("node read sha256:s3cret", "64 hexadecimal digits"),
            ("ok read s3cret-that-is-not-said", "the name \"ok\" is there twice"),
            ("other read s3cret-and-long-enough", "the token of \"other\" is there twice"),
        ] {
            let problem = Tokens::parse(&format!("ok read s3cret-and-long-enough\n{line}\n")).unwrap_err();
            assert_eq!(problem.line, 2);
            assert!(problem.reason.contains(reason), "{problem}");
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn nothing_of_a_secret_is_in_debug_output() {
        let tokens = Tokens::parse("node read s3cret-and-long-enough").unwrap();
        let shown = format!("{tokens:?}");
        assert_eq!(shown, "Tokens([Token(node read)])");
    }
}
