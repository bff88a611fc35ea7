//! A place that has parameter files, as the operator writes it: a folder's URL, or a pattern.

use std::{fmt, str::FromStr};

use super::wanted::Wanted;

/// A URL in which `{file}` stands for a file's name and `{cid}` for its content id; without either it is that of the
/// folder in which the files lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror(String);

/// Why a text is no mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// No URL of a kind that is fetched.
    #[error("is no URL that begins with https:// (or http://, with --allow-http) and names a host")]
    NoUrl,
    /// What stands in braces is unknown.
    #[error("has braces around something else than {{file}} or {{cid}}")]
    UnknownPattern,
    /// A name and password, which would end up in logs and process lists.
    #[error("has a user name or password in it, which logs and messages would show; use a mirror that needs none")]
    Credentials,
    /// A query or fragment and no pattern.
    #[error("has a query or fragment: say with {{file}} where the file's name goes")]
    NoPlace,
}

impl Mirror {
    /// Where a file is.
    pub fn url(&self, wanted: &Wanted) -> String {
        self.0.replace("{file}", &wanted.name).replace("{cid}", &wanted.cid)
    }

    /// Whether nobody on the way can read or change what comes from it.
    pub fn is_encrypted(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl FromStr for Mirror {
    type Err = MirrorError;

    fn from_str(text: &str) -> Result<Self, MirrorError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").ok_or(MirrorError::NoUrl)?;
        let scheme = scheme.to_ascii_lowercase();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.split(':').next().unwrap_or_default();
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        if !["https", "http"].contains(&scheme.as_str()) || host.is_empty() || !is_plain {
            return Err(MirrorError::NoUrl);
        }
        if authority.contains('@') {
            return Err(MirrorError::Credentials);
        }
        let without = text.replace("{file}", "").replace("{cid}", "");
        if without.contains(['{', '}']) || authority.contains('{') {
            return Err(MirrorError::UnknownPattern);
        }
        let url = format!("{scheme}://{rest}");
        if without.len() < text.len() {
            return Ok(Self(url));
        }
        match rest.contains(['?', '#']) {
            true => Err(MirrorError::NoPlace),
            false => Ok(Self(format!("{}/{{file}}", url.trim_end_matches('/')))),
        }
    }
}

/// Reads back as the same mirror.
impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(mirror: &str) -> Result<String, MirrorError> {
        let wanted = super::super::wanted::of_circuit("porep-2k".parse().expect("legal")).expect("built").remove(0);
        let wanted = Wanted { name: "v28-a.vk".into(), cid: "Qm1".into(), ..wanted };
        mirror.parse::<Mirror>().map(|mirror| mirror.url(&wanted))
    }

    #[test]
    fn a_folder_or_a_pattern() {
        for (mirror, expected) in [
            ("https://h/p", "https://h/p/v28-a.vk"),
            ("https://h/p/", "https://h/p/v28-a.vk"),
            ("HTTPS://h", "https://h/v28-a.vk"),
            ("https://h/{file}?x=1", "https://h/v28-a.vk?x=1"),
            (" https://h:8443/ipfs/{cid} ", "https://h:8443/ipfs/Qm1"),
            ("http://h/{cid}/{file}", "http://h/Qm1/v28-a.vk"),
        ] {
            assert_eq!(url(mirror).as_deref(), Ok(expected));
            let read = mirror.parse::<Mirror>().expect("legal");
            assert_eq!(read.to_string().parse(), Ok(read));
        }
    }

    #[test]
    fn what_is_no_mirror_is_refused() {
        for (text, error) in [
            ("", MirrorError::NoUrl),
            ("proofs.example", MirrorError::NoUrl),
            ("ftp://h/", MirrorError::NoUrl),
            ("https://", MirrorError::NoUrl),
            ("https:///p", MirrorError::NoUrl),
            ("https://:80/p", MirrorError::NoUrl),
            ("https://h/a b", MirrorError::NoUrl),
            ("https://h/{name}", MirrorError::UnknownPattern),
            ("https://h/{file", MirrorError::UnknownPattern),
            ("https://{cid}/", MirrorError::UnknownPattern),
            ("https://u:p@h/", MirrorError::Credentials),
            ("https://h/?name=", MirrorError::NoPlace),
            ("https://h/#a", MirrorError::NoPlace),
        ] {
            assert_eq!(url(text), Err(error), "{text}");
        }
    }

    #[test]
    fn only_https_is_encrypted() {
        let encrypted = |text: &str| text.parse::<Mirror>().map(|mirror| mirror.is_encrypted());
        assert_eq!((encrypted("https://h"), encrypted("http://h")), (Ok(true), Ok(false)));
    }
}
