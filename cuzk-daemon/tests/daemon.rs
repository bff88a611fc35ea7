//! A whole daemon in this process, with a prover that only pretends, driven by the program's own client commands.

#[path = "daemon/access.rs"]
mod access;
#[path = "daemon/page.rs"]
mod page;
mod pretended;

use std::{io::BufRead, path::Path, process::Command, sync::Arc};

use cuzk_daemon::{
    config::{Config, OneOrMany},
    listen::{Endpoint, Target},
    resources::Plan,
    run::{self, Bound, InProcess},
    shutdown,
};
use cuzk_server::{
    Attempt, DeviceInfo, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, ProvingError, Refusal,
    memory::Shares,
};

/// "Proves" with the sector number in every byte; refuses sector 13, fails sector 99.
struct Pretender;

impl Proving for Pretender {
    type Task = u8;
    type Assignment = u8;
    type Params = ();

    fn admit(&self, request: &ProofRequest) -> Result<u8, Refusal> {
        match request.sector_number {
            13 => Err(Refusal::invalid("sector_number", "13 is unlucky")),
            number => Ok(number as u8),
        }
    }

    pretended::one_circuit!(u8);

    fn partitions(&self, _: &u8) -> usize {
        2
    }

    fn synthesize(&self, task: &u8, _: usize, _: &Attempt) -> Result<u8, ProvingError> {
        match *task {
            99 => Err(ProvingError::Input("an unsatisfied constraint".into())),
            number => Ok(number),
        }
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        pretended::devices(None)
    }

    fn prove(&self, _: usize, (): &(), assignment: u8, _: &Attempt) -> Result<Proved, ProvingError> {
        Ok(Proved { proof: [assignment; 192], timings: PhaseTimings::default() })
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

fn daemon() -> InProcess {
    run::spawn_in_process(Config::default(), PLAN, Arc::new(Pretender)).expect("a free port")
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

/// Runs the program against a daemon, off the threads that serve it.
async fn cuzk(target: &Target, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"));
    command.args(words).env_clear().env("CUZK_ADDR", target.to_string());
    let ended = tokio::task::spawn_blocking(move || command.output());
    let output = ended.await.expect("not cancelled").expect("the program starts");
    Ended {
        code: output.status.code().expect("no signal ended it"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

async fn prove(target: &Target, dir: &Path, sector: &str) -> Ended {
    let c1 = dir.join("c1.json");
    std::fs::write(&c1, r#"{"registered_proof":"StackedDrg2KiBV1_1"}"#).expect("writable");
    let out = dir.join("proof");
    let (c1, out) = (c1.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    cuzk(target, &["prove", "--c1", c1, "--miner", "1000", "--sector", sector, "--out", out, "--hex"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_comes_back_and_the_status_counts_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let daemon = daemon();
    let ended = prove(&daemon.target, dir.path(), "42").await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(std::fs::read(dir.path().join("proof")).expect("written"), [42; 384]);
    assert_eq!(ended.out.trim(), "2a".repeat(384));
    assert!(ended.err.contains("accepted") && ended.err.contains("completed"), "{}", ended.err);

    let status = cuzk(&daemon.target, &["status", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&status.out).expect("JSON");
    assert_eq!(json["total_proofs_completed"], 1);
    assert_eq!(json["state"], "serving");
    assert_eq!(json["gpus"][0]["name"], "Pretender");
    assert!(cuzk(&daemon.target, &["status"]).await.out.contains("1 completed, 0 failed"));

    // "job j-… accepted": the second word is its id.
    let job = ended.err.split_whitespace().nth(1).expect("a job id");
    let cancel = cuzk(&daemon.target, &["cancel", job]).await;
    assert_eq!((cancel.code, cancel.out.contains("had ended already")), (0, true), "{}", cancel.err);
    assert_eq!(cuzk(&daemon.target, &["cancel", "nonsense"]).await.code, 6);
    assert_eq!(daemon.stop().await.expect("drained").cancelled, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_devices_and_parameters_are_shown() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let daemon = daemon();
    let target = &daemon.target;
    assert_eq!(prove(target, dir.path(), "42").await.code, 0);
    let failed = prove(target, dir.path(), "99").await;
    assert!(failed.err.contains(": failed: "), "the last picture is shown: {}", failed.err);

    let json = |ended: Ended| serde_json::from_str::<serde_json::Value>(&ended.out).expect("JSON");
    let jobs = json(cuzk(target, &["jobs", "list", "--json"]).await);
    assert_eq!((&jobs[0]["state"], &jobs[1]["state"]), (&"failed".into(), &"completed".into()));
    assert_eq!((&jobs[1]["miner_id"], &jobs[1]["sector_number"]), (&1000.into(), &42.into()));
    let only = cuzk(target, &["jobs", "list", "--state", "failed", "--limit", "1"]).await;
    assert!(only.out.contains("t01000/99") && !only.out.contains("t01000/42"), "{}", only.out);

    let id = jobs[1]["job_id"].as_str().expect("an id");
    let shown = cuzk(target, &["jobs", "show", id]).await;
    assert!(shown.out.contains("2 proved") && shown.out.contains("pretender"), "{}", shown.out);
    let shown = json(cuzk(target, &["jobs", "show", id, "--json"]).await);
    assert_eq!((&shown["partitions"][1]["stage"], &shown["partitions"][1]["attempt"]), (&"proved".into(), &1.into()));
    assert_eq!(cuzk(target, &["jobs", "show", "nonsense"]).await.code, 6);

    let gpus = json(cuzk(target, &["gpu", "list", "--json"]).await);
    assert_eq!((&gpus[0]["uuid"], &gpus[0]["health"]), (&"pretender".into(), &"available".into()));
    assert!(cuzk(target, &["gpu", "list"]).await.out.contains("idle"));

    let loaded = cuzk(target, &["srs", "preload", "porep-2k"]).await;
    assert_eq!((loaded.code, loaded.out.trim()), (0, "porep-2k was loaded already"), "{}", loaded.err);
    assert!(cuzk(target, &["srs", "list"]).await.out.contains("warm"));
    let evicted = cuzk(target, &["srs", "evict", "porep-2k"]).await;
    assert_eq!(evicted.out.trim(), "porep-2k released: 1.0 MiB", "{}", evicted.err);
    assert!(cuzk(target, &["srs", "list"]).await.out.contains("cold"));
    daemon.stop().await.expect("drained");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_without_a_terminal_is_lines_until_the_daemon_stops() {
    let daemon = daemon();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"));
    command.args(["watch"]).env_clear().env("CUZK_ADDR", daemon.target.to_string());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut watching = command.spawn().expect("the program starts");
    let mut first = String::new();
    let mut out = std::io::BufReader::new(watching.stdout.take().expect("piped"));
    let (first, watching) = tokio::task::spawn_blocking(move || {
        out.read_line(&mut first).expect("a line");
        // The pipe stays open, or the program could not write its last line.
        (first, (watching, out))
    })
    .await
    .expect("not cancelled");
    assert_eq!(first, "serving queued=0 running=0 busy_workers=0 completed=0 failed=0\n");
    daemon.stop().await.expect("drained");
    let (watching, _out) = watching;
    let ended = tokio::task::spawn_blocking(move || watching.wait_with_output()).await.expect("not cancelled");
    let ended = ended.expect("it ends");
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "the daemon has stopped\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_and_failed_proofs_have_their_own_codes_and_leave_no_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let daemon = daemon();
    let refused = prove(&daemon.target, dir.path(), "13").await;
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("13 is unlucky"), "{}", refused.err);
    let failed = prove(&daemon.target, dir.path(), "99").await;
    assert_eq!(failed.code, 1, "{}", failed.err);
    assert!(failed.err.contains("an unsatisfied constraint"), "{}", failed.err);
    assert!(!dir.path().join("proof").exists());
    daemon.stop().await.expect("drained");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_and_is_gone_after_the_drain() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = dir.path().join("cuzk.sock");
    let mut config = Config::default();
    config.daemon.listen = OneOrMany(vec![Endpoint::Unix(socket.clone())]);
    config.srs.preload = OneOrMany(vec![pretended::CIRCUIT]);
    let bound = Bound::bind(&config).expect("free");
    let (trigger, asked) = shutdown::manual();
    let task =
        tokio::spawn(async move { run::run_daemon(&config, &PLAN, bound, None, Arc::new(Pretender), asked).await });

    let target = Target::Unix(socket.clone());
    let ended = prove(&target, dir.path(), "7").await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(std::fs::read(dir.path().join("proof")).expect("written"), [7; 384]);

    trigger.ask();
    task.await.expect("no panic").expect("drained");
    assert!(!socket.exists());
    assert_eq!(cuzk(&target, &["status"]).await.code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_to_end_stops_at_once() {
    let config = {
        let mut config = Config::default();
        config.daemon.listen = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 0).into())]);
        config
    };
    let bound = Bound::bind(&config).expect("a free port");
    let (trigger, asked) = shutdown::manual();
    trigger.ask();
    trigger.ask();
    let ended = run::run_daemon(&config, &PLAN, bound, None, Arc::new(Pretender), asked).await;
    let failure = ended.expect_err("a drain would have succeeded");
    assert!(failure.to_string().contains("stopped at once"), "{failure}");
}
