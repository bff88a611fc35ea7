//! What a browser keeps instead of a token: a badge, which opens reading at the door that gave it, and nothing else. Who
//! sees it learns nothing of the token, and a browser shows cookies to every port of a host.

use std::fmt;

use super::{Access, Denied, Peer, Scope, Who};

/// A door that gives badges. They hold until the door is closed, or their token is taken away.
#[derive(Clone)]
pub struct Badges {
    key: [u8; 32],
}

impl Badges {
    /// A door with a key that nobody else has: random bytes.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The badge for a token of scope read, and who holds it.
    ///
    /// # Errors
    /// If the token is not known, or lacks the scope.
    pub fn give(&self, access: &Access, token: &str) -> Result<(Who, String), Denied> {
        let rules = access.rules();
        let found = rules.tokens.as_ref().and_then(|tokens| tokens.find(token)).ok_or(Denied::UnknownToken)?;
        match found.scopes.include(Scope::Read) {
            true => Ok((Who::Token(found.name.clone()), hex::encode(found.badge(&self.key)))),
            false => Err(Denied::MissingScope { name: found.name.to_string(), scope: Scope::Read.name() }),
        }
    }

    /// Who may read: as [`Access::authorize`] says, or the holder of a badge if one is shown in place of a token.
    ///
    /// # Errors
    /// Why nobody may.
    pub fn authorize(
        &self,
        access: &Access,
        authorization: Option<&str>,
        badge: Option<&str>,
        peer: &Peer,
    ) -> Result<Who, Denied> {
        let asked = access.authorize(authorization, peer, super::Need::Scope(Scope::Read));
        let (Err(Denied::NoToken), None, Some(badge)) = (&asked, authorization, badge) else { return asked };
        let rules = access.rules();
        let shown = hex::decode(badge).map_err(|_| Denied::UnknownToken)?;
        let holder = rules.tokens.as_ref().and_then(|tokens| tokens.find_badge(&self.key, &shown));
        match holder {
            Some(token) if token.scopes.include(Scope::Read) => Ok(Who::Token(token.name.clone())),
            _ => Err(Denied::UnknownToken),
        }
    }
}

/// Shows no key.
impl fmt::Debug for Badges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Badges")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Need, Rules, Tokens};

    fn rules(text: &str) -> Rules {
        Rules { tokens: Some(Tokens::parse(text).unwrap()), ..Rules::default() }
    }

    fn peer() -> Peer {
        Peer::tcp(([10, 0, 0, 1], 7).into())
    }

    #[test]
    fn a_badge_opens_reading_at_its_own_door_until_its_token_is_gone() {
        let access = Access::new(rules("watch read s3cret-of-the-watch\nops admin s3cret-of-the-ops\n"));
        let (door, other) = (Badges::new([1; 32]), Badges::new([2; 32]));
        let (who, badge) = door.give(&access, "s3cret-of-the-watch").unwrap();
        assert_eq!(who, Who::Token("watch".into()));
        let show = |door: &Badges, badge: &str| door.authorize(&access, None, Some(badge), &peer());
        assert_eq!(show(&door, &badge), Ok(who));
        assert_eq!(show(&other, &badge), Err(Denied::UnknownToken));
        for wrong in ["", "00", "xx", "s3cret-of-the-watch", &"0".repeat(64)] {
            assert_eq!(show(&door, wrong), Err(Denied::UnknownToken), "{wrong:?}");
        }
        let bearer = format!("Bearer {badge}");
        let as_token = access.authorize(Some(&bearer), &peer(), Need::Scope(Scope::Read));
        assert_eq!(as_token, Err(Denied::UnknownToken), "it is no token");
        assert!(door.give(&access, "s3cret-of-the-ops").is_ok(), "admin includes reading");
        access.replace(rules("other read s3cret-of-the-other\n"));
        assert_eq!(show(&door, &badge), Err(Denied::UnknownToken));
    }

    #[test]
    fn a_badge_is_given_for_reading_only_and_asked_for_only_where_tokens_are() {
        let access = Access::new(rules("node submit s3cret-of-the-node\n"));
        let door = Badges::new([1; 32]);
        assert_eq!(door.give(&access, "s3cret-of-the-n0de"), Err(Denied::UnknownToken));
        let denied = door.give(&access, "s3cret-of-the-node").unwrap_err();
        assert!(matches!(denied, Denied::MissingScope { scope: "read", .. }), "{denied}");
        assert_eq!(door.authorize(&access, None, None, &peer()), Err(Denied::NoToken));
        assert!(door.authorize(&Access::default(), None, Some("00"), &peer()).is_ok());
        assert_eq!(format!("{door:?}"), "Badges");
    }
}
