//! A load test of the daemon with a prover that only pretends, in a process of its own whose memory is limited and
//! watched from outside:
//!
//! ```text
//! cargo run --release -p cuzk-daemon --example load
//! ```
//!
//! 1. **Burst**: 50 clients send 60 MB requests at once under a limit of 1.5 GiB of address space beyond the start. Each
//!    gets its proof or RESOURCE_EXHAUSTED, and `GetStatus` answers throughout.
//! 2. **Small jobs**: 500 in a row; memory at the end as after the first hundred.
//! 3. **Throughput**: 15 jobs of ten partitions one after another, and at once.
//! 4. **Full load**: `GetStatus` while every core is busy with synthesis.
//! 5. **Long queue**: `GetStatus` with 500 jobs of ten partitions under way, every core busy, and four who watch all of
//!    them.

#[path = "../tests/pretended/mod.rs"]
mod pretended;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    num::NonZeroU32,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cuzk_daemon::{
    client,
    config::Config,
    listen::Target,
    resources::{Plan, Resources},
    run,
};
use cuzk_proto::v1::{
    AwaitProofRequest, CancelProofRequest, GetStatusRequest, ProofKind, ProveRequest, SubmitProofRequest,
    WatchStatusRequest, await_proof_response::Status as Ended,
};
use cuzk_server::{
    Attempt, DeviceInfo, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, ProvingError, Refusal,
    memory::Shares,
};
use prost::Message;
use tonic::Code;

const CLIENTS: usize = 50;
const PAYLOAD: usize = 60_000_000;
const SMALL: usize = 100_000;
const LIMIT: u64 = 1536 << 20;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// "Proves" with the payload's second byte. Its first says how: `b`urst, `s`mall, `t`oy, `f`ull load.
struct Pretender;

/// What the payload says, and as much memory as a parsed C1 output takes.
struct Task {
    how: u8,
    tag: u8,
    _parsed: Vec<u8>,
}

impl Proving for Pretender {
    type Task = Task;
    type Assignment = u8;
    type Params = ();

    fn admit(&self, request: &ProofRequest) -> Result<Task, Refusal> {
        let [how, tag, ..] = request.vanilla_proof[..] else {
            return Err(Refusal::invalid("vanilla_proof", "is too short"));
        };
        // Written, so that it is there.
        Ok(Task { how, tag, _parsed: request.vanilla_proof.to_vec() })
    }

    pretended::one_circuit!(Task);

    fn partitions(&self, task: &Task) -> usize {
        if task.how == b't' || task.how == b'f' { 10 } else { 1 }
    }

    fn synthesize(&self, task: &Task, _: usize, _: &Attempt) -> Result<u8, ProvingError> {
        match task.how {
            b't' => thread::sleep(Duration::from_millis(20)),
            b'f' => spin(Duration::from_millis(200)),
            _ => {}
        }
        Ok(task.tag)
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        pretended::devices(None)
    }

    fn prove(&self, _: usize, (): &(), tag: u8, _: &Attempt) -> Result<Proved, ProvingError> {
        static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
        {
            let _lock = LOCK.lock().map_err(|_| ProvingError::Device("a panic under the lock".into()))?;
            thread::sleep(Duration::from_millis(10));
        }
        // b_g2.
        thread::sleep(Duration::from_millis(8));
        Ok(Proved { proof: [tag; 192], timings: PhaseTimings::default() })
    }

    fn verify_partition(&self, task: &Task, _: usize, (): &(), proof: &PartitionProof) -> Result<bool, String> {
        Ok(proof == &[task.tag; 192])
    }

    fn verify_whole(&self, task: &Task, (): &(), proof: &[u8]) -> Result<bool, String> {
        Ok(proof.iter().all(|byte| *byte == task.tag))
    }
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn main() -> Outcome<()> {
    match env::args().nth(1).as_deref() {
        Some("--serve") => serve(),
        _ => tokio::runtime::Runtime::new()?.block_on(drive()),
    }
}

/// The daemon: says its address, and serves until its input ends.
fn serve() -> Outcome<()> {
    let resources = Resources::detect();
    let plan = Plan { memory: Shares::of(1 << 30, 4 << 30), ..Plan::new(&resources, &Config::default())? };
    tokio::runtime::Builder::new_multi_thread().worker_threads(plan.rpc_threads).enable_all().build()?.block_on(async {
        let mut config = Config::default();
        config.scheduler.max_queued_jobs = NonZeroU32::new(1000).ok_or("1000 is not 0")?;
        let daemon = run::spawn_in_process(config, plan, Arc::new(Pretender))?;
        println!("{}", daemon.target);
        tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await?;
        daemon.stop().await?;
        Ok(())
    })
}

/// The daemon's process.
struct Daemon {
    child: Child,
    target: Target,
}

impl Daemon {
    fn start() -> Outcome<Self> {
        let program = env::current_exe()?;
        let limited = format!("ulimit -v {}; exec \"$0\" --serve", (LIMIT + (2 << 30)) >> 10);
        let mut child = Command::new("sh")
            .args(["-c", &limited])
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        Ok(Self { target: line.trim().parse()?, child })
    }

    /// A line of the daemon's `/proc/PID/status`, in MiB.
    fn memory(&self, what: &str) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).ok_or("no such line")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? >> 10)
    }

    fn stop(mut self) -> Outcome<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}").into()) }
    }
}

async fn drive() -> Outcome<()> {
    let daemon = Daemon::start()?;
    println!("daemon of {} MiB at the start", daemon.memory("VmRSS")?);
    burst(&daemon).await?;
    small_jobs(&daemon).await?;
    throughput(&daemon).await?;
    full_load(&daemon).await?;
    long_queue(&daemon).await?;
    daemon.stop()
}

fn request(how: u8, n: usize, size: usize) -> SubmitProofRequest {
    let mut bytes = vec![b'x'; size];
    (bytes[0], bytes[1]) = (how, n as u8);
    SubmitProofRequest {
        request_id: format!("{how}-{n}"),
        proof_kind: ProofKind::PorepSealCommit.into(),
        sector_size: 2048,
        sector_number: n as u64,
        vanilla_proof: bytes.into(),
        ..SubmitProofRequest::default()
    }
}

/// Asks for the status again and again, in a thread of its own with its own connection: what is measured is the daemon,
/// not how busy this process is.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<Answers, String>>,
}

/// The answers to GetStatus: how many, and how long the median and the slowest took.
struct Answers {
    count: usize,
    median: Duration,
    slowest: Duration,
}

impl std::fmt::Display for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GetStatus {} times, median {:.1?}, slowest {:.1?}", self.count, self.median, self.slowest)
    }
}

impl Watch {
    fn start(daemon: &Daemon) -> Outcome<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (target, stopped) = (daemon.target.clone(), stop.clone());
        let ask = async move {
            let mut client = client::connect(&target).await.map_err(|e| e.to_string())?;
            let mut took = Vec::new();
            while took.is_empty() || !stopped.load(Ordering::Relaxed) {
                let begin = Instant::now();
                client.get_status(GetStatusRequest {}).await.map_err(|e| e.to_string())?;
                took.push(begin.elapsed());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            took.sort_unstable();
            Ok(Answers { count: took.len(), median: took[took.len() / 2], slowest: took[took.len() - 1] })
        };
        Ok(Self { stop, thread: thread::spawn(move || runtime.block_on(ask)) })
    }

    /// Waits for the last answer; it takes milliseconds, unless the daemon is as slow.
    fn end(self) -> Outcome<Answers> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.thread.join().map_err(|_| "the thread that asked for the status panicked")??)
    }
}

async fn burst(daemon: &Daemon) -> Outcome<()> {
    let watch = Watch::start(daemon)?;
    let begin = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let target = daemon.target.clone();
            tokio::spawn(async move {
                let mut client = client::connect(&target).await.map_err(|e| e.to_string())?;
                let submit = Some(request(b'b', n, PAYLOAD));
                match client.prove(ProveRequest { submit }).await {
                    Ok(answer) => {
                        let result = answer.into_inner().result.ok_or("no result")?;
                        let right = result.status() == Ended::Completed && result.proof[..] == [n as u8; 192];
                        if right { Ok(true) } else { Err(format!("client {n}: {:?}", result.error_message)) }
                    }
                    Err(status) if status.code() == Code::ResourceExhausted => Ok(false),
                    Err(status) => Err(format!("client {n}: {status}")),
                }
            })
        })
        .collect();
    let mut proven = 0;
    for client in clients {
        proven += usize::from(client.await??);
    }
    let took = begin.elapsed();
    let answers = watch.end()?;
    println!(
        "burst: {CLIENTS} clients with {PAYLOAD} bytes: {proven} proofs, {} told RESOURCE_EXHAUSTED, in {took:.1?}; \
         {} MiB at the peak; {answers}",
        CLIENTS - proven,
        daemon.memory("VmHWM")?
    );
    Ok(())
}

async fn small_jobs(daemon: &Daemon) -> Outcome<()> {
    let mut client = client::connect(&daemon.target).await?;
    let mut memory = Vec::new();
    for n in 0..500 {
        let submit = Some(request(b's', n, SMALL));
        let result = client.prove(ProveRequest { submit }).await?.into_inner().result.ok_or("no result")?;
        if result.proof[..] != [n as u8; 192] {
            return Err(format!("job {n}: {}", result.error_message).into());
        }
        if n % 100 == 99 {
            memory.push(daemon.memory("VmRSS")?);
        }
    }
    println!("500 small jobs in a row: {memory:?} MiB after each hundred");
    Ok(())
}

async fn throughput(daemon: &Daemon) -> Outcome<()> {
    let mut client = client::connect(&daemon.target).await?;
    let begin = Instant::now();
    for n in 0..15 {
        client.prove(ProveRequest { submit: Some(request(b't', n, SMALL)) }).await?;
    }
    let one_by_one = begin.elapsed();
    let begin = Instant::now();
    await_all(&mut client, (15..30).map(|n| request(b't', n, SMALL)).collect()).await?;
    let at_once = begin.elapsed();
    println!(
        "15 jobs of ten partitions (synthesis 20 ms, lock 10 ms, b_g2 8 ms): {one_by_one:.2?} one after another, \
         {at_once:.2?} at once: {:.2} times the throughput; the lock alone takes 1.5 s",
        one_by_one.as_secs_f64() / at_once.as_secs_f64()
    );
    Ok(())
}

async fn await_all(client: &mut client::Client, requests: Vec<SubmitProofRequest>) -> Outcome<()> {
    let mut jobs = Vec::new();
    for request in requests {
        jobs.push(client.submit_proof(request).await?.into_inner().job_id);
    }
    for job_id in jobs {
        let ended = client.await_proof(AwaitProofRequest { job_id, timeout_ms: 0 }).await?.into_inner();
        if ended.status() != Ended::Completed {
            return Err(ended.error_message.into());
        }
    }
    Ok(())
}

async fn full_load(daemon: &Daemon) -> Outcome<()> {
    let watch = Watch::start(daemon)?;
    let mut client = client::connect(&daemon.target).await?;
    await_all(&mut client, (0..10).map(|n| request(b'f', n, SMALL)).collect()).await?;
    let answers = watch.end()?;
    println!("full load: {answers}");
    Ok(())
}

async fn long_queue(daemon: &Daemon) -> Outcome<()> {
    let mut client = client::connect(&daemon.target).await?;
    let mut jobs = Vec::new();
    for n in 0..500 {
        jobs.push(client.submit_proof(request(b'f', 1000 + n, SMALL / 100)).await?.into_inner().job_id);
    }
    let mut watchers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let mut pictures = client.watch_status(WatchStatusRequest { jobs: 500 }).await?.into_inner();
        watchers.spawn(async move {
            let (begin, mut seen, mut bytes) = (Instant::now(), 0, 0);
            while begin.elapsed() < LOOK_FOR
                && let Ok(Some(picture)) = pictures.message().await
            {
                seen += 1;
                bytes = picture.encoded_len();
            }
            (seen, bytes)
        });
    }
    let watch = Watch::start(daemon)?;
    let seen = watchers.join_all().await;
    let answers = watch.end()?;
    println!(
        "500 jobs of ten partitions, every core busy: {answers}; pictures of all jobs in {LOOK_FOR:?}, and bytes of the last, by watcher: {seen:?}"
    );
    for job_id in jobs {
        client.cancel_proof(CancelProofRequest { job_id }).await?;
    }
    Ok(())
}

/// How long the queue is watched.
const LOOK_FOR: Duration = Duration::from_secs(5);
