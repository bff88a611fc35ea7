//! Which keys of a new configuration apply to a daemon that runs, and which wait for a restart.

use crate::config::{Config, KEYS, Key};

/// What differs between the configuration in force and a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The configuration to run with from now on: the old one with the keys of `live` as in the new one.
    pub config: Config,
    /// Keys that change at once.
    pub live: Vec<String>,
    /// Keys that have another value in the new configuration, and keep their old one until a restart.
    pub restart: Vec<String>,
}

/// Compares two configurations, both checked.
pub fn changes(old: &Config, new: &Config) -> Changes {
    let mut changes = Changes { config: old.clone(), live: Vec::new(), restart: Vec::new() };
    for key in KEYS {
        let value = (key.get)(new);
        if (key.get)(old) == value {
            continue;
        }
        let applied = is_live(key, old, new) && (key.set)(&mut changes.config, &value).is_ok();
        match applied {
            true => changes.live.push(key.path()),
            false => changes.restart.push(key.path()),
        }
    }
    changes
}

/// Whether the change of this key may apply at once. A guard may be put up or exchanged so, but not taken away: what
/// listens was allowed to with that guard.
fn is_live(key: &Key, old: &Config, new: &Config) -> bool {
    let tls_stays = old.tls.cert.is_some() && new.tls.cert.is_some();
    match (key.table, key.name) {
        ("logging", "level") | ("limits", "rate") | ("auth", "unix") => true,
        ("auth", "tokens") => new.auth.tokens.is_some(),
        ("tls", "cert" | "key") => tls_stays,
        ("tls", "client_ca") => tls_stays && new.tls.client_ca.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(config: &mut Config, key: &str, value: &str) {
        let key = KEYS.iter().find(|k| k.path() == key).expect("a key");
        (key.set_text)(config, value).expect("a legal value");
    }

    fn of(old: &[(&str, &str)], new: &[(&str, &str)]) -> Changes {
        let config = |pairs: &[(&str, &str)]| {
            let mut config = Config::default();
            pairs.iter().for_each(|(key, value)| set(&mut config, key, value));
            config
        };
        changes(&config(old), &config(new))
    }

    #[test]
    fn the_same_changes_nothing() {
        let same = of(&[], &[]);
        assert_eq!((same.live.len(), same.restart.len(), same.config), (0, 0, Config::default()));
    }

    #[test]
    fn what_can_change_changes_and_the_rest_is_named() {
        let found = of(&[], &[("logging.level", "debug"), ("limits.rate", "7"), ("daemon.drain_timeout", "1m")]);
        assert_eq!(found.live, ["limits.rate", "logging.level"]);
        assert_eq!(found.restart, ["daemon.drain_timeout"]);
        assert_eq!(found.config.limits.rate, 7);
        assert_eq!(found.config.daemon, Config::default().daemon);
    }

    #[test]
    fn guards_are_exchanged_but_never_taken_away() {
        let (tls, auth) = ([("tls.cert", "/c"), ("tls.key", "/k"), ("tls.client_ca", "/a")], [("auth.tokens", "/t")]);
        assert_eq!(of(&tls, &[]).restart, ["tls.cert", "tls.key", "tls.client_ca"]);
        assert_eq!(of(&[], &tls).restart, ["tls.cert", "tls.key", "tls.client_ca"]);
        assert_eq!(of(&tls, &tls[..2]).restart, ["tls.client_ca"]);
        assert_eq!(of(&tls, &[("tls.cert", "/d"), ("tls.key", "/k"), ("tls.client_ca", "/a")]).live, ["tls.cert"]);
        assert_eq!(of(&auth, &[]).restart, ["auth.tokens"]);
        assert_eq!(of(&[], &auth).live, ["auth.tokens"]);
    }
}
