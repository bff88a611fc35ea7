//! The driver: so many proofs, so many at once, and a look at the daemon now and then meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cuzk_proto::v1::{GetJobRequest, GetStatusRequest, GetTimelineRequest, Job, PartitionTimes, SubmitProofRequest};
use indicatif::ProgressBar;
use tokio::task::JoinSet;
use tonic::Code;

use super::stats::Peaks;
use crate::{
    client::{self, Client},
    commands::{prove::outcome, remote, text},
    exit::{Exit, Failure},
    listen::Target,
};

/// What is to be done.
#[derive(Clone)]
pub(super) struct Course {
    pub(super) client: Client,
    pub(super) target: Target,
    /// Without ids; used in turn.
    pub(super) inputs: Arc<Vec<SubmitProofRequest>>,
    pub(super) proofs: usize,
    pub(super) concurrency: usize,
}

/// What was measured.
pub(super) struct Measured {
    /// The proof before the clock started.
    pub(super) first: Proven,
    /// The others, in the order of their submission.
    pub(super) proofs: Vec<Proven>,
    /// From the first submission to the last proof.
    pub(super) wall: Duration,
    /// How often a submission was refused for want of room, and sent again.
    pub(super) refusals: usize,
    pub(super) peaks: Peaks,
    /// The phases of all partitions; `None` if the daemon does not tell them.
    pub(super) timeline: Option<Vec<PartitionTimes>>,
}

/// One proof.
pub(super) struct Proven {
    /// Its number among the inputs.
    pub(super) input: usize,
    /// From its submission to its arrival, by the clock of this process.
    pub(super) latency: Duration,
    pub(super) proof: Vec<u8>,
    /// As the daemon tells it; without phases from a daemon of another make.
    pub(super) job: Job,
}

/// Drives the daemon.
///
/// # Errors
/// The first proof that fails: a run that did not do its work has no figures.
pub(super) async fn drive(course: &Course, bar: &ProgressBar) -> Result<Measured, Failure> {
    let run = format!("bench-{:x}-{}", text::now_ms(), std::process::id());
    let refusals = Arc::new(AtomicUsize::new(0));
    bar.set_message("one proof first, which is not counted");
    let first = prove(course, &run, 0, &refusals).await?;
    bar.set_message("proofs");
    refusals.store(0, Ordering::Relaxed);

    let stop = Arc::new(AtomicBool::new(false));
    let from = timeline(&course.client, 0).await.map(|partitions| partitions.last().map_or(0, |last| last.number + 1));
    let watching = tokio::spawn(watch(course.client.clone(), from, stop.clone()));
    let next = Arc::new(AtomicUsize::new(1));
    let begin = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..course.concurrency.min(course.proofs) {
        let (course, run, next, refusals, bar) =
            (course.clone(), run.clone(), next.clone(), refusals.clone(), bar.clone());
        workers.spawn(async move {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number > course.proofs {
                    return Ok::<_, Failure>(done);
                }
                done.push((number, prove(&course, &run, number, &refusals).await?));
                bar.inc(1);
            }
        });
    }
    let mut proofs = Vec::with_capacity(course.proofs);
    while let Some(worker) = workers.join_next().await {
        // The first failure ends all: what is dropped here is aborted.
        proofs.extend(worker.map_err(|e| Failure::new(Exit::Failure, format!("a client was lost: {e}")))??);
    }
    let wall = begin.elapsed();
    stop.store(true, Ordering::Relaxed);
    let (peaks, timeline) =
        watching.await.map_err(|e| Failure::new(Exit::Failure, format!("the watcher was lost: {e}")))?;
    proofs.sort_by_key(|(number, _)| *number);
    let proofs = proofs.into_iter().map(|(_, proven)| proven).collect();
    Ok(Measured { first, proofs, wall, refusals: refusals.load(Ordering::Relaxed), peaks, timeline })
}

/// Submits one and waits for its proof. Where there is no room, it comes again: the wait is part of its latency.
async fn prove(course: &Course, run: &str, number: usize, refusals: &AtomicUsize) -> Result<Proven, Failure> {
    let mut client = course.client.clone();
    let input = number % course.inputs.len();
    let request = SubmitProofRequest { request_id: format!("{run}-{number}"), ..course.inputs[input].clone() };
    let begin = Instant::now();
    let job_id = loop {
        match client.submit_proof(request.clone()).await {
            Ok(accepted) => break accepted.into_inner().job_id,
            Err(status) if status.code() == Code::ResourceExhausted => {
                refusals.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            Err(status) => return Err(client::refused("submit a proof", &course.target, &status)),
        }
    };
    let result = remote::await_proof(client.clone(), &course.target, &job_id).await?;
    let latency = begin.elapsed();
    let proof = outcome(&result)?.to_vec();
    let job = match client.get_job(remote::quick(GetJobRequest { job_id: job_id.clone() })).await {
        Ok(job) => job.into_inner(),
        // A daemon of another make, or one that keeps no ended jobs.
        Err(_) => Job {
            job_id,
            queue_wait_ms: result.queue_wait_ms,
            srs_load_ms: result.srs_load_ms,
            synthesis_ms: result.synthesis_ms,
            gpu_compute_ms: result.gpu_compute_ms,
            total_ms: result.total_ms,
            devices: result.devices,
            ..Job::default()
        },
    };
    Ok(Proven { input, latency, proof, job })
}

/// Looks at the daemon until told to stop, and once more then. Without a number to begin at, the timeline is left alone.
async fn watch(client: Client, from: Option<u64>, stop: Arc<AtomicBool>) -> (Peaks, Option<Vec<PartitionTimes>>) {
    let (mut peaks, mut partitions, mut next) = (Peaks::default(), Vec::new(), from);
    loop {
        let last = stop.load(Ordering::Relaxed);
        // A look that fails is one look less: the proofs tell whether the daemon is well.
        if let Ok(status) = client.clone().get_status(remote::quick(GetStatusRequest {})).await {
            peaks.see(status.get_ref());
        }
        if let Some(from) = next
            && let Some(new) = timeline(&client, from).await
        {
            next = new.last().map_or(next, |last| Some(last.number + 1));
            partitions.extend(new);
        }
        if last {
            return (peaks, from.map(|_| partitions));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn timeline(client: &Client, from: u64) -> Option<Vec<PartitionTimes>> {
    let answer = client.clone().get_timeline(remote::quick(GetTimelineRequest { from })).await;
    Some(answer.ok()?.into_inner().partitions)
}

/// How long a refused submission waits.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How often the daemon is looked at: often enough that its timeline, of 256 partitions, loses none.
const LOOK_EVERY: Duration = Duration::from_millis(200);
