//! Scopes, and which method needs which.

use std::{fmt, str::FromStr};

/// What a token may be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To hand in proofs, wait for them and cancel them.
    Submit,
    /// To look.
    Read,
    /// To change what the daemon has loaded; includes the others.
    Admin,
}

/// What a method asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: load balancers have no tokens.
    Nothing,
    /// A token of this scope.
    Scope(Scope),
}

/// The scopes of one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope; write submit, read or admin, or several with commas between")]
pub struct UnknownScope(pub String);

/// What the method at this path (`/package.Service/Method`) asks for. One that is not known here asks for
/// [`Scope::Admin`], so that a method which somebody forgets to enter is closed, not open.
pub fn need(path: &str) -> Need {
    match METHODS.iter().find(|(known, _)| *known == path) {
        Some((_, need)) => *need,
        None if path.starts_with(HEALTH) => Need::Nothing,
        None if path.starts_with(REFLECTION) => Need::Scope(Scope::Read),
        None => Need::Scope(Scope::Admin),
    }
}

/// The name of the method at a path, for metrics; "other" for what is not of our service.
pub fn method(path: &str) -> &'static str {
    let known = METHODS.iter().find(|(known, _)| *known == path).and_then(|(known, _)| known.rsplit('/').next());
    known.unwrap_or("other")
}

const SUBMIT: Need = Need::Scope(Scope::Submit);
const READ: Need = Need::Scope(Scope::Read);
const ADMIN: Need = Need::Scope(Scope::Admin);

/// Every method of our service. A test holds it against the descriptor of the protocol.
const METHODS: &[(&str, Need)] = &[
    ("/cuzk.v1.ProvingEngine/SubmitProof", SUBMIT),
    ("/cuzk.v1.ProvingEngine/AwaitProof", SUBMIT),
    ("/cuzk.v1.ProvingEngine/Prove", SUBMIT),
    ("/cuzk.v1.ProvingEngine/CancelProof", SUBMIT),
    ("/cuzk.v1.ProvingEngine/GetStatus", READ),
    ("/cuzk.v1.ProvingEngine/GetMetrics", READ),
    ("/cuzk.v1.ProvingEngine/ListJobs", READ),
    ("/cuzk.v1.ProvingEngine/GetJob", READ),
    ("/cuzk.v1.ProvingEngine/WatchJob", READ),
    ("/cuzk.v1.ProvingEngine/WatchStatus", READ),
    ("/cuzk.v1.ProvingEngine/GetTimeline", READ),
    ("/cuzk.v1.ProvingEngine/PreloadSRS", ADMIN),
    ("/cuzk.v1.ProvingEngine/EvictSRS", ADMIN),
];

const HEALTH: &str = "/grpc.health.v1.Health/";
/// Both versions of the service.
const REFLECTION: &str = "/grpc.reflection.v1";

impl Scope {
    /// Its name in the token file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// Whether a token with these may do what needs `scope`.
    pub fn include(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let all = [Self::Submit, Self::Read, Self::Admin];
        all.into_iter().find(|scope| scope.name() == text).ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split(',').try_fold(Self::default(), |scopes, word| Ok(Self(scopes.0 | word.parse::<Scope>()?.bit())))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [Scope::Submit, Scope::Read, Scope::Admin];
        let names: Vec<_> = all.into_iter().filter(|s| self.0 & s.bit() != 0).map(Scope::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn every_method_of_the_protocol_is_in_the_table_and_no_other() {
        let set = prost_types::FileDescriptorSet::decode(cuzk_proto::v1::FILE_DESCRIPTOR_SET).expect("a descriptor");
        let mut paths = Vec::new();
        for file in &set.file {
            for service in &file.service {
                let name = format!("{}.{}", file.package(), service.name());
                paths.extend(service.method.iter().map(|method| format!("/{name}/{}", method.name())));
            }
        }
        for path in &paths {
            assert!(METHODS.iter().any(|(known, _)| known == path), "{path} has no scope: enter it in METHODS");
        }
        assert_eq!(paths.len(), METHODS.len(), "a row of METHODS is of no method, or there twice");
    }

    #[test]
    fn what_is_not_known_is_for_admins() {
        for path in ["", "/", "/cuzk.v1.ProvingEngine/", "/cuzk.v1.ProvingEngine/submitproof", "/x.Y/Z"] {
            assert_eq!(need(path), ADMIN, "{path}");
        }
        assert_eq!(need("/grpc.health.v1.Health/Check"), Need::Nothing);
        assert_eq!(need("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"), READ);
    }

    #[test]
    fn admin_includes_the_others_and_they_nothing_else() {
        let scopes = |text: &str| text.parse::<Scopes>().expect("legal");
        for scope in [Scope::Submit, Scope::Read, Scope::Admin] {
            assert!(scopes("admin").include(scope));
            assert_eq!(scopes("read").include(scope), scope == Scope::Read);
            assert_eq!(scopes("submit,read").include(scope), scope != Scope::Admin);
            assert!(!Scopes::default().include(scope));
        }
        assert_eq!(scopes("read,submit").to_string(), "submit,read");
        for text in ["", "submit,", "Submit", "all", "submit read"] {
            assert!(text.parse::<Scopes>().is_err(), "{text:?}");
        }
    }
}
