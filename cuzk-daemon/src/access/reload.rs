//! SIGHUP reads the configuration again; certificates and tokens are also read when their files change.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Guard, changes::changes};
use crate::{
    cli::ConfigArgs,
    config::{self, Config, Problems},
    logging,
};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often a certificate's end is told.
const TELL_EVERY: Duration = Duration::from_secs(24 * 3600);

/// What can change while the daemon runs.
#[derive(Debug)]
pub struct Reload {
    guard: Guard,
    args: ConfigArgs,
    config: Config,
    seen: Vec<Option<Sign>>,
    told: Option<Instant>,
}

/// What tells one version of a file from another.
type Sign = (u64, u64, i64, i64, u32);

/// Listens for SIGHUP from now on, which would end the process otherwise.
///
/// # Errors
/// If the signal cannot be handled.
pub fn on_hangup() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl Reload {
    /// For a daemon that runs with this configuration, which came from `args`.
    pub fn new(guard: Guard, args: ConfigArgs, config: Config) -> Self {
        let seen = signs(&config);
        Self { guard, args, config, seen, told: None }
    }

    /// Goes on for ever.
    pub async fn run(mut self, mut hangup: Signal) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                Some(()) = hangup.recv() => self.hang_up(),
                _ = look.tick() => self.look(),
            }
        }
    }

    /// What SIGHUP asks for: reads everything again. Whatever is wrong leaves everything as it is.
    pub fn hang_up(&mut self) {
        tracing::info!("SIGHUP: reading the configuration again");
        let loaded = self.args.overrides().map_err(|problem| Problems(vec![problem]));
        match loaded.and_then(|overrides| config::load(self.args.config.as_deref(), overrides)) {
            Ok(settings) => {
                settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                self.apply(&settings.config);
            }
            Err(problems) => {
                for problem in &problems.0 {
                    tracing::error!("{problem}");
                }
                tracing::error!("the configuration stays as it was");
            }
        }
    }

    /// Applies what can be applied of a new configuration, which has been checked.
    pub fn apply(&mut self, new: &Config) {
        let changes = changes(&self.config, new);
        if let Err(error) = self.guard.reload(&changes.config) {
            tracing::error!("{error}");
            tracing::error!("the configuration stays as it was");
            return;
        }
        logging::set_level(&changes.config.logging.level);
        self.seen = signs(&changes.config);
        self.config = changes.config;
        match changes.live.is_empty() {
            true => tracing::info!("certificates and tokens are read again; no key changed that applies at once"),
            false => tracing::info!("changed: {}", changes.live.join(", ")),
        }
        for key in &changes.restart {
            tracing::warn!("{key} has changed in the configuration and needs a restart");
        }
    }

    /// Looks whether a file has changed, and whether a certificate is about to end.
    fn look(&mut self) {
        let signs = signs(&self.config);
        if signs != self.seen {
            self.seen = signs;
            match self.guard.reload(&self.config) {
                Ok(()) => tracing::info!("certificates or tokens have changed and are in force"),
                Err(error) => tracing::error!("{error}; the old certificates and tokens stay in force"),
            }
            self.told = None;
        }
        let warning = self.guard.tls.as_ref().and_then(|tls| tls.expiry_warning(SystemTime::now()));
        if let Some(warning) = warning
            && self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY)
        {
            self.told = Some(Instant::now());
            tracing::warn!("{warning}");
        }
    }
}

/// Of each file that is watched. One that is not there is a version too.
fn signs(config: &Config) -> Vec<Option<Sign>> {
    let files: [&Option<PathBuf>; 4] = [&config.tls.cert, &config.tls.key, &config.tls.client_ca, &config.auth.tokens];
    let sign = |path: &PathBuf| {
        let m = fs::metadata(path).ok()?;
        Some((m.ino(), m.size(), m.mtime(), m.mtime_nsec(), m.mode()))
    };
    files.into_iter().map(|file| sign(file.as_ref()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_changed_token_file_is_read_at_the_next_look_and_a_bad_configuration_changes_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (tokens, file) = (dir.path().join("tokens"), dir.path().join("cuzk.toml"));
        let write_tokens = |text: &str| {
            fs::write(&tokens, text).expect("writable");
            fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).expect("ours");
        };
        write_tokens("a read token-of-a-long-enough\n");
        fs::write(&file, format!("[auth]\ntokens = {tokens:?}\n")).expect("writable");
        let args = ConfigArgs { config: Some(file.clone()), ..ConfigArgs::default() };
        let config = config::load(Some(&file), Vec::new()).expect("legal").config;
        let guard = Guard::load(&config).expect("good");
        let mut reload = Reload::new(guard.clone(), args, config);
        let count = || guard.access.rules().tokens.as_ref().map(|tokens| tokens.len());
        reload.look();
        assert_eq!(count(), Some(1));
        write_tokens("a read token-of-a-long-enough\nb read token-of-b-long-enough\n");
        reload.look();
        assert_eq!(count(), Some(2));

        fs::write(&file, format!("[auth]\ntokens = {tokens:?}\n[limits]\nrate = 9\n")).expect("writable");
        reload.hang_up();
        assert_eq!(guard.access.rules().rate, 9);
        fs::write(&file, "[limits]\nrate = \"many\"\n").expect("writable");
        reload.hang_up();
        fs::write(&file, "[limits]\nrate = 10\n").expect("writable");
        reload.hang_up();
        let rules = guard.access.rules();
        assert_eq!((rules.rate, rules.tokens.is_some()), (10, true), "tokens are not taken away without a restart");
    }
}
