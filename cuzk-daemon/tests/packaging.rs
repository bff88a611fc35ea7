//! What is shipped beside the program agrees with it: unit, socket, users, cleaner, package, container.

use std::{collections::HashMap, fs, path::PathBuf, time::Duration};

use clap::Parser;
use cuzk_daemon::{
    cli::{Cli, Command},
    config::{self, Config, Setting, Sources, Span, StorePath, merge},
    exit::Exit,
    run::CLOSE_FOR,
};

fn shipped(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../config").join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A unit's assignments; a key that stands several times has several values.
struct Unit(HashMap<(String, String), Vec<String>>);

impl Unit {
    fn read(name: &str) -> Self {
        let (mut section, mut keys) = (String::new(), HashMap::<_, Vec<_>>::new());
        for line in shipped(name).lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.to_owned();
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line:?} assigns nothing"));
            keys.entry((section.clone(), key.to_owned())).or_default().push(value.to_owned());
        }
        Self(keys)
    }

    fn all(&self, section: &str, key: &str) -> &[String] {
        self.0.get(&(section.to_owned(), key.to_owned())).map_or(&[], Vec::as_slice)
    }

    fn one(&self, section: &str, key: &str) -> &str {
        match self.all(section, key) {
            [value] => value,
            other => panic!("[{section}] {key} has {} values", other.len()),
        }
    }

    fn service(&self, key: &str) -> &str {
        self.one("Service", key)
    }
}

/// "6min" and "10s", as systemd writes them, in the words of our configuration.
fn span(text: &str) -> Duration {
    let ours = text.strip_suffix("min").map_or(text.to_owned(), |minutes| format!("{minutes}m"));
    Span::from_text(&ours).unwrap_or_else(|e| panic!("{text}: {e}")).duration()
}

/// The command line, as the program reads it.
fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).into_command()
}

fn package() -> toml::Table {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(path).expect("readable").parse().expect("legal");
    manifest["package"]["metadata"]["deb"].as_table().expect("a table").clone()
}

/// Source and target of each file of the package, file names added to folders.
fn assets(package: &toml::Table) -> Vec<(String, String)> {
    let assets = package["assets"].as_array().expect("a list");
    let text = |value: &toml::Value| value.as_str().expect("text").to_owned();
    let pairs = assets.iter().map(|asset| (text(&asset[0]), text(&asset[1])));
    pairs
        .map(|(source, target)| {
            let name = source.rsplit('/').next().unwrap_or_default();
            let target = if target.ends_with('/') { format!("/{target}{name}") } else { format!("/{target}") };
            (source, target)
        })
        .collect()
}

#[test]
fn the_unit_gives_a_drain_its_time() {
    let unit = Unit::read("cuzk.service");
    let drain = Config::default().daemon.drain_timeout.duration();
    assert!(span(unit.service("TimeoutStopSec")) > drain + CLOSE_FOR);
    assert!(span(unit.service("TimeoutStartSec")) >= Duration::from_secs(30 * 60));
}

#[test]
fn the_unit_starts_what_the_package_installs() {
    let (unit, package) = (Unit::read("cuzk.service"), package());
    let line: Vec<_> = unit.service("ExecStart").split(' ').collect();
    let Command::Serve(args) = parse(line.iter().copied()) else { panic!("{line:?} does not serve") };
    let config = args.config.expect("named").display().to_string();
    let targets: Vec<_> = assets(&package).into_iter().map(|(_, target)| target).collect();
    assert!(targets.iter().any(|target| target == line[0]), "{} is not in {targets:?}", line[0]);
    assert!(targets.contains(&config), "{config} is not in {targets:?}");
    assert_eq!(package["conf-files"].as_array().expect("a list")[..], [config.into()]);
}

#[test]
fn every_file_of_the_package_is_here() {
    let package = package();
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let assets = assets(&package);
    assert!(assets.len() >= 6);
    for (source, _) in assets.iter().filter(|(source, _)| !source.starts_with("target/")) {
        assert!(here.join(source).is_file(), "{source}");
    }
    let scripts = here.join(package["maintainer-scripts"].as_str().expect("text"));
    assert!(scripts.join("postrm").is_file());
    let units = &package["systemd-units"];
    assert_eq!((units["enable"].as_bool(), units["start"].as_bool()), (Some(false), Some(false)));
    let folder = here.join(units["unit-scripts"].as_str().expect("text"));
    assert!(folder.join(format!("{}.service", units["unit-name"].as_str().expect("text"))).is_file());
}

#[test]
fn the_unit_talks_to_the_daemon_as_the_daemon_listens() {
    let unit = Unit::read("cuzk.service");
    // READY, STOPPING and STATUS are sent by the main process; SIGHUP reads files again.
    assert_eq!((unit.service("Type"), unit.service("NotifyAccess")), ("notify", "main"));
    assert_eq!(unit.service("ExecReload"), "/bin/sh -c 'kill -HUP $MAINPID'");
    assert_eq!(unit.service("Restart"), "on-failure");
    let given_up: Vec<_> = unit.service("RestartPreventExitStatus").split(' ').collect();
    assert_eq!(given_up, [Exit::Usage, Exit::Store].map(|exit| (exit as u8).to_string()));
    assert!(span(unit.one("Unit", "StartLimitIntervalSec")) > span(unit.service("RestartSec")) * 5);
}

#[test]
fn the_unit_makes_the_folders_that_the_daemon_uses() {
    let unit = Unit::read("cuzk.service");
    // The store takes STATE_DIRECTORY, caches take "cuzk" in XDG_CACHE_HOME.
    assert_eq!(Config::default().store.path, StorePath::Auto);
    assert_eq!((unit.service("StateDirectory"), unit.service("StateDirectoryMode")), ("cuzk", "0700"));
    assert_eq!((unit.service("CacheDirectory"), unit.service("Environment")), ("cuzk", "XDG_CACHE_HOME=/var/cache"));
    assert_eq!(unit.service("RuntimeDirectory"), "cuzk");
}

#[test]
fn the_units_hardening_leaves_parameters_and_gpus_in_sight() {
    let unit = Unit::read("cuzk.service");
    assert!(Config::default().srs.param_cache.starts_with("/var/tmp"), "or PrivateTmp does not matter");
    for (key, value) in [
        ("PrivateTmp", "no"),
        ("PrivateDevices", "no"),
        ("ProtectHome", "read-only"),
        ("LimitMEMLOCK", "infinity"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("CapabilityBoundingSet", ""),
    ] {
        assert_eq!(unit.service(key), value, "{key}");
    }
    assert!(unit.all("Service", "MemoryDenyWriteExecute").is_empty());
    // ProtectClock allows the clock device by name, which forbids all devices that are not named.
    assert_eq!(unit.service("ProtectClock"), "yes");
    let devices = unit.all("Service", "DeviceAllow");
    for device in ["char-nvidia* rw", "/dev/nvidiactl rw", "/dev/nvidia-uvm rw"] {
        assert!(devices.iter().any(|allowed| allowed == device), "{device}");
    }
    let families: Vec<_> = unit.service("RestrictAddressFamilies").split(' ').collect();
    assert!(["AF_INET", "AF_INET6", "AF_UNIX"].iter().all(|family| families.contains(family)), "{families:?}");
}

#[test]
fn unit_socket_and_users_agree() {
    let (unit, socket) = (Unit::read("cuzk.service"), Unit::read("cuzk.socket"));
    let users = shipped("sysusers.d/cuzk.conf");
    let user = users.lines().find(|line| line.starts_with("u ")).expect("a user").split(' ').nth(1).expect("its name");
    let named = [unit.service("User"), unit.service("Group")];
    assert_eq!(named, [user; 2]);
    assert_eq!(["SocketUser", "SocketGroup"].map(|key| socket.one("Socket", key)), [user; 2]);
    let mode = Config::default().daemon.socket_mode.to_toml();
    assert_eq!(Some(socket.one("Socket", "SocketMode")), mode.as_str());
}

#[test]
fn the_cleaner_leaves_the_parameters_alone() {
    let excluded = format!("x {}", Config::default().srs.param_cache.display());
    assert!(shipped("tmpfiles.d/cuzk.conf").lines().any(|line| line == excluded), "{excluded}");
}

/// The instructions of the container file, each on one line.
fn instructions() -> Vec<String> {
    let text = shipped("Containerfile");
    let live: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = live.join("\n").replace("\\\n", " ");
    joined.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|l| !l.is_empty()).collect()
}

/// What follows an instruction's name in the last stage.
fn last_stage(name: &str) -> Vec<String> {
    let all = instructions();
    let begin = all.iter().rposition(|line| line.starts_with("FROM ")).expect("a stage");
    all[begin..].iter().filter_map(|line| line.strip_prefix(&format!("{name} "))).map(str::to_owned).collect()
}

#[test]
fn the_container_configures_what_there_is_to_configure() {
    let env = last_stage("ENV").join(" ");
    let variables: Vec<_> = env.split(' ').filter_map(|pair| pair.split_once('=')).collect();
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = merge(&Sources { variables: owned, ..Sources::default() }).and_then(config::check).expect("legal");
    assert_eq!(settings.warnings, [], "a variable that nobody knows");
    assert!(settings.config.daemon.listen.0[0].is_exposed() && settings.config.daemon.allow_insecure);
    assert_eq!(settings.config.store.path, StorePath::Fixed("/state".into()));
    assert!(last_stage("VOLUME")[0].contains("\"/state\""));
    assert!(variables.contains(&("XDG_CACHE_HOME", "/cache")) && last_stage("VOLUME")[0].contains("\"/cache\""));
}

#[test]
fn the_container_runs_the_program_without_privileges() {
    let words = |text: &str| serde_json::from_str::<Vec<String>>(text).expect("a list of words");
    assert_eq!(last_stage("USER"), ["cuzk"]);
    assert_eq!(last_stage("STOPSIGNAL"), ["SIGTERM"]);
    let program = words(&last_stage("ENTRYPOINT")[0]);
    assert!(last_stage("COPY").iter().any(|copy| copy.ends_with(&format!(" {}", program[0]))));
    let line = [program.clone(), words(&last_stage("CMD")[0])].concat();
    assert!(matches!(parse(line.iter().map(String::as_str)), Command::Serve(_)));
    let health = &last_stage("HEALTHCHECK")[0];
    let health = words(health.split_once("CMD ").expect("a command").1);
    assert_eq!(health[0], program[0]);
    assert!(matches!(parse(health.iter().map(String::as_str)), Command::Status(_)));
}
