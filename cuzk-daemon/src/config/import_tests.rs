use super::*;
use crate::config::layers::Settings;

fn imported(text: &str) -> Import {
    import(Path::new("old.toml"), text).expect("TOML")
}

/// What this daemon makes of the new file.
fn settings(import: &Import) -> Settings {
    let file = Some(("new.toml".into(), import.render(Path::new("old.toml"))));
    merge(&Sources { file, ..Sources::default() }).and_then(check).expect("legal")
}

fn verdict<'a>(import: &'a Import, key: &str) -> &'a Verdict {
    let found = import.keys.iter().find(|imported| imported.key == key);
    &found.unwrap_or_else(|| panic!("{key} is not in {import:?}")).verdict
}

/// Each of their keys: a value, and the value of which key of ours it becomes.
type Expected = (&'static str, &'static str, Option<(&'static str, &'static str)>);
const VALUES: &[Expected] = &[
    ("daemon.listen", r#""unix:///run/c.sock""#, Some(("daemon.listen", r#"["unix:///run/c.sock"]"#))),
    ("daemon.status_listen", r#""127.0.0.1:9821""#, Some(("http.listen", r#""127.0.0.1:9821""#))),
    ("srs.param_cache", r#""/p""#, Some(("srs.param_cache", r#""/p""#))),
    ("srs.preload", r#"["porep-32g", "snap-32g"]"#, Some(("srs.preload", r#"["porep-32g"]"#))),
    ("memory.total_budget", r#""274877906944""#, Some(("memory.total_budget", r#""256GiB""#))),
    ("memory.safety_margin", r#""8GiB""#, Some(("memory.safety_margin", r#""8GiB""#))),
    ("memory.pinned_budget", r#""50GiB""#, None),
    ("memory.working_memory_budget", r#""80GiB""#, None),
    ("memory.eviction_min_idle", r#""5m""#, None),
    ("gpus.devices", "[0, 1]", Some(("gpus.devices", "[0, 1]"))),
    ("gpus.gpu_threads", "32", Some(("gpus.gpu_threads", "32"))),
    ("gpus.gpu_workers_per_device", "3", Some(("gpus.gpu_workers_per_device", "3"))),
    ("scheduler.max_batch_size", "2", None),
    ("scheduler.max_batch_wait_ms", "10000", None),
    ("scheduler.sort_by_type", "true", None),
    ("synthesis.threads", "8", Some(("synthesis.threads", "8"))),
    ("synthesis.partition_workers", "12", None),
    ("pipeline.enabled", "true", None),
    ("pipeline.synthesis_lookahead", "1", None),
    ("pipeline.synthesis_concurrency", "2", None),
    ("pipeline.slot_size", "3", None),
    ("pipeline.max_gpu_queue_depth", "8", Some(("pipeline.lookahead", "8"))),
    ("logging.level", r#""debug""#, Some(("logging.level", r#""debug""#))),
    ("logging.format", r#""pretty""#, Some(("logging.format", r#""text""#))),
];

#[test]
fn every_key_of_theirs_has_a_value_here() {
    let theirs: Vec<_> = foreign::ALL.iter().map(|key| format!("{}.{}", key.table, key.name)).collect();
    assert_eq!(theirs, VALUES.iter().map(|(key, ..)| *key).collect::<Vec<_>>());
}

#[test]
fn each_key_alone_becomes_what_it_should() {
    for (theirs, value, ours) in VALUES {
        let (table, name) = theirs.split_once('.').expect("a table and a name");
        let import = imported(&format!("# a comment\n[{table}]\n{name} = {value}\n"));
        let Some((key, value)) = ours else {
            assert!(matches!(verdict(&import, theirs), Verdict::NotNeeded(why) if !why.is_empty()), "{theirs}");
            continue;
        };
        let row = KEYS.iter().find(|known| known.path() == *key).expect("a key of ours");
        assert_eq!((row.get)(&settings(&import).config).to_string(), *value, "{theirs}");
        assert!(matches!(verdict(&import, theirs), Verdict::Taken { row: r, .. } if *r == row.index()), "{theirs}");
        let line = import.keys.iter().find(|imported| imported.key == *theirs).and_then(|imported| imported.line);
        assert_eq!(line, Some(3), "{theirs}");
    }
}

#[test]
fn all_keys_together_are_legal_and_leave_no_warning() {
    let mut text = String::new();
    for table in tables() {
        let of_table = VALUES.iter().filter(|(key, ..)| key.split('.').next() == Some(table));
        let lines: Vec<_> = of_table.map(|(key, value, _)| format!("{} = {value}", &key[table.len() + 1..])).collect();
        text += &format!("[{table}]\n{}\n", lines.join("\n"));
    }
    let import = imported(&text);
    assert_eq!(import.counts(), [13, 11, 0, 0]);
    assert_eq!(settings(&import).warnings, []);
}

#[test]
fn what_is_not_set_keeps_the_value_that_theirs_takes() {
    let import = imported("");
    let config = settings(&import).config;
    assert_eq!(config.daemon.listen.0[0].to_string(), "unix:///run/curio/cuzk.sock");
    assert_eq!(config.srs.param_cache, Path::new("/data/zk/params"));
    assert_eq!(import.counts(), [2, 0, 0, 0]);
    assert!(import.keys.iter().all(|imported| imported.to_string().starts_with("not set: ")));
}

#[test]
fn an_address_for_everybody_becomes_one_of_this_machine_and_says_so() {
    for (theirs, ours) in [("0.0.0.0:9820", "127.0.0.1:9820"), ("[::]:77", "[::1]:77"), ("10.0.0.1:1", "127.0.0.1:1")] {
        let import = imported(&format!("[daemon]\nlisten = \"{theirs}\"\n"));
        assert_eq!(settings(&import).config.daemon.listen.0[0].to_string(), ours);
        let text = import.render(Path::new("old.toml"));
        assert!(
            text.contains(&format!("# daemon.listen: {ours} in its place: other machines can reach {theirs}")),
            "{text}"
        );
    }
}

#[test]
fn what_nobody_knows_is_named_with_its_line_and_what_may_have_been_meant() {
    let import = imported("listen = 1\n\n[daemon]\nlisen = \"x\"\n[gpu]\ndevices = []\n[zzz]\nqqq = 1\n");
    let shown: Vec<_> = import.keys.iter().filter(|k| k.line.is_some()).map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "line 1: listen: UNKNOWN; did you mean daemon.listen?",
            "line 4: daemon.lisen: UNKNOWN; did you mean daemon.listen?",
            "line 6: gpu.devices: UNKNOWN; did you mean gpus.devices?",
            "line 8: zzz.qqq: UNKNOWN",
        ]
    );
    let text = import.render(Path::new("old.toml"));
    assert!(shown.iter().all(|line| text.contains(&format!("# {line}\n"))), "{text}");
}

#[test]
fn values_that_cannot_be_used_are_refused_and_the_file_stays_legal() {
    let text = "[gpus]\ngpu_workers_per_device = 0\n[srs]\nparam_cache = \"params\"\npreload = 3\n\
                [memory]\ntotal_budget = \"0\"\nsafety_margin = \"5 gigs\"\n[daemon]\nlisten = \"x\"\n";
    let import = imported(text);
    assert_eq!(import.counts(), [0, 0, 6, 0], "{import:?}");
    assert_eq!(settings(&import).config, Config::default());
    let Verdict::Refused(why) = verdict(&import, "memory.total_budget") else { panic!("0 is no budget") };
    assert!(why.contains("no proof would ever start"), "{why}");
}

#[test]
fn a_key_of_ours_is_kept_and_wins_over_one_that_becomes_it() {
    let import = imported("[pipeline]\nmax_gpu_queue_depth = 8\nlookahead = 3\n[gpus]\npolicy = \"required\"\n");
    let config = settings(&import).config;
    assert_eq!(config.pipeline.lookahead, 3);
    assert_eq!(config.gpus.policy, crate::config::GpuPolicy::Required);
}

#[test]
fn what_is_no_toml_is_a_problem_with_its_line() {
    let problems = import(Path::new("old.toml"), "[daemon]\nlisten = \n").expect_err("no value");
    assert!(problems.to_string().starts_with("old.toml:2: "), "{problems}");
}

#[test]
fn comments_end_with_their_line() {
    let import = imported("[daemon]\n\"a\\nlisten\" = 1\n");
    assert!(
        import.render(Path::new("o\nld")).lines().all(|l| l.starts_with(['#', '[']) || l.is_empty() || l.contains('='))
    );
    settings(&import);
}
