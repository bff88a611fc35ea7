//! The folders of the job store, the caches and the parameters: whether they can be used, how much room they have, and how
//! fast they are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuzk_gpu::params::{Library, Verdicts};
use nix::sys::statfs::{NFS_SUPER_MAGIC, TMPFS_MAGIC, statfs};

use super::{
    finding::Finding,
    speed::{self, Speed},
};
use crate::{
    backend,
    commands::{params::porep_circuits, text},
    config::{Config, StoreKind},
    disk, state,
};

/// What was seen of one folder.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    what: What,
    folder: PathBuf,
    /// The folder itself, or the next one above it that is there.
    at: PathBuf,
    /// Bytes that it should have free.
    wants: u64,
    free: Result<u64, String>,
    speed: Result<Speed, String>,
    kind: Kind,
    /// Whether the system's cleaner removes what nobody has used for long.
    cleaned: bool,
}

/// What a folder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Store,
    Cache,
    Params,
}

/// What a folder is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Memory,
    Network,
    Other,
}

/// Bytes a second below which a disk is told to be slow: a request of 52 MB is acknowledged when it is synced, and 48 GB of
/// parameters are read at a start.
const SLOW_WRITE: f64 = 50e6;
const SLOW_READ: f64 = 500e6;

/// Looks at the folders of a configuration. A second each at most.
pub(super) fn look(config: &Config) -> Vec<Seen> {
    let library = Library::new(config.srs.param_cache.clone(), true, Verdicts::in_memory());
    let found: Vec<_> = porep_circuits().filter_map(|circuit| library.find(circuit).ok()).collect();
    let largest = found.iter().max_by_key(|found| found.bytes).map(|found| found.files.params.clone());
    let mut all = Vec::new();
    if config.store.kind == StoreKind::Disk
        && let Some(folder) = state::folder_of(&config.store)
    {
        all.push(folder_seen(What::Store, folder, config.scheduler.max_queued_bytes.bytes()));
    }
    if let Some(cache) = backend::cache_folder() {
        // Parameters are converted once, to some three halves of their size.
        let converted = found.iter().map(|found| found.bytes / 2 * 3).sum::<u64>();
        let have = folder_bytes(&cache.join("cuzk/srs"));
        all.push(folder_seen(What::Cache, cache.join("cuzk"), converted.saturating_sub(have)));
    }
    let folder = config.srs.param_cache.clone();
    let speed = largest.ok_or("no parameters are there to be read".to_owned());
    let speed = speed.and_then(|path| speed::of_file(&path).map_err(|e| format!("{}: {e}", path.display())));
    all.push(Seen { cleaned: is_cleaned(&folder), ..seen(What::Params, folder, 0, |_| speed) });
    all
}

fn folder_seen(what: What, folder: PathBuf, wants: u64) -> Seen {
    seen(what, folder, wants, |at| speed::of_folder(at).map_err(|e| e.to_string()))
}

fn seen(what: What, folder: PathBuf, wants: u64, speed: impl FnOnce(&Path) -> Result<Speed, String>) -> Seen {
    let at = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned();
    let kind = match statfs(&at).map(|stat| stat.filesystem_type()) {
        Ok(TMPFS_MAGIC) => Kind::Memory,
        Ok(NFS_SUPER_MAGIC) => Kind::Network,
        _ => Kind::Other,
    };
    let free = disk::free_bytes(&at).map_err(|e| e.to_string());
    Seen { what, speed: speed(&at), free, kind, wants, folder, at, cleaned: false }
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Whether systemd's cleaner goes through a folder, and nothing keeps it from that.
fn is_cleaned(folder: &Path) -> bool {
    let rules = ["/etc/tmpfiles.d", "/usr/lib/tmpfiles.d"].into_iter().flat_map(|rules| texts(Path::new(rules)));
    let rules: Vec<String> = rules.collect();
    !rules.is_empty() && cleaned_by(folder, &rules)
}

fn texts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
}

fn cleaned_by(folder: &Path, rules: &[String]) -> bool {
    let excluded = rules.iter().flat_map(|text| text.lines()).any(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("x")) && words.next().is_some_and(|path| folder.starts_with(path))
    });
    ["/tmp", "/var/tmp"].iter().any(|cleaned| folder.starts_with(cleaned)) && !excluded
}

/// Judges one folder.
pub(super) fn judge(seen: &Seen) -> Vec<Finding> {
    let about = match seen.what {
        What::Store => "job store",
        What::Cache => "cache",
        What::Params => "parameters",
    };
    let folder = seen.folder.display();
    let missing = if seen.at == seen.folder { "" } else { " (not there yet)" };
    let free = match &seen.free {
        Ok(free) => *free,
        Err(reason) => {
            return vec![Finding::fail(about, format!("{folder}: {reason}"), "make it, or name another folder")];
        }
    };
    let mut findings = Vec::new();
    let told = format!("{folder}{missing}: {} free", text::bytes(free));
    match &seen.speed {
        Ok(speed) => findings.push(judge_speed(about, &told, *speed)),
        // Whether parameters are there is told elsewhere.
        Err(_) if seen.what == What::Params => findings.push(Finding::ok(about, told)),
        Err(reason) => {
            let advice = format!("let the daemon's user write to {}, or name another folder", seen.at.display());
            let text = format!("{folder}{missing}: cannot be written: {reason}");
            // Without a cache all is made anew at each start.
            findings.push(match seen.what {
                What::Cache => Finding::warn(about, text, advice),
                _ => Finding::fail(about, text, advice),
            });
        }
    }
    if free < seen.wants {
        let text = format!("{folder}: {} are free, {} may be needed", text::bytes(free), text::bytes(seen.wants));
        let advice = match seen.what {
            What::Store => "make room, or lower scheduler.max_queued_bytes",
            _ => "make room, or set XDG_CACHE_HOME to where there is some",
        };
        findings.push(Finding::warn(about, text, advice));
    }
    match (seen.what, seen.kind) {
        (What::Store, Kind::Memory) => findings.push(Finding::warn(
            about,
            format!("{folder} is in memory (tmpfs): a reboot loses accepted jobs"),
            "name a folder on a disk with store.path",
        )),
        (What::Store, Kind::Network) => findings.push(Finding::warn(
            about,
            format!("{folder} is on a network file system: locks and syncs may not be what they seem"),
            "name a folder on a local disk with store.path",
        )),
        _ => {}
    }
    if seen.cleaned {
        let text = format!("{folder}: systemd removes files in it that nobody has used for 10 or 30 days");
        let advice =
            "put config/tmpfiles.d/cuzk.conf (the Debian package has it) into /etc/tmpfiles.d, with this folder";
        findings.push(Finding::warn(about, text, advice));
    }
    findings
}

fn judge_speed(about: &'static str, told: &str, speed: Speed) -> Finding {
    let rate =
        |verb: &str, rate: Option<f64>| rate.map(|rate| format!(", {verb} {:.0} MB/s", rate / 1e6)).unwrap_or_default();
    let told = format!("{told}{}{}", rate("writes", speed.write), rate("reads", speed.read));
    if speed.write.is_some_and(|rate| rate < SLOW_WRITE) {
        return Finding::warn(about, told, "slow: each job waits until its request is synced; a faster disk helps");
    }
    match speed.read {
        Some(rate) if rate < SLOW_READ => {
            let minutes = 48e9 / rate / 60.0;
            Finding::warn(about, told, format!("slow: reading 48 GB of parameters takes {minutes:.0} minutes"))
        }
        _ => Finding::ok(about, told),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{self, Fail, Ok as Good, Warn},
            levels,
        },
        *,
    };

    const FAST: Speed = Speed { write: Some(1e9), read: Some(3e9) };

    fn seen(what: What) -> Seen {
        Seen {
            what,
            folder: "/f".into(),
            at: "/f".into(),
            wants: 4 << 30,
            free: Ok(100 << 30),
            speed: Ok(FAST),
            kind: Kind::Other,
            cleaned: false,
        }
    }

    fn judged(seen: &Seen) -> Vec<Level> {
        levels(&judge(seen))
    }

    #[test]
    fn room_and_speed_are_told_and_want_of_them_warned_of() {
        assert_eq!(judged(&seen(What::Store)), [Good]);
        assert_eq!(judged(&Seen { free: Ok(1 << 30), ..seen(What::Store) }), [Good, Warn]);
        assert_eq!(judged(&Seen { speed: Ok(Speed { write: Some(2e7), ..FAST }), ..seen(What::Store) }), [Warn]);
        assert_eq!(judged(&Seen { speed: Ok(Speed { read: Some(1e8), ..FAST }), ..seen(What::Params) }), [Warn]);
        assert_eq!(judged(&Seen { speed: Ok(Speed { read: None, ..FAST }), ..seen(What::Cache) }), [Good]);
    }

    #[test]
    fn what_cannot_be_written_is_as_bad_as_its_purpose() {
        let denied = |what| judged(&Seen { speed: Err("permission denied".into()), ..seen(what) });
        assert_eq!(
            (denied(What::Store), denied(What::Cache), denied(What::Params)),
            (vec![Fail], vec![Warn], vec![Good])
        );
        assert_eq!(judged(&Seen { free: Err("gone".into()), ..seen(What::Store) }), [Fail]);
    }

    #[test]
    fn a_store_belongs_on_a_local_disk() {
        for kind in [Kind::Memory, Kind::Network] {
            assert_eq!(judged(&Seen { kind, ..seen(What::Store) }), [Good, Warn]);
            assert_eq!(judged(&Seen { kind, ..seen(What::Cache) }), [Good]);
        }
    }

    #[test]
    fn the_cleaner_is_known_by_its_rules() {
        let folder = Path::new("/var/tmp/filecoin-proof-parameters");
        let rules = |text: &str| [format!("q /var/tmp 1777 root root 30d\n{text}\n")];
        assert!(cleaned_by(folder, &rules("")));
        assert!(!cleaned_by(folder, &rules("x /var/tmp/filecoin-proof-parameters")));
        assert!(cleaned_by(folder, &rules("# x /var/tmp/filecoin-proof-parameters")));
        assert!(!cleaned_by(Path::new("/data/params"), &rules("")));
        assert_eq!(judged(&Seen { cleaned: true, ..seen(What::Params) }), [Good, Warn]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_looked_for_above() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let found = folder_seen(What::Store, dir.path().join("a/b"), 0);
        assert_eq!(found.at, dir.path());
        assert!(found.free.is_ok() && found.speed.is_ok(), "{found:?}");
        assert!(judge(&found)[0].seen.contains("not there yet"));
    }
}
