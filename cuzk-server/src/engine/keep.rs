//! The engine's side of a job store: writing in the background, and taking back what an earlier life left.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Instant, SystemTime},
};

use super::{
    admission,
    ids::JobIds,
    log,
    shared::{Live, Shared},
};
use crate::{
    core::{job::JobKey, view::Subject},
    proving::{ProofRequest, Proving},
    store::{JobStore, KeptJob, Recovered, StoreError, StoreErrorKind, StoreEvent, StoreStatus, Unfinished},
};

/// Events written at once, at most: bounds the memory of a batch, not its time.
const BATCH: usize = 256;

/// A store and the thread that tells it what becomes of jobs.
pub(super) struct Keeper {
    store: Arc<dyn JobStore>,
    letters: mpsc::Sender<Letter>,
}

enum Letter {
    Event(StoreEvent),
    /// Answered when everything before it is written.
    Flush(mpsc::Sender<()>),
}

impl Keeper {
    /// Opens the store: what it held, and a keeper of it. The keeper's thread ends when the keeper is dropped.
    pub(super) fn open(store: Arc<dyn JobStore>) -> Result<(Recovered, Self), StoreError> {
        let recovered = store.recover()?;
        let (letters, received) = mpsc::channel();
        let writer = store.clone();
        let started =
            thread::Builder::new().name("cuzk-store".to_owned()).spawn(move || write_all(&*writer, &received));
        started.map_err(|error| StoreError {
            kind: StoreErrorKind::Broken,
            reason: format!("no thread to write with: {error}"),
        })?;
        Ok((recovered, Self { store, letters }))
    }

    /// Keeps a new job. Blocking.
    pub(super) fn accept(&self, job: &KeptJob, request: &ProofRequest) -> Result<(), StoreError> {
        self.store.accept(job, request)
    }

    /// Has something noted, soon.
    pub(super) fn tell(&self, event: StoreEvent) {
        // The thread reads as long as this sender lives.
        let _ = self.letters.send(Letter::Event(event));
    }

    /// What the store tells of itself.
    pub(super) fn status(&self) -> StoreStatus {
        self.store.status()
    }

    /// Waits until all that was told is written.
    pub(super) fn flush(&self) {
        let (done, written) = mpsc::channel();
        if self.letters.send(Letter::Flush(done)).is_ok() {
            // An error means that the thread is gone, and with it whatever it had not written.
            let _ = written.recv();
        }
    }
}

fn write_all(store: &dyn JobStore, letters: &mpsc::Receiver<Letter>) {
    while let Ok(first) = letters.recv() {
        let mut events = Vec::new();
        let mut flushes = Vec::new();
        for letter in std::iter::once(first).chain(letters.try_iter().take(BATCH)) {
            match letter {
                Letter::Event(event) => events.push(event),
                Letter::Flush(done) => flushes.push(done),
            }
        }
        if !events.is_empty()
            && let Err(error) = store.record(&events)
        {
            tracing::error!(%error, events = events.len(), "the job store did not take notes: it tries again");
        }
        for done in flushes {
            // Who asked may have gone.
            let _ = done.send(());
        }
    }
}

/// Gives the core what an earlier life left: outcomes at once, jobs held. Returns the jobs whose requests are to be read.
pub(super) fn restore<P: Proving>(shared: &Arc<Shared<P>>, recovered: Recovered) -> Vec<JobKey> {
    let Recovered { next_key, unfinished, finished, .. } = recovered;
    shared.with(|state, now| {
        state.core.restore_next_key(next_key);
        for kept in finished {
            let ended = now.checked_sub(kept.age).unwrap_or(now);
            state.core.restore_finished(kept.identity, kept.outcome, ended, now);
        }
        let mut keys = Vec::with_capacity(unfinished.len());
        for Unfinished { job: KeptJob { key, new, accepted }, proofs } in unfinished {
            let age = SystemTime::now().duration_since(accepted).unwrap_or_default();
            let mut live = Live::new(new.circuit.kind, None);
            live.kept = true;
            state.live.insert(key, live);
            state.core.restore(key, new, now.checked_sub(age).unwrap_or(now), now);
            for (partition, proof) in proofs {
                state.core.restore_proof(key, partition, proof);
            }
            keys.push(key);
        }
        keys
    })
}

/// Reads the requests of restored jobs back and checks them as at their submission, one after another.
pub(super) fn reread<P: Proving>(shared: &Arc<Shared<P>>, jobs: Vec<JobKey>) {
    let begun = Instant::now();
    let count = jobs.len();
    for key in jobs {
        // Superseded or cancelled meanwhile.
        if !shared.with(|state, _| state.core.is_held(key)) {
            continue;
        }
        let task = read_again(shared, key);
        shared.with(|state, now| match task {
            Ok((task, subject)) => {
                state.core.describe(key, subject);
                if let Some(live) = state.live.get_mut(&key) {
                    live.task = Some(Arc::new(task));
                    state.core.release(key, now);
                }
            }
            Err(reason) => state.core.give_up(key, format!("resumed after a restart: {reason}"), now),
        });
    }
    log::resumed(count, begun.elapsed());
}

fn read_again<P: Proving>(shared: &Arc<Shared<P>>, key: JobKey) -> Result<(P::Task, Subject), String> {
    let keeper = shared.keeper.as_ref().ok_or("there is no store")?;
    let request = keeper.store.request(key).map_err(|error| error.to_string())?;
    let task = admission::check(shared, &request).map_err(|error| error.to_string())?;
    Ok((task, admission::subject(&request)))
}

/// The ids that a store's jobs have.
pub(super) fn ids(recovered: &Recovered) -> JobIds {
    JobIds::of_store(recovered.ids.clone())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;
    use crate::{
        EngineConfig,
        core::job::{JobStatus, Outcome},
        engine::{
            Awaited, Engine, EngineError,
            testing::{Fake, submission},
        },
        store::durable::{OpenError, Store, StoreOptions},
    };

    /// The store in a folder, as soon as the threads of the engine before have let go of it.
    fn store(folder: &Path) -> Arc<Store> {
        let options = StoreOptions { folder: folder.to_owned(), move_damaged_aside: false };
        loop {
            match Store::open(&options) {
                Ok(store) => return Arc::new(store),
                Err(OpenError::Locked { .. }) => thread::yield_now(),
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn start(fake: &Arc<Fake>, store: Arc<dyn JobStore>) -> Engine<Fake> {
        Engine::start_with_store(EngineConfig::default(), fake.clone(), store).expect("a good store")
    }

    async fn outcome(engine: &Engine<Fake>, job_id: &str) -> Arc<Outcome> {
        match engine.await_job(job_id, None).await.expect("the job is known") {
            Awaited::Ended(outcome) => outcome,
            Awaited::TimedOut => panic!("waited without a time-out"),
        }
    }

    /// Stops an engine whose jobs stand at the gate, as a drain does when its time is over.
    async fn suspend(engine: Engine<Fake>, fake: &Fake, jobs: usize) {
        assert_eq!(engine.drain(Duration::ZERO).await.suspended, jobs);
        fake.prove.open();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn jobs_go_on_and_proofs_are_found_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let first = Fake::new(1);
        let engine = start(&first, store(folder.path()));
        let done = engine.submit(submission("done", "tag=1")).await.unwrap();
        let stopped = engine.submit(submission("stopped", "tag=2 parts=3 hold-prove")).await.unwrap();
        let cancelled = engine.submit(submission("cancelled", "tag=3 hold-prove")).await.unwrap();
        outcome(&engine, &done.job_id).await;
        first.prove.arrived(1);
        assert_eq!(engine.cancel(&cancelled.job_id), Ok(true));
        suspend(engine, &first, 1).await;

        let second = Fake::new(1);
        second.prove.open();
        let engine = start(&second, store(folder.path()));
        assert_eq!(outcome(&engine, &stopped.job_id).await.proof[..], [2; 576]);
        assert_eq!(outcome(&engine, &done.job_id).await.proof[..], [1; 192]);
        assert_eq!(outcome(&engine, &cancelled.job_id).await.status, JobStatus::Cancelled);
        let again = engine.submit(submission("done", "tag=1")).await.unwrap();
        assert_eq!(again.job_id, done.job_id);
        let new = engine.submit(submission("new", "tag=4")).await.unwrap();
        assert!(![&done, &stopped, &cancelled].iter().any(|old| old.job_id == new.job_id));
        assert!(!second.proven.lock().unwrap().iter().any(|(tag, _)| [1, 3].contains(tag)), "proven once");
        let metrics = engine.metrics_text();
        assert!(metrics.contains("cuzk_store_jobs_found_total{outcome=\"resumed\"} 1\n"), "{metrics}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_damaged_payload_fails_its_job_alone() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::new(1);
        let engine = start(&fake, store(folder.path()));
        let damaged = engine.submit(submission("damaged", "tag=1 hold-prove")).await.unwrap();
        let whole = engine.submit(submission("whole", "tag=2 hold-prove")).await.unwrap();
        suspend(engine, &fake, 2).await;
        let payloads = std::fs::read_dir(folder.path().join("spool")).unwrap().map(|entry| entry.unwrap().path());
        let first = payloads.min().unwrap();
        std::fs::write(first, "tag=9 hold-prove").unwrap();

        let engine = start(&fake, store(folder.path()));
        let failed = outcome(&engine, &damaged.job_id).await;
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.error.contains("is damaged: submit the job again"), "{}", failed.error);
        assert_eq!(outcome(&engine, &whole.job_id).await.proof[..], [2; 192]);
        let again = engine.submit(submission("damaged", "tag=1 hold-prove")).await.unwrap();
        assert_eq!(outcome(&engine, &again.job_id).await.proof[..], [1; 192]);
    }

    /// A store whose disk is full.
    struct Full;

    impl JobStore for Full {
        fn recover(&self) -> Result<Recovered, StoreError> {
            Ok(Recovered { ids: "full".to_owned(), next_key: 1, unfinished: Vec::new(), finished: Vec::new() })
        }

        fn request(&self, _: JobKey) -> Result<ProofRequest, StoreError> {
            Err(full())
        }

        fn accept(&self, job: &KeptJob, _: &ProofRequest) -> Result<(), StoreError> {
            // The first job had room.
            if job.key == JobKey(1) { Ok(()) } else { Err(full()) }
        }

        fn record(&self, _: &[StoreEvent]) -> Result<(), StoreError> {
            Err(full())
        }

        fn status(&self) -> StoreStatus {
            StoreStatus { trouble: Some(full().to_string()), ..StoreStatus::default() }
        }
    }

    fn full() -> StoreError {
        StoreError { kind: StoreErrorKind::Full, reason: "/store: no space".to_owned() }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_disk_refuses_new_jobs_and_stops_no_others() {
        let fake = Fake::new(1);
        let engine = start(&fake, Arc::new(Full));
        let running = engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap();
        fake.prove.arrived(1);
        // Also under the id of the running job, which it would supersede.
        for name in ["a", "b", ""] {
            let refused = engine.submit(submission(name, "tag=2")).await;
            assert_eq!(refused, Err(EngineError::NotKept(full())));
        }
        assert!(engine.status().warnings.iter().any(|warning| warning.contains("/store: no space")));
        fake.prove.open();
        assert_eq!(outcome(&engine, &running.job_id).await.proof[..], [1; 192]);
        assert!(!fake.proven.lock().unwrap().contains(&(2, 0)));
    }
}
