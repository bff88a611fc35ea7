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
    core::job::JobKey,
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
            Ok(task) => {
                if let Some(live) = state.live.get_mut(&key) {
                    live.task = Some(Arc::new(task));
                    state.core.release(key);
                }
            }
            Err(reason) => state.core.give_up(key, format!("resumed after a restart: {reason}"), now),
        });
    }
    log::resumed(count, begun.elapsed());
}

fn read_again<P: Proving>(shared: &Arc<Shared<P>>, key: JobKey) -> Result<P::Task, String> {
    let keeper = shared.keeper.as_ref().ok_or("there is no store")?;
    let request = keeper.store.request(key).map_err(|error| error.to_string())?;
    admission::check(shared, &request).map_err(|error| error.to_string())
}

/// The ids that a store's jobs have.
pub(super) fn ids(recovered: &Recovered) -> JobIds {
    JobIds::of_store(recovered.ids.clone())
}
