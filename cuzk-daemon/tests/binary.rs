//! The program as scripts and operators see it: arguments in, text and exit codes out.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use cuzk_synth::porep::{Claims, PorepTask};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self { dir }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    }
}

/// The program with an environment of its own, so that the tester's does not matter.
fn cuzk(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"));
    command.args(args).env_clear();
    command
}

fn run(mut command: Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
    (status.code().expect("no signal ended it"), text(stdout), text(stderr))
}

#[test]
fn a_legal_configuration_is_checked_and_told() {
    let place = Place::new();
    let file = place.file("cuzk.toml", "[memory]\ntotal_budget = \"1GiB\"\n");
    let (code, out, err) = run(cuzk(&["config", "check", "--config", file.to_str().expect("UTF-8")]));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("legal") && out.contains("1GiB of memory"), "{out}");
}

#[test]
fn a_wrong_key_ends_with_2_and_names_line_and_key() {
    let place = Place::new();
    let file = place.file("cuzk.toml", "[daemon]\nlisen = \"127.0.0.1:1\"\n");
    let path = file.to_str().expect("UTF-8");
    for args in [&["config", "check", "--config", path][..], &["serve", "--config", path], &["--config", path]] {
        let (code, out, err) = run(cuzk(args));
        assert_eq!((code, out.as_str()), (2, ""));
        assert_eq!(err, format!("error: {path}:2: unknown key \"daemon.lisen\"; did you mean \"daemon.listen\"?\n"));
    }
}

#[test]
fn a_named_file_that_is_missing_ends_with_2() {
    let (code, _, err) = run(cuzk(&["config", "check", "--config", "/nonexistent/cuzk.toml"]));
    assert_eq!(code, 2);
    assert!(err.contains("/nonexistent/cuzk.toml"), "{err}");
    // The variable names a file as explicitly as the flag.
    let mut by_variable = cuzk(&["config", "check"]);
    by_variable.env("CUZK_CONFIG", "/nonexistent/cuzk.toml");
    assert_eq!(run(by_variable).0, 2);
}

#[test]
fn flags_and_variables_are_seen_and_unknown_variables_warned_about() {
    let mut command = cuzk(&["config", "print", "--listen", "unix:///run/c.sock", "--set", "gpus.policy=never"]);
    command.env("CUZK_LOGGING_FORMAT", "json").env("CUZK_LOGING_LEVEL", "debug");
    let (code, out, err) = run(command);
    assert_eq!(code, 0);
    let line = |name: &str| out.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    assert!(line("listen").contains("unix:///run/c.sock") && line("listen").ends_with("# flag --listen"), "{out}");
    assert!(line("policy").contains("\"never\""), "{out}");
    assert!(line("format").ends_with("# environment CUZK_LOGGING_FORMAT"), "{out}");
    assert!(err.contains("CUZK_LOGING_LEVEL") && err.contains("did you mean CUZK_LOGGING_LEVEL?"), "{err}");
}

#[test]
fn what_cannot_work_is_refused_before_anything_starts() {
    for (set, expected) in
        [("daemon.listen=0.0.0.0:0", "allow_insecure"), ("memory.safety_margin=1000000TiB", "safety_margin")]
    {
        let (code, _, err) = run(cuzk(&["serve", "--set", set]));
        assert_eq!(code, 2, "{set}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn a_required_gpu_that_is_not_there_ends_the_start() {
    let mut command = cuzk(&["serve", "--set", "gpus.policy=required", "--set", "store.kind=memory"]);
    // Hides devices where there are some.
    command.env("CUDA_VISIBLE_DEVICES", "");
    let (code, _, err) = run(command);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("[gpus] policy or devices: no "), "{err}");
}

#[test]
fn a_damaged_job_store_ends_with_7_and_says_what_to_do() {
    let place = Place::new();
    place.file("jobs.redb", "this is no database");
    let at = place.dir.path().display();
    let (listen, path) = (format!("unix://{at}/s"), format!("store.path={at}"));
    let (code, _, err) = run(cuzk(&["serve", "--listen", &listen, "--set", &path]));
    assert_eq!(code, 7, "{err}");
    assert!(err.contains(&format!("job store {at} is damaged")) && err.contains("store.if_damaged"), "{err}");
    assert_eq!(std::fs::read(place.dir.path().join("jobs.redb")).expect("there"), b"this is no database");
}

#[test]
fn the_reference_printed_is_a_legal_file() {
    let (code, reference, _) = run(cuzk(&["config", "reference"]));
    assert_eq!(code, 0);
    let place = Place::new();
    let file = place.file("cuzk.toml", &reference);
    let (code, _, err) = run(cuzk(&["config", "print", "--config", file.to_str().expect("UTF-8")]));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn an_absent_daemon_ends_with_3() {
    let place = Place::new();
    let address = format!("unix://{}", place.dir.path().join("s").display());
    let c1 = place.file("c1.json", r#"{"registered_proof":"StackedDrg2KiBV1_1"}"#);
    let c1 = c1.to_str().expect("UTF-8");
    for args in [
        &["status", "--addr", &address][..],
        &["cancel", "--addr", &address, "j-1"],
        &["prove", "--addr", &address, "--c1", c1, "--miner", "1000", "--sector", "1", "--hex"],
    ] {
        let (code, out, err) = run(cuzk(args));
        assert_eq!((code, out.as_str()), (3, ""), "{args:?}");
        assert!(err.contains(&address) && err.contains("no such socket"), "{err}");
        assert_eq!(err.lines().count(), 2, "{err}");
    }
}

#[test]
fn a_file_that_is_no_c1_output_ends_with_4() {
    let place = Place::new();
    let file = place.file("c1.json", "{}");
    let c1 = file.to_str().expect("UTF-8");
    let (code, _, err) = run(cuzk(&["prove", "--c1", c1, "--miner", "1000", "--sector", "1", "--hex"]));
    assert_eq!(code, 4);
    assert!(err.contains("no C1 output"), "{err}");
}

#[test]
fn a_made_up_c1_output_is_good_input() {
    let place = Place::new();
    let path = place.dir.path().join("c1.json");
    let out = path.to_str().expect("UTF-8");
    let gen_c1 = |size: &str, variant: &str| {
        let line = format!("gen-c1 --sector-size {size} --variant {variant} --sector 7 --seed 1 --out {out}");
        run(cuzk(&line.split(' ').collect::<Vec<_>>()))
    };
    let (code, text, err) = gen_c1("8MiB", "v1_1");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(text.contains("StackedDrg8MiBV1_1") && text.contains("proves nothing"), "{text}");
    let claims = Claims { sector_size: 8 << 20, registered_proof: 6, sector_number: 7, miner_id: 1000 };
    let payload = std::fs::read(&path).expect("readable");
    PorepTask::check(&payload, &claims).expect("what gen-c1 makes is accepted");

    let (code, _, err) = gen_c1("512MiB", "synthetic");
    assert_eq!(code, 4);
    assert!(err.contains("comm_r"), "{err}");
}

#[test]
fn help_and_version_succeed_and_nonsense_ends_with_2() {
    let (code, out, _) = run(cuzk(&["--version"]));
    assert_eq!(code, 0);
    assert!(out.contains(env!("CARGO_PKG_VERSION")) && out.contains("cuzk.v1"), "{out}");
    let (code, out, _) = run(cuzk(&["--help"]));
    assert_eq!(code, 0);
    assert!(out.contains("Exit codes"), "{out}");
    assert_eq!(run(cuzk(&["nonsense"])).0, 2);
}

#[test]
fn params_fetch_wants_a_mirror_that_is_encrypted_and_a_folder_without_development_parameters() {
    let place = Place::new();
    let dir = place.dir.path().to_str().expect("UTF-8");
    let fetch = |more: &[&str]| {
        let mut command = cuzk(&["params", "fetch", "--circuit", "porep-2k", "--param-cache", dir]);
        command.args(more).env("XDG_CACHE_HOME", dir);
        run(command)
    };
    let (code, _, err) = fetch(&[]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no mirror is named") && err.contains("/ipfs/{cid}"), "{err}");
    let (code, _, err) = fetch(&["--mirror", "http://127.0.0.1:9/"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("not encrypted") && err.contains("--allow-http"), "{err}");
    let (code, _, err) = fetch(&["--mirror", "https://h/", "--set", "srs.mirrors=ftp://h"]);
    assert_eq!(code, 2, "{err}");

    let files = cuzk_gpu::params::Files::of("porep-2k".parse().expect("legal"), place.dir.path()).expect("built");
    std::fs::write(&files.sidecar, "{}").expect("writable");
    let (code, _, err) = fetch(&["--mirror", "https://127.0.0.1:9/"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("development parameters") && err.contains("--param-cache"), "{err}");
}

#[test]
fn params_fetch_says_what_a_mirror_gave_in_place_of_the_file() {
    let place = Place::new();
    let dir = place.dir.path().to_str().expect("UTF-8");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/ipfs/{{cid}}", listener.local_addr().expect("bound"));
    let mirror = std::thread::spawn(move || {
        use std::io::{BufRead, BufReader, Write};
        let (mut stream, _) = listener.accept().expect("asked");
        let asked = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).next();
        let page = "<".repeat(179);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 179\r\n\r\n";
        stream.write_all(format!("{head}{page}").as_bytes()).expect("read");
        asked.expect("a request")
    });
    let args = ["params", "fetch", "--circuit", "porep-2k", "--param-cache", dir, "--allow-http", "--mirror", &url];
    let mut command = cuzk(&args);
    command.env("XDG_CACHE_HOME", dir);
    let (code, _, err) = run(command);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("answered an HTML page of 179 bytes instead of the file"), "{err}");
    assert_eq!(
        mirror.join().expect("it answered"),
        "GET /ipfs/QmamahpFCstMUqHi2qGtVoDnRrsXhid86qsfvoyCTKJqHr HTTP/1.1"
    );
    let left: Vec<_> = std::fs::read_dir(dir).expect("readable").map(|e| e.expect("readable").file_name()).collect();
    assert_eq!(left, [".cuzk-fetch.lock"]);
}
