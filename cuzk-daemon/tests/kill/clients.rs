//! Clients that behave like nodes: they retry until they are answered, and they remember what they were promised.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cuzk_daemon::{
    client::{self, Client},
    listen::Target,
};
use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, ProveRequest, SubmitProofRequest, await_proof_response::Status,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tonic::Code;

use crate::work;

/// Clients at work.
pub(crate) struct Clients {
    target: Target,
    promises: Arc<Mutex<Promises>>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// What clients were told.
#[derive(Default)]
struct Promises {
    /// Job ids that `SubmitProof` gave, and what was submitted.
    accepted: Vec<(String, SubmitProofRequest)>,
    /// Request ids that were sent with a second payload: the job with the first may be superseded.
    superseded: HashSet<String>,
    /// Proofs that came back and were right.
    proven: usize,
    faults: Vec<String>,
}

/// What came of it.
pub(crate) struct Report {
    pub(crate) accepted: usize,
    pub(crate) proven: usize,
    superseded: usize,
    pub(crate) faults: Vec<String>,
}

/// Nobody waits for ever: a job that does not end is a fault.
const PATIENCE_MS: u64 = 60_000;

impl Clients {
    pub(crate) fn start(count: usize, target: &Target, seed: u64) -> Self {
        let promises = Arc::new(Mutex::new(Promises::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..count).map(|n| {
            let one = One {
                name: n,
                target: target.clone(),
                promises: promises.clone(),
                stop: stop.clone(),
                random: StdRng::seed_from_u64(seed.wrapping_add(1 + n as u64)),
            };
            tokio::spawn(one.work())
        });
        Self { target: target.clone(), tasks: tasks.collect(), promises, stop }
    }

    /// Lets the clients end what they are at, and asks for every job that was ever accepted.
    pub(crate) async fn finish(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("no client panics");
        }
        let mut promises = std::mem::take(&mut *self.promises.lock().expect("no client panics"));
        let mut client = client::connect(&self.target).await.expect("the daemon is there");
        let mut superseded = 0;
        for (job_id, request) in promises.accepted.clone() {
            let awaited = AwaitProofRequest { job_id: job_id.clone(), timeout_ms: PATIENCE_MS };
            let answer = client.await_proof(awaited).await;
            let verdict = match &answer {
                Ok(answer) => promises.judge(&request, answer.get_ref()),
                Err(status) => Verdict::Wrong(format!("{status}")),
            };
            match verdict {
                Verdict::Right => {}
                Verdict::Superseded => superseded += 1,
                Verdict::Wrong(what) => promises.faults.push(format!("accepted job {job_id}: {what}")),
            }
        }
        // The same request again is the same job, long after.
        for (job_id, request) in promises.accepted.iter().rev().step_by(17) {
            if promises.superseded.contains(&request.request_id) {
                continue;
            }
            let again = client.submit_proof(request.clone()).await;
            if !again.as_ref().is_ok_and(|again| again.get_ref().job_id == *job_id) {
                promises.faults.push(format!("job {job_id} submitted again: {again:?}"));
            }
        }
        Report { accepted: promises.accepted.len(), proven: promises.proven, superseded, faults: promises.faults }
    }
}

enum Verdict {
    Right,
    Superseded,
    Wrong(String),
}

impl Promises {
    fn judge(&self, request: &SubmitProofRequest, answer: &AwaitProofResponse) -> Verdict {
        match answer.status() {
            Status::Completed if answer.proof == work::whole_proof(&request.vanilla_proof) => Verdict::Right,
            Status::Completed => Verdict::Wrong("the proof is another one's".to_owned()),
            Status::Cancelled if self.superseded.contains(&request.request_id) => Verdict::Superseded,
            status => Verdict::Wrong(format!("{status:?}: {}", answer.error_message)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, proven, superseded, faults } = self;
        write!(
            f,
            "{accepted} jobs accepted by SubmitProof ({superseded} of them superseded), {proven} right proofs while jobs \
             came in, {} lost or wrong",
            faults.len()
        )
    }
}

/// One client.
struct One {
    name: usize,
    target: Target,
    promises: Arc<Mutex<Promises>>,
    stop: Arc<AtomicBool>,
    random: StdRng,
}

impl One {
    async fn work(mut self) {
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            // Ids are arbitrary text.
            let request = work::request(format!("client {}/[{number}]", self.name), &mut self.random);
            match self.random.gen_range(0..4) {
                0 => self.prove(request).await,
                1 => {
                    let job = self.submit(request.clone()).await;
                    self.fetch(job, &request).await;
                }
                2 => {
                    // A new seed: another payload under the same id.
                    self.submit(request.clone()).await;
                    self.promises().superseded.insert(request.request_id.clone());
                    let request = work::request(request.request_id, &mut self.random);
                    self.prove(request).await;
                }
                _ => drop(self.submit(request).await),
            }
        }
    }

    /// `SubmitProof` until it is answered.
    async fn submit(&mut self, request: SubmitProofRequest) -> String {
        let job = loop {
            let mut client = self.connected().await;
            match client.submit_proof(request.clone()).await {
                Ok(answer) => break answer.into_inner().job_id,
                Err(status) => self.may_retry(&request, &status).await,
            }
        };
        self.promises().accepted.push((job.clone(), request));
        job
    }

    /// `AwaitProof` until it is answered: the job must be known, whatever happened meanwhile.
    async fn fetch(&mut self, job_id: String, request: &SubmitProofRequest) {
        loop {
            let mut client = self.connected().await;
            let awaited = AwaitProofRequest { job_id: job_id.clone(), timeout_ms: PATIENCE_MS };
            match client.await_proof(awaited).await {
                Ok(answer) => return self.note(request, answer.get_ref()),
                Err(status) => self.may_retry(request, &status).await,
            }
        }
    }

    /// `Prove` until it is answered.
    async fn prove(&mut self, request: SubmitProofRequest) {
        loop {
            let mut client = self.connected().await;
            match client.prove(ProveRequest { submit: Some(request.clone()) }).await {
                Ok(answer) => return self.note(&request, &answer.into_inner().result.expect("a result")),
                Err(status) => self.may_retry(&request, &status).await,
            }
        }
    }

    fn note(&self, request: &SubmitProofRequest, answer: &AwaitProofResponse) {
        let mut promises = self.promises();
        match promises.judge(request, answer) {
            Verdict::Right => promises.proven += 1,
            Verdict::Superseded => {}
            Verdict::Wrong(what) => promises.faults.push(format!("{}: {what}", request.request_id)),
        }
    }

    /// A daemon that dies or has too much to do is tried again; every other refusal is a fault.
    async fn may_retry(&self, request: &SubmitProofRequest, status: &tonic::Status) {
        let died = matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal);
        let broken_pipe = died && std::error::Error::source(status).is_some();
        if !broken_pipe && status.code() != Code::ResourceExhausted {
            self.promises().faults.push(format!("{}: {status:?}", request.request_id));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    async fn connected(&self) -> Client {
        loop {
            match client::connect(&self.target).await {
                Ok(client) => return client,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    fn promises(&self) -> std::sync::MutexGuard<'_, Promises> {
        self.promises.lock().expect("no client panics")
    }
}
