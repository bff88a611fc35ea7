//! Kills a daemon (`kill -9`) at random moments while clients send it jobs, starts it again, and at the end looks whether
//! every job that it ever accepted has its proof, and the right one.
//!
//! The daemon is this same program with its real engine, store and gRPC service; only the mathematics pretends, so that a
//! job takes milliseconds. 5 kills in the test suite; for more:
//!
//! ```sh
//! cargo test --release -p cuzk-daemon --test kill -- --kills 200
//! ```
//!
//! `--seed N` repeats the choices of a run (not its timing).

mod clients;
#[path = "../pretended/mod.rs"]
mod pretended;
mod pretender;
mod work;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_daemon::{cli::ConfigArgs, client, listen::Target, run};
use cuzk_proto::v1::{GetMetricsRequest, GetStatusRequest};
use rand::{Rng, SeedableRng, rngs::StdRng};

use clients::Clients;

/// Clients that send jobs at the same time.
const CLIENTS: usize = 6;
/// A restart that takes longer fails the test.
const RESTART_LIMIT: Duration = Duration::from_secs(2);
/// The first argument of the daemon's process.
const DAEMON: &str = "daemon";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == DAEMON) {
        return daemon(Path::new(&args[1]));
    }
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args.get(at + 1)?.parse().expect("a number"))
    };
    // A filter for other tests, and the listing of tests, are not for this one.
    let options = ["--kills", "--seed"].into_iter().any(|name| number(name).is_some());
    let filtered = args.iter().any(|arg| !arg.starts_with('-') && !"kill".contains(arg.as_str()));
    if !options && (filtered || args.iter().any(|arg| arg == "--list" || arg == "--ignored")) {
        return;
    }
    let kills = number("--kills").unwrap_or(5);
    let seed = number("--seed").unwrap_or_else(rand::random);
    println!("{kills} kills, seed {seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    runtime.block_on(kill(kills, seed));
}

/// The daemon, until it is killed.
fn daemon(config: &Path) {
    let args = ConfigArgs { config: Some(config.to_owned()), ..ConfigArgs::default() };
    let ended = run::prepare(&args).and_then(|prepared| prepared.run(|_, _| Ok(Arc::new(pretender::Pretender))));
    panic!("the daemon ended by itself: {ended:?}");
}

async fn kill(kills: u64, seed: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = write_config(folder.path());
    let target = Target::Unix(folder.path().join("cuzk.sock"));
    let mut random = StdRng::seed_from_u64(seed);
    let clients = Clients::start(CLIENTS, &target, seed);

    let mut restarts = Vec::new();
    let mut resumed = 0;
    for _ in 0..kills {
        let begun = Instant::now();
        let mut child = start(&config);
        // One in five dies while it starts.
        if random.gen_ratio(4, 5) {
            answers(&target, &mut child).await;
            restarts.push(begun.elapsed());
            resumed += metric(&target, "cuzk_store_jobs_found_total{outcome=\"resumed\"}").await;
            tokio::time::sleep(Duration::from_millis(random.gen_range(0..200))).await;
        } else {
            tokio::time::sleep(Duration::from_millis(random.gen_range(0..30))).await;
        }
        child.kill().expect("it runs");
        child.wait().expect("it can be waited for");
    }
    let begun = Instant::now();
    let mut child = start(&config);
    answers(&target, &mut child).await;
    restarts.push(begun.elapsed());
    let lost = metric(&target, "cuzk_store_jobs_found_total{outcome=\"lost\"}").await;
    let report = clients.finish().await;
    child.kill().expect("it runs");
    child.wait().expect("it can be waited for");

    restarts.sort_unstable();
    let (median, longest) = (restarts[restarts.len() / 2], restarts[restarts.len() - 1]);
    println!(
        "{kills} kills: {report}; {resumed} jobs resumed; from start to answer {} ms (median), {} ms (longest)",
        median.as_millis(),
        longest.as_millis()
    );
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
    assert_eq!(lost, 0, "the store lost jobs");
    assert!(report.accepted > 0 && report.proven > 0, "the clients did something");
    assert!(longest < RESTART_LIMIT, "a restart took {longest:?}");
}

fn start(config: &Path) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.arg(DAEMON).arg(config).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("it starts")
}

/// Waits until the daemon answers.
async fn answers(target: &Target, child: &mut Child) {
    loop {
        if let Ok(mut client) = client::connect(target).await
            && client.get_status(GetStatusRequest {}).await.is_ok()
        {
            return;
        }
        assert!(child.try_wait().expect("ours").is_none(), "the daemon does not start");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A counter of the daemon.
async fn metric(target: &Target, name: &str) -> u64 {
    let mut client = client::connect(target).await.expect("it answers");
    let text = client.get_metrics(GetMetricsRequest {}).await.expect("it answers").into_inner().prometheus_text;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name}")).trim().parse().expect("a number")
}

fn write_config(folder: &Path) -> std::path::PathBuf {
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        r#"
        [daemon]
        listen = "unix://{}"
        [memory]
        total_budget = "1GiB"
        [scheduler]
        max_queued_jobs = 1000
        # Nothing is forgotten before the end, where everything is asked for.
        retain_finished = 10000000
        retain_finished_bytes = "100GiB"
        [limits]
        # At the end thousands of jobs are asked for by one client.
        rate = 0
        [store]
        path = "{}"
        [logging]
        level = "error"
        "#,
        at("cuzk.sock"),
        at("store")
    );
    let path = folder.join("cuzk.toml");
    std::fs::write(&path, text).expect("writable");
    path
}
