//! The operator's tools, as the program runs them: `bench` against a daemon that only pretends, `doctor` in a home of its
//! own, `config import`, completions and manual pages.

mod pretended;

use std::{
    path::Path,
    process::{Command, Output},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::CommandFactory;
use cuzk_daemon::{
    cli::Cli,
    config::Config,
    listen::Target,
    resources::Plan,
    run::{self, InProcess},
};
use cuzk_server::{
    Attempt, DeviceInfo, PartitionProof, PartitionTimes, PhaseTimings, ProofRequest, Proved, Proving, ProvingError,
    Refusal, memory::Shares,
};
use serde_json::Value;

/// "Proves" after two milliseconds under a lock, and tells when that was. Two partitions a job; refuses sector `refused`.
struct Pretender {
    refused: Option<u64>,
    lock: Mutex<Vec<PartitionTimes>>,
}

impl Proving for Pretender {
    type Task = u8;
    type Assignment = u8;
    type Params = ();

    fn admit(&self, request: &ProofRequest) -> Result<u8, Refusal> {
        match Some(request.sector_number) == self.refused {
            true => Err(Refusal::invalid("sector_number", "is refused")),
            false => Ok(request.sector_number as u8),
        }
    }

    pretended::one_circuit!(u8);

    fn partitions(&self, _: &u8) -> usize {
        2
    }

    fn synthesize(&self, task: &u8, _: usize, _: &Attempt) -> Result<u8, ProvingError> {
        Ok(*task)
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        pretended::devices(None)
    }

    fn prove(&self, _: usize, (): &(), assignment: u8, _: &Attempt) -> Result<Proved, ProvingError> {
        let mut times = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        let end = Instant::now();
        let phases = vec![(PhaseTimings::LOCK_HOLD, begin, end)];
        let number = times.len() as u64;
        times.push(PartitionTimes { number, device: 0, lane: 1, phases });
        let mut timings = PhaseTimings::default();
        timings.add(PhaseTimings::LOCK_HOLD, end - begin);
        Ok(Proved { proof: [assignment; 192], timings })
    }

    fn partition_times(&self, from: u64) -> Vec<PartitionTimes> {
        let times = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        times.iter().filter(|times| times.number >= from).cloned().collect()
    }

    fn verify_partition(&self, task: &u8, _: usize, (): &(), proof: &PartitionProof) -> Result<bool, String> {
        Ok(proof == &[*task; 192])
    }

    fn verify_whole(&self, task: &u8, (): &(), proof: &[u8]) -> Result<bool, String> {
        Ok(proof == [*task; 384])
    }
}

const PLAN: Plan = Plan {
    rpc_threads: 2,
    compute_threads: 2,
    synthesis_workers: 2,
    finish_threads: 1,
    memory: Shares { bodies: 256 << 20, queue: 256 << 20, work: 512 << 20 },
};

fn daemon(refused: Option<u64>) -> InProcess {
    let pretender = Pretender { refused, lock: Mutex::default() };
    run::spawn_in_process(Config::default(), PLAN, Arc::new(pretender)).expect("a free port")
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// The program in a home of its own.
fn cuzk(home: &Path, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"));
    command.args(words).env_clear().env("HOME", home);
    Ended::of(command.output().expect("the program starts"))
}

/// The same off the threads that serve a daemon.
async fn with(target: &Target, home: &Path, line: &str) -> Ended {
    let (address, home, line) = (target.to_string(), home.to_owned(), line.to_owned());
    let run = move || cuzk(&home, &[&line.split(' ').collect::<Vec<_>>()[..], &["--addr", &address]].concat());
    tokio::task::spawn_blocking(run).await.expect("not cancelled")
}

#[tokio::test(flavor = "multi_thread")]
async fn bench_counts_what_it_asked_for_and_draws_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (daemon, at) = (daemon(None), dir.path().display());
    let line = format!(
        "bench --circuit porep-2k --proofs 5 --concurrency 2 --param-cache {at} --json {at}/b.json --timeline {at}/b.svg"
    );
    let ended = with(&daemon.target, dir.path(), &line).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    for part in ["porep-2k: 5 proofs, 2 at once, of 6 different inputs", "NOT VERIFIED here", "lock_hold", "p99"] {
        assert!(ended.out.contains(part), "{part:?} is not in\n{}", ended.out);
    }
    let json = std::fs::read(dir.path().join("b.json")).expect("written");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    // Two partitions each; the first proof is not among them.
    assert_eq!(json["partitions"], serde_json::json!({"proven": 10, "timed": 10}));
    assert_eq!(json["proofs"].as_array().map(Vec::len), Some(5));
    assert_eq!((&json["verified"]["done"], &json["refusals"]), (&false.into(), &0.into()));
    assert_eq!(json["devices"][0]["device"], "pretender");
    let busy = json["busy_share"]["of_span"].as_f64().expect("a share");
    assert!(busy > 0.0 && busy <= 1.0, "{busy}");
    assert!(json["phases"][0]["partition_ms"].as_f64().is_some_and(|ms| ms >= 2.0), "{}", json["phases"]);
    assert!(json["memory"]["host_limit_bytes"].as_u64().is_some_and(|bytes| bytes == 1 << 30), "{}", json["memory"]);
    let svg = std::fs::read_to_string(dir.path().join("b.svg")).expect("written");
    assert!(svg.starts_with("<svg") && svg.contains("pretender kernels") && svg.contains("<title>lock_hold"), "{svg}");
    daemon.stop().await.expect("drained");
}

#[tokio::test(flavor = "multi_thread")]
async fn bench_ends_with_the_first_proof_that_fails() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let daemon = daemon(Some(2));
    let ended = with(&daemon.target, dir.path(), "bench --circuit porep-2k --proofs 3 --quiet").await;
    assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{}", ended.err);
    assert!(ended.err.contains("sector_number: is refused"), "{}", ended.err);
    let ended = with(&daemon.target, dir.path(), "bench --circuit wpost-32g").await;
    assert_eq!(ended.code, 4, "{}", ended.err);
    daemon.stop().await.expect("drained");
    let ended = cuzk(dir.path(), &["bench", "--circuit", "porep-2k", "--addr", "127.0.0.1:1"]);
    assert_eq!(ended.code, 3, "{}", ended.err);
}

/// What `doctor` found, by what it is about.
fn found<'a>(findings: &'a Value, about: &str) -> &'a Value {
    let all = findings["findings"].as_array().expect("a list");
    all.iter().find(|finding| finding["about"] == about).unwrap_or_else(|| panic!("{about} is not in {findings:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_looks_at_everything_and_fails_where_nothing_can_be_proven() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (daemon, at) = (daemon(None), dir.path().display().to_string());
    let Target::Tcp(listen) = daemon.target.clone() else { panic!("plain TCP") };
    let home = dir.path().to_owned();
    let doctor = move |json: bool| {
        let params = format!("srs.param_cache={at}/params");
        let mut words = vec!["doctor", "--set", "gpus.policy=never", "--set", &params, "--listen", &listen];
        words.extend(json.then_some("--json"));
        cuzk(&home, &words)
    };
    let (told, table) =
        tokio::task::spawn_blocking(move || (doctor(true), doctor(false))).await.expect("not cancelled");
    assert_eq!(told.code, 1, "{}", told.err);
    let findings: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!((&found(&findings, "parameters")["level"], &findings["failures"]), (&"fail".into(), &1.into()));
    for about in
        ["config", "resources", "driver", "job store", "cache", "open files", "memory", "CPUs", "clock", "access"]
    {
        assert_ne!(found(&findings, about)["level"], "fail", "{about}");
    }
    let address = found(&findings, "address")["seen"].as_str().expect("text");
    assert!(address.contains("a daemon answers") && address.contains("serving"), "{address}");
    let store = found(&findings, "job store")["seen"].as_str().expect("text");
    assert!(store.contains(".local/state/cuzk (not there yet)") && store.contains("writes "), "{store}");

    assert_eq!(table.code, 1, "{}", table.err);
    assert_eq!(table.out.lines().filter(|line| line.starts_with("fail")).count(), 1, "{}", table.out);
    assert!(table.out.contains("→ `cuzk-daemon params list`"), "{}", table.out);
    assert!(table.err.contains("failures: 1"), "{}", table.err);
    assert!(std::fs::read_dir(dir.path()).expect("readable").next().is_none(), "doctor left something behind");
    daemon.stop().await.expect("drained");
}

#[test]
fn doctor_tells_every_fault_of_the_configuration() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[daemon]\nlisen = 1\n[gpus]\npolicy = 2\n").expect("writable");
    let listen = format!("unix://{}/s", dir.path().display());
    let ended = cuzk(dir.path(), &["doctor", "--config", file.to_str().expect("UTF-8"), "--listen", &listen]);
    assert_eq!(ended.code, 1);
    let faults: Vec<_> = ended.out.lines().filter(|line| line.starts_with("fail  config")).collect();
    assert!(faults.len() == 2 && faults[0].contains("c.toml:2") && faults[1].contains("c.toml:4"), "{}", ended.out);
}

#[test]
fn a_configuration_of_the_public_cuzk_is_imported() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let old = "[daemon]\nlisten = \"0.0.0.0:9820\"\n[memory]\npinned_budget = \"50GiB\"\n[gpus]\ngpu_treads = 3\n";
    std::fs::write(path("old.toml"), old).expect("writable");
    let ended = cuzk(dir.path(), &["config", "import", &path("old.toml"), "--out", &path("new.toml")]);
    assert_eq!((ended.code, ended.out.as_str()), (0, ""), "{}", ended.err);
    for part in [
        "line 2: daemon.listen: taken; 127.0.0.1:9820 in its place",
        "line 4: memory.pinned_budget: not needed: ",
        "line 6: gpus.gpu_treads: UNKNOWN; did you mean gpus.gpu_threads?",
        "2 keys taken, 1 not needed, 0 refused, 1 unknown",
    ] {
        assert!(ended.err.contains(part), "{part:?} is not in\n{}", ended.err);
    }
    let check = cuzk(dir.path(), &["config", "print", "--config", &path("new.toml")]);
    assert_eq!((check.code, check.err.as_str()), (0, ""));
    assert!(check.out.contains("listen = [\"127.0.0.1:9820\"]"), "{}", check.out);
    let again = cuzk(dir.path(), &["config", "import", &path("old.toml"), "--out", &path("new.toml")]);
    assert_eq!(again.code, 1, "a file that is there is left alone: {}", again.err);
    let printed = cuzk(dir.path(), &["config", "import", &path("old.toml")]);
    assert_eq!(printed.out, std::fs::read_to_string(path("new.toml")).expect("written"));
    assert_eq!(cuzk(dir.path(), &["config", "import", &path("none.toml")]).code, 1);
}

/// The names of all commands, those of a family with its name before.
fn commands(of: &clap::Command, before: &str, all: &mut Vec<String>) {
    for command in of.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{before}-{}", command.get_name());
        commands(command, &name, all);
        all.push(name);
    }
}

#[test]
fn each_command_is_completed_and_has_a_page() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut all = Vec::new();
    commands(&Cli::command(), "cuzk-daemon", &mut all);
    assert!(all.len() > 20 && all.contains(&"cuzk-daemon-config-import".to_owned()), "{all:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cuzk(dir.path(), &["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""), "{shell}");
        for name in &all {
            let word = name.rsplit('-').next().expect("a word");
            assert!(script.out.contains(word), "{shell} does not know {name}");
        }
    }
    assert_eq!(cuzk(dir.path(), &["completions", "tcsh"]).code, 2);

    let pages = dir.path().join("pages");
    assert_eq!(cuzk(dir.path(), &["man", "--out", pages.to_str().expect("UTF-8")]).code, 0);
    let main = std::fs::read_to_string(pages.join("cuzk-daemon.1")).expect("written");
    assert!(main.contains("Exit codes"), "{main}");
    for name in &all {
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(page.contains(".SH") && page.contains(name.rsplit('-').next().expect("a word")), "{name}");
    }
    assert_eq!(cuzk(dir.path(), &["man"]).out, main);
}
