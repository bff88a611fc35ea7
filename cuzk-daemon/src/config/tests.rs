//! The configuration as a whole: texts in, settings or problems out.

mod reference;

use cuzk_gpu::cuda::plan::BG2;
use cuzk_synth::r1cs::Check;

use super::*;

fn sources(file: &str) -> Sources {
    Sources { file: Some(("cuzk.toml".into(), file.into())), ..Sources::default() }
}

fn read(file: &str) -> Result<Settings, Problems> {
    merge(&sources(file)).and_then(check)
}

fn config(file: &str) -> Config {
    read(file).map(|s| s.config).unwrap_or_else(|p| panic!("{file}: {p}"))
}

/// The only problem of a file, as the operator sees it.
fn problem(file: &str) -> String {
    let Problems(problems) = read(file).err().unwrap_or_else(|| panic!("accepted: {file}"));
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

fn variable(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

fn flag(text: &str) -> Override {
    Override::from_set(text).expect("has an equals sign")
}

#[test]
fn all_keys_can_be_set() {
    let config = config(
        r#"
        [daemon]
        listen = ["127.0.0.1:1", "unix:///run/cuzk.sock"]
        socket_mode = "0600"
        drain_timeout = "90s"
        [srs]
        param_cache = "/p"
        allow_dev_params = true
        preload = ["porep-2k", "porep-32g"]
        [memory]
        total_budget = "256GiB"
        safety_margin = "10GiB"
        [gpus]
        gpu_workers_per_device = 3
        vram_limit = "16GiB"
        vram_reserve = "1GiB"
        b_g2_msm = "auto"
        policy = "never"
        [scheduler]
        max_queued_bytes = "1GiB"
        [store]
        path = "/s"
        if_damaged = "move_aside"
        [synthesis]
        check = "full"
        [logging]
        level = "debug"
        format = "json"
        "#,
    );
    assert_eq!(config.daemon.listen.0.len(), 2);
    assert_eq!(config.daemon.socket_mode, SocketMode(0o600));
    assert_eq!(config.daemon.drain_timeout, Span::from_secs(90));
    assert!(config.srs.allow_dev_params);
    assert_eq!(config.srs.preload.0.len(), 2);
    assert_eq!(config.memory.total_budget, MemoryBudget::Fixed(ByteSize::from_gib(256)));
    assert_eq!(config.gpus.gpu_workers_per_device.get(), 3);
    assert_eq!(config.gpus.policy, GpuPolicy::Never);
    assert_eq!(config.gpus.vram_limit, MemoryBudget::Fixed(ByteSize::from_gib(16)));
    assert_eq!(config.gpus.vram_reserve, ByteSize::from_gib(1));
    assert_eq!(config.gpus.b_g2_msm, BG2::Auto);
    assert_eq!(config.scheduler.max_queued_bytes, ByteSize::from_gib(1));
    assert_eq!(config.store.kind, StoreKind::Disk);
    assert_eq!(config.store.path, StorePath::Fixed("/s".into()));
    assert_eq!(config.store.if_damaged, DamagedStore::MoveAside);
    assert_eq!(config.synthesis.check, Check::Full);
    assert_eq!(config.logging.format, LogFormat::Json);
}

#[test]
fn a_single_listen_address_needs_no_list() {
    let one = config("[daemon]\nlisten = \"unix:///run/c.sock\"\n");
    assert_eq!(one, config("[daemon]\nlisten = [\"unix:///run/c.sock\"]\n"));
}

#[test]
fn a_misspelt_key_is_refused_with_its_line_and_the_key_meant() {
    assert_eq!(
        problem("[daemon]\n\nlisen = \"127.0.0.1:1\"\n"),
        "cuzk.toml:3: unknown key \"daemon.lisen\"; did you mean \"daemon.listen\"?"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_refused_with_the_right_one() {
    assert!(problem("[daemon]\nparam_cache = \"/p\"").ends_with("did you mean \"srs.param_cache\"?"));
    assert!(problem("listen = \"127.0.0.1:1\"").ends_with("did you mean \"daemon.listen\"?"));
}

#[test]
fn a_key_like_no_other_gets_no_suggestion() {
    let text = problem("[daemon]\nqqqq = 1");
    assert!(text.contains("unknown key \"daemon.qqqq\"; `cuzk-daemon config print`"), "{text}");
}

#[test]
fn a_misspelt_table_is_refused() {
    assert_eq!(
        problem("[daemon]\n[deamon]\nlisten = \"127.0.0.1:1\"\n"),
        "cuzk.toml:2: unknown table [deamon]; did you mean \"daemon\"?"
    );
    assert!(problem("daemon = 1\n").starts_with("cuzk.toml:1: daemon: expected a table"));
}

#[test]
fn wrong_types_and_units_are_refused_with_what_was_expected() {
    for (line, expected) in [
        ("[scheduler]\nretain_finished = \"7\"", "expected an integer from 0 to 4294967295, found the text \"7\""),
        ("[srs]\nallow_dev_params = 1", "expected true or false, found the integer 1"),
        ("[limits]\nmax_message = 268435456", "expected a size with its unit, such as \"16GiB\", found the integer"),
        ("[limits]\nmax_message = \"256\"", "has no unit"),
        ("[limits]\nmax_message = \"5m\"", "unknown unit \"m\""),
        ("[daemon]\ndrain_timeout = \"5GiB\"", "unknown unit \"GiB\""),
        ("[daemon]\nlisten = \"0.0.0.0\"", "is not IP:port"),
        ("[http]\nlisten = \"9821\"", "is not IP:port"),
        ("[http]\nlisten = 9821", "or \"\" for none"),
        ("[daemon]\nsocket_mode = 660", "expected octal permission bits"),
        ("[srs]\npreload = [\"porep-1k\"]", "unknown circuit id \"porep-1k\""),
        ("[store]\nkind = \"redis\"", "expected \"disk\" or \"memory\""),
        ("[store]\npath = \"jobs\"", "expected \"auto\" or an absolute path, found the text \"jobs\""),
        ("[gpus]\npolicy = \"yes\"", "expected \"required\", \"prefer\" or \"never\""),
        ("[gpus]\ngpu_workers_per_device = 0", "expected an integer from 1"),
        ("[logging]\nlevel = \"inof\"", "found the text \"inof\""),
        ("[memory]\ntotal_budget = \"half\"", "does not begin with a number"),
        ("[scheduler]\nsort_by_type = \"yes\"", "expected true or false"),
    ] {
        let text = problem(line);
        assert!(text.starts_with("cuzk.toml:2: "), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn what_stands_twice_is_refused_at_its_second_line() {
    let twice = problem("[srs]\nallow_dev_params = true\nallow_dev_params = true\n");
    assert!(twice.starts_with("cuzk.toml:3: duplicate key"), "{twice}");
    let section = problem("[srs]\n[gpus]\n[srs]\n");
    assert!(section.starts_with("cuzk.toml:3: duplicate"), "{section}");
}

#[test]
fn broken_toml_is_refused_with_its_line() {
    assert!(problem("[srs]\npreload = [\"porep-2k\"\n[gpus]\n").starts_with("cuzk.toml:"));
    let text = problem("[daemon]\nlisten = 127.0.0.1:9820\n");
    assert!(text.starts_with("cuzk.toml:2: "), "{text}");
}

#[test]
fn all_faults_are_reported_at_once() {
    let Problems(problems) = read("[daemon]\nlisen = 1\n[srs]\npreload = 1\n").unwrap_err();
    assert_eq!(problems.len(), 2);
}

#[test]
fn keys_of_other_daemons_are_named_in_warnings() {
    let file = "[synthesis]\npartition_workers = 4\n[pipeline]\nenabled = true\n[scheduler]\nmax_batch_size = 3\n";
    let settings = read(file).expect("they are no reason to refuse");
    let mut warned: Vec<_> = settings.warnings.iter().map(|w| (w.name.as_str(), w.at.to_string())).collect();
    warned.sort();
    let at = |line| format!("cuzk.toml:{line}");
    assert_eq!(
        warned,
        [("pipeline.enabled", at(4)), ("scheduler.max_batch_size", at(6)), ("synthesis.partition_workers", at(2))]
    );
    assert!(settings.warnings.iter().all(|w| w.text.contains("memory") || w.text.contains("no effect")));
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let key = KEYS.iter().find(|k| k.path() == "scheduler.retain_finished").expect("a key");
    let mut sources = Sources::default();
    let read = |sources: &Sources| {
        let settings = merge(sources).expect("legal");
        (settings.config.scheduler.retain_finished, settings.origin(key).to_string())
    };
    assert_eq!(read(&sources), (4096, "default".into()));
    sources.file = Some(("f.toml".into(), "[scheduler]\nretain_finished = 1\n".into()));
    assert_eq!(read(&sources), (1, "f.toml:2".into()));
    sources.variables.push(variable("CUZK_SCHEDULER_RETAIN_FINISHED", "2"));
    assert_eq!(read(&sources), (2, "environment CUZK_SCHEDULER_RETAIN_FINISHED".into()));
    sources.flags.push(flag("scheduler.retain_finished=3"));
    assert_eq!(read(&sources), (3, "flag --set scheduler.retain_finished=3".into()));
    sources.flags.push(flag("scheduler.retain_finished=4"));
    assert_eq!(read(&sources).0, 4);
}

#[test]
fn the_parameter_variable_stands_below_the_file() {
    let mut sources = Sources::default();
    sources.variables.push(variable(PARAM_CACHE_VARIABLE, "/from/variable"));
    let cache = |sources: &Sources| merge(sources).map(|s| s.config.srs.param_cache).expect("legal");
    assert_eq!(cache(&sources), Path::new("/from/variable"));
    sources.file = Some(("f".into(), "[srs]\nparam_cache = \"/from/file\"\n".into()));
    assert_eq!(cache(&sources), Path::new("/from/file"));
    sources.variables.push(variable("CUZK_SRS_PARAM_CACHE", "/from/own/variable"));
    assert_eq!(cache(&sources), Path::new("/from/own/variable"));
}

#[test]
fn unknown_variables_with_our_prefix_are_warned_about() {
    let variables = vec![
        variable("CUZK_DAEMON_LISTN", "127.0.0.1:1"),
        variable("CUZK_CPU_BACKEND", "portable"),
        variable("PATH", "/bin"),
    ];
    let sources = Sources { variables, ..Sources::default() };
    let settings = merge(&sources).expect("only a warning");
    assert_eq!(settings.warnings.len(), 1);
    let text = settings.warnings[0].to_string();
    assert!(text.contains("CUZK_DAEMON_LISTN") && text.contains("did you mean CUZK_DAEMON_LISTEN?"), "{text}");
    assert_eq!(settings.config, Config::default());
}

#[test]
fn bad_values_name_their_variable_or_flag() {
    let mut sources = Sources::default();
    sources.variables.push(variable("CUZK_DAEMON_DRAIN_TIMEOUT", "5"));
    sources.flags.push(flag("daemon.lisen=x"));
    sources.flags.push(flag("gpus.policy=maybe"));
    let text = merge(&sources).unwrap_err().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("environment CUZK_DAEMON_DRAIN_TIMEOUT: daemon.drain_timeout:"));
    assert!(lines[1].starts_with("flag --set daemon.lisen=x: unknown key"));
    assert!(lines[2].starts_with("flag --set gpus.policy=maybe: gpus.policy: expected"));
    assert!(matches!(Override::from_set("gpus.policy"), Err(Problem::BadSet { .. })));
}

#[test]
fn combinations_that_cannot_work_are_refused() {
    for (file, expected) in [
        ("[gpus]\nvram_limit = \"512MiB\"", "gpus.vram_reserve = 512MiB leaves nothing"),
        ("[daemon]\nlisten = \"0.0.0.0:9820\"", "set daemon.allow_insecure = true"),
        ("[daemon]\nlisten = []", "names no address"),
        ("[http]\nlisten = \"0.0.0.0:9821\"", "set daemon.allow_insecure = true"),
        ("[http]\nlisten = \"127.0.0.1:9820\"", "which daemon.listen has too"),
        ("[daemon]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:1\"]", "twice"),
        ("[memory]\ntotal_budget = \"0B\"", "no proof would ever start"),
        ("[scheduler]\nmax_queued_bytes = \"1MiB\"", "less than one message"),
        ("[limits]\nmax_message = \"4GiB\"", "must lie between"),
    ] {
        let text = problem(file);
        assert!(text.starts_with("cuzk.toml:2: "), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    let open = config("[daemon]\nlisten = \"0.0.0.0:9820\"\nallow_insecure = true\n");
    assert!(open.daemon.listen.0[0].is_exposed());
}

#[test]
fn what_is_printed_reads_back_with_its_origins_told() {
    let file = "[daemon]\nlisten = [\"127.0.0.1:7\", \"unix:///run/c.sock\"]\n[srs]\npreload = \"porep-2k\"\n[gpus]\ndevices = [0, \"GPU-1\"]\npolicy = \"never\"\n[logging]\nlevel = \"warn,h2=debug\"\n";
    let mut with_flag = sources(file);
    with_flag.flags.push(flag("memory.total_budget=64GiB"));
    let settings = merge(&with_flag).expect("legal");
    let printed = render(&settings);
    assert_eq!(config(&printed), settings.config);
    let line = |name: &str| printed.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    assert!(line("preload").ends_with("# cuzk.toml:4"), "{printed}");
    assert!(line("total_budget").ends_with("# flag --set memory.total_budget=64GiB"));
    assert!(line("format").ends_with("# default"));
}

#[test]
fn an_origin_cannot_break_out_of_its_comment() {
    let mut sources = Sources::default();
    sources.flags.push(flag("logging.level=info\n"));
    sources.flags[0].flag = "a\n[evil]".into();
    let printed = render(&merge(&sources).expect("trimmed"));
    assert!(config(&printed) == Config::default(), "{printed}");
}

#[test]
fn a_named_file_must_be_there() {
    let problems = load(Some(Path::new("/nonexistent/cuzk.toml")), Vec::new()).unwrap_err();
    assert!(matches!(problems.0[..], [Problem::Unreadable { .. }]));
    assert!(problems.to_string().contains("/nonexistent/cuzk.toml"));
}

#[test]
fn the_summary_names_what_differs() {
    assert_eq!(summary(&read("").expect("legal")), "all defaults");
    let text = summary(&read("[srs]\nallow_dev_params = true").expect("legal"));
    assert_eq!(text, "srs.allow_dev_params=true (cuzk.toml:2)");
}
