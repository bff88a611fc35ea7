//! The engine with threads and a fake prover. Gates decide what happens when; no test depends on how long a thing takes.

use std::{sync::Arc, time::Duration};

use cuzk_synth::circuit::{CircuitId, SectorSize};

use super::{
    Awaited, Engine, EngineError, Lifecycle,
    testing::{Fake, request, submission, urgent},
};
use crate::{
    EngineConfig, Submission,
    core::{
        Refused,
        job::{JobStatus, Outcome, Priority},
    },
    memory::{Shares, Use},
    proving::Refusal,
};

const SMALL: CircuitId = CircuitId::porep(SectorSize::Kib2);
const LARGE: CircuitId = CircuitId::porep(SectorSize::Gib32);

fn config() -> EngineConfig {
    EngineConfig { synthesis_threads: 1, attempts: 2, ..EngineConfig::default() }
}

fn start(fake: &Arc<Fake>) -> Engine<Fake> {
    Engine::start(config(), fake.clone())
}

fn large(request_id: &str, words: &str) -> Submission {
    let mut submission = submission(request_id, words);
    submission.request.sector_size = SectorSize::Gib32.bytes();
    submission
}

/// Waits without bound: a test that hangs has failed.
async fn outcome(engine: &Engine<Fake>, job_id: &str) -> Arc<Outcome> {
    match engine.await_job(job_id, None).await.expect("the job is known") {
        Awaited::Ended(outcome) => outcome,
        Awaited::TimedOut => panic!("waited without a time-out"),
    }
}

/// Submits, and waits for the end.
async fn run(engine: &Engine<Fake>, words: &str) -> Arc<Outcome> {
    engine.prove(submission("", words)).await.expect("accepted").1
}

fn unfinished(engine: &Engine<Fake>) -> u32 {
    engine.status().queues.iter().map(|(_, pending, running)| pending + running).sum()
}

/// Lets the other tasks run until something is so. The test fails by never ending.
async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_of_several_partitions() {
    let fake = Fake::new(2);
    let engine = start(&fake);
    let submitted = engine.submit(submission("sector 7", "tag=7 parts=10")).await.unwrap();
    let outcome = outcome(&engine, &submitted.job_id).await;
    assert_eq!(outcome.status, JobStatus::Completed, "{}", outcome.error);
    assert_eq!(outcome.proof[..], [7; 1920]);
    assert!(!outcome.devices.is_empty());
    assert_eq!(outcome.timings.compute, Duration::from_millis(70));
    assert_eq!((engine.status().completed, unfinished(&engine)), (1, 0));
    assert_eq!(*fake.loads.lock().unwrap(), [SMALL]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_fails_its_own_job_with_its_reason() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let twice = |reason: &str| format!("partition 0 of 1: attempt 1: {reason}; attempt 2: {reason}");
    let cases = [
        ("synth-error", "partition 0 of 1: a synthesis thread: constraint 7 is not satisfied"),
        ("synth-panic", &twice("a synthesis thread: synthesis panicked: index out of bounds")),
        ("prove-error", &twice("device dev-0: out of memory")),
        ("tag=4 prove-panic", &twice("device dev-0: the prover panicked: kernel 4 fell over")),
        ("verify-panic", &twice("device dev-0: verification panicked: pairing fell over")),
        (
            "whole-bad",
            "every partition's proof is right, but not the proof as a whole: it does not verify (2 attempts)",
        ),
    ];
    for (words, error) in cases {
        let failed = run(&engine, words).await;
        assert_eq!((failed.status, failed.error.as_str()), (JobStatus::Failed, error));
        assert!(failed.proof.is_empty());
        // The threads, and the lock, survive.
        assert_eq!(run(&engine, &format!("tag=9 after {words}").replace(words, "it")).await.proof[..], [9; 192]);
    }
    assert_eq!(engine.status().failed, cases.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_partition_alone_is_proven_again() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let done = run(&engine, "tag=3 parts=3 bad=1 once").await;
    assert_eq!((done.status, &done.proof[..]), (JobStatus::Completed, &[3; 576][..]));
    let mut proven = fake.proven.lock().unwrap().clone();
    proven.sort_unstable();
    assert_eq!(proven, [(3, 0), (3, 1), (3, 1), (3, 2)]);
    assert!(engine.metrics_text().contains("cuzk_verify_failures_total{device=\"dev-0\"} 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_attaches_and_replays_without_being_parsed_again() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let first = engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    let second = engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap();
    assert_eq!(first.job_id, second.job_id);
    fake.prove.open();
    assert_eq!(outcome(&engine, &first.job_id).await.proof[..], [1; 192]);
    let (third, replayed) = engine.prove(submission("a", "tag=1 hold-prove")).await.unwrap();
    assert_eq!((third.job_id, &replayed.proof[..]), (first.job_id, &[1; 192][..]));
    assert_eq!((*fake.admitted.lock().unwrap(), fake.proven.lock().unwrap().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_is_tried_again_under_a_new_id() {
    let engine = start(&Fake::new(1));
    let first = engine.submit(submission("a", "synth-error")).await.unwrap();
    assert_eq!(outcome(&engine, &first.job_id).await.status, JobStatus::Failed);
    let second = engine.submit(submission("a", "synth-error")).await.unwrap();
    assert_ne!(first.job_id, second.job_id);
    assert_eq!(outcome(&engine, &second.job_id).await.status, JobStatus::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_payload_under_the_same_id_gets_its_own_proof() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    // Nobody waits for the first, somebody for the second.
    let lone = engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    let awaited = engine.submit(submission("b", "tag=2")).await.unwrap();
    let waiter = tokio::spawn({
        let (engine, id) = (engine.clone(), awaited.job_id.clone());
        async move { outcome(&engine, &id).await }
    });
    until(|| waiters(&engine, &awaited.job_id) == 1).await;
    let after_lone = engine.submit(submission("a", "tag=3")).await.unwrap();
    let after_awaited = engine.submit(submission("b", "tag=4")).await.unwrap();
    let superseded = outcome(&engine, &lone.job_id).await;
    assert_eq!(superseded.status, JobStatus::Cancelled, "although its partition is still in the prover");
    fake.prove.open();
    assert_eq!(outcome(&engine, &after_lone.job_id).await.proof[..], [3; 192]);
    assert_eq!(outcome(&engine, &after_awaited.job_id).await.proof[..], [4; 192]);
    assert_eq!(waiter.await.unwrap().proof[..], [2; 192]);
    assert!(outcome(&engine, &lone.job_id).await.proof.is_empty());
}

/// Clients that wait for a job.
fn waiters(engine: &Engine<Fake>, job_id: &str) -> usize {
    let shared = &engine.handle.shared;
    let key = shared.ids.parse(job_id).unwrap();
    shared.with(|state, _| state.live.get(&key).map_or(0, |live| live.outcome.receiver_count()))
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_wakes_everyone_and_is_idempotent() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let running = engine.submit(submission("a", "tag=1 parts=3 hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    let queued = engine.submit(submission("b", "tag=2 hold-synth")).await.unwrap();
    let waiting: Vec<_> = [&running, &running, &queued]
        .into_iter()
        .map(|job| {
            let (engine, id) = (engine.clone(), job.job_id.clone());
            tokio::spawn(async move { outcome(&engine, &id).await })
        })
        .collect();
    assert_eq!(engine.cancel(&running.job_id), Ok(true));
    assert_eq!(engine.cancel(&queued.job_id), Ok(true));
    assert_eq!(engine.cancel(&running.job_id), Ok(false));
    for waiter in waiting {
        let cancelled = waiter.await.unwrap();
        assert_eq!((cancelled.status, cancelled.error.as_str()), (JobStatus::Cancelled, "cancelled by a client"));
    }
    assert_eq!(unfinished(&engine), 0);
    fake.prove.open();
    fake.synth.open();
    // The late partition of the cancelled job changes nothing, and the prover is free again.
    assert_eq!(run(&engine, "tag=5").await.proof[..], [5; 192]);
    assert_eq!(outcome(&engine, &running.job_id).await.status, JobStatus::Cancelled);
    assert!(engine.metrics_text().contains("cuzk_partitions_total{device=\"dev-0\",outcome=\"dropped\"} 1"));
    let unknown = engine.cancel("nonsense").unwrap_err();
    assert!(matches!(unknown, EngineError::UnknownJob(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_critical_job_waits_for_one_running_partition_only() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let long = engine.submit(urgent("a", "tag=1 parts=8 hold-prove", Priority::Low)).await.unwrap();
    fake.prove.arrived(1);
    let normal = engine.submit(submission("b", "tag=2")).await.unwrap();
    let critical = engine.submit(urgent("c", "tag=3", Priority::Critical)).await.unwrap();
    assert_eq!(critical.queue_position, 0);
    // Both are synthesized, in place of partitions of the long job.
    let ready = |id: &str| {
        let shared = &engine.handle.shared;
        let key = shared.ids.parse(id).unwrap();
        shared.with(|state, _| state.handover.keys().any(|run| (run.job, run.partition) == (key, 0)))
    };
    until(|| ready(&normal.job_id) && ready(&critical.job_id)).await;
    fake.prove.open();
    outcome(&engine, &long.job_id).await;
    let order: Vec<u8> = fake.proven.lock().unwrap().iter().map(|(tag, _)| *tag).collect();
    assert_eq!(order[..3], [1, 3, 2]);
    assert_eq!(order.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_before_parsing() {
    let fake = Fake::new(1);
    let engine = Engine::start(EngineConfig { max_queued_jobs: 1, ..config() }, fake.clone());
    engine.submit(submission("a", "hold-synth")).await.unwrap();
    fake.synth.arrived(1);
    engine.submit(submission("b", "")).await.unwrap();
    let refused = engine.submit(submission("c", "")).await.unwrap_err();
    assert!(matches!(refused, EngineError::NoRoom(Refused::QueueFull { jobs: 1, limit: 1, .. })), "{refused}");
    assert_eq!((*fake.admitted.lock().unwrap(), unfinished(&engine)), (2, 2));
    fake.synth.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_queue_nothing() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let refused = engine.submit(submission("a", "invalid")).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(Refusal::InvalidArgument { .. })), "{refused}");
    let mut absent = submission("a", "");
    absent.request.sector_size = SectorSize::Gib64.bytes();
    let refused = engine.submit(absent).await.unwrap_err();
    assert!(refused.to_string().contains("/params/porep-64g.params is missing"), "{refused}");
    let fell = engine.submit(submission("a", "admit-panic")).await.unwrap_err();
    assert_eq!(fell, EngineError::Internal("checking the request panicked: parser fell over".into()));
    assert_eq!(unfinished(&engine), 0);
    assert_eq!(run(&engine, "tag=1").await.status, JobStatus::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_budget_is_refused() {
    let fake = Fake::new(1);
    let engine = Engine::start(EngineConfig { memory: Shares::of(4000, 1000), ..config() }, fake);
    let refused = engine.submit(submission("a", "")).await.unwrap_err();
    assert!(matches!(refused, EngineError::NoRoom(Refused::NeverFits { work: 2000, .. })), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_has_an_end() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let job = engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap();
    let waited = engine.await_job(&job.job_id, Some(Duration::from_millis(1))).await;
    assert_eq!(waited, Ok(Awaited::TimedOut));
    assert_eq!(waiters(&engine, &job.job_id), 0);
    fake.prove.open();
    assert_eq!(outcome(&engine, &job.job_id).await.status, JobStatus::Completed);
    let forever = Some(Duration::MAX);
    assert!(matches!(engine.await_job(&job.job_id, forever).await, Ok(Awaited::Ended(_))));
    assert!(matches!(engine.await_job("", None).await, Err(EngineError::UnknownJob(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_prove_is_cancelled() {
    let fake = Fake::new(1);
    let engine = Engine::start(EngineConfig { abandon_grace: Duration::ZERO, ..config() }, fake.clone());
    let client = tokio::spawn({
        let engine = engine.clone();
        async move { engine.prove(submission("a", "tag=1 hold-prove")).await.map(|_| ()) }
    });
    fake.prove.arrived(1);
    let shared = engine.handle.shared.clone();
    let job_id = shared.with(|state, _| shared.ids.text(*state.live.keys().next().unwrap()));
    client.abort();
    let abandoned = outcome_without_waiting(&engine, &job_id).await;
    assert!(abandoned.error.starts_with("abandoned"), "{}", abandoned.error);
    fake.prove.open();
}

/// A look that does not count as waiting, again and again.
async fn outcome_without_waiting(engine: &Engine<Fake>, job_id: &str) -> Arc<Outcome> {
    let shared = &engine.handle.shared;
    let key = shared.ids.parse(job_id).unwrap();
    let look = || shared.with(|state, _| state.core.outcome(key));
    until(|| look().is_some()).await;
    look().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn within_the_grace_the_client_finds_its_job_again() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let client = tokio::spawn({
        let engine = engine.clone();
        async move { engine.prove(submission("a", "tag=1 hold-prove")).await.map(|_| ()) }
    });
    fake.prove.arrived(1);
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    fake.prove.open();
    let (_, found) = engine.prove(submission("a", "tag=1 hold-prove")).await.unwrap();
    assert_eq!(found.proof[..], [1; 192]);
    assert_eq!(fake.proven.lock().unwrap().len(), 1, "proven once");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_load_once_and_hold_up_no_other_circuit() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let first = engine.submit(large("a", "tag=1")).await.unwrap();
    let second = engine.submit(large("b", "tag=2")).await.unwrap();
    fake.load.arrived(1);
    assert_eq!(run(&engine, "tag=3").await.proof[..], [3; 192], "while the others' parameters are being loaded");
    let preload = tokio::spawn({
        let engine = engine.clone();
        async move { engine.preload(LARGE).await }
    });
    let loading = "the parameters of porep-32g are being loaded: 25 %".to_owned();
    assert!(engine.status().warnings.contains(&loading));
    let evicted = engine.evict(LARGE);
    assert_eq!((evicted.in_use, evicted.cancels_load), (2, false), "two jobs wait for them");
    fake.load.open();
    for job in [&first, &second] {
        assert_eq!(outcome(&engine, &job.job_id).await.status, JobStatus::Completed);
    }
    assert!(preload.await.unwrap().is_ok());
    assert!(engine.preload(LARGE).await.unwrap().already_loaded);
    assert_eq!(engine.status().hot, [LARGE].into());
    assert_eq!(*fake.loads.lock().unwrap(), [LARGE, SMALL]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_cancels_a_load_that_no_job_waits_for() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let preload = tokio::spawn({
        let engine = engine.clone();
        async move { engine.preload(LARGE).await }
    });
    fake.load.arrived(1);
    let evicted = engine.evict(LARGE);
    assert_eq!((evicted.was_loaded, evicted.in_use, evicted.cancels_load), (false, 0, true));
    fake.load.open();
    let error = preload.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "loading the parameters of porep-32g: cancelled");
    assert!(engine.status().params.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preload_that_fails_says_so() {
    let engine = start(&Fake::new(1));
    let absent = engine.preload(CircuitId::porep(SectorSize::Mib512)).await.unwrap_err();
    assert!(matches!(absent, EngineError::Refused(Refusal::FailedPrecondition(_))), "{absent}");
    let broken = engine.preload(CircuitId::porep(SectorSize::Mib8)).await.unwrap_err();
    assert_eq!(broken.to_string(), "loading the parameters of porep-8m: digest mismatch");
    assert!(engine.status().params.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn evicted_parameters_leave_memory_after_the_last_job() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    assert!(!engine.preload(SMALL).await.unwrap().already_loaded);
    let job = engine.submit(submission("a", "hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    assert_eq!(engine.status().params, [(SMALL, 1000, 1)]);
    let evicted = engine.evict(SMALL);
    assert_eq!((evicted.was_loaded, evicted.freed_bytes, evicted.in_use), (true, 0, 1));
    assert_eq!(fake.params_alive(), 1);
    fake.prove.open();
    outcome(&engine, &job.job_id).await;
    // The prover lets go of its share a moment after the job's end.
    until(|| fake.params_alive() == 0).await;
    assert!(engine.status().params.is_empty());
    assert!(!engine.evict(SMALL).was_loaded);
    engine.preload(SMALL).await.unwrap();
    assert_eq!(engine.evict(SMALL).freed_bytes, 1000);
    until(|| fake.params_alive() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_what_was_accepted() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let jobs = [
        engine.submit(submission("a", "tag=1 hold-prove")).await.unwrap(),
        engine.submit(submission("b", "tag=2")).await.unwrap(),
    ];
    fake.prove.arrived(1);
    let drain = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drain(Duration::from_secs(3600)).await }
    });
    engine.lifecycle().wait_for(|l| *l == Lifecycle::Draining).await.unwrap();
    let refused = engine.submit(submission("c", "tag=3")).await.unwrap_err();
    assert_eq!(refused, EngineError::NoRoom(Refused::Draining));
    fake.prove.open();
    assert_eq!(drain.await.unwrap().cancelled, 0);
    for job in jobs {
        assert_eq!(outcome(&engine, &job.job_id).await.status, JobStatus::Completed);
    }
    engine.announce(Lifecycle::Serving);
    assert_eq!(engine.status().lifecycle, Lifecycle::Draining, "there is no way back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_cancels_what_is_left_at_its_deadline() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let job = engine.submit(submission("a", "hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    assert_eq!(engine.drain(Duration::ZERO).await.cancelled, 1);
    let cancelled = outcome(&engine, &job.job_id).await;
    assert_eq!(cancelled.error, "the daemon is shutting down: submit it again");
    fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_engine_ends_its_threads() {
    let fake = Fake::new(2);
    let engine = start(&fake);
    run(&engine, "tag=1").await;
    drop(engine);
    // Each thread held the fake.
    until(|| Arc::strong_count(&fake) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_metrics_answer_while_a_prover_is_stuck() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    engine.announce(Lifecycle::Starting("loading".into()));
    let running = engine.submit(submission("a", "parts=3 hold-prove")).await.unwrap();
    fake.prove.arrived(1);
    engine.submit(submission("b", "")).await.unwrap();
    let status = engine.status();
    assert_eq!(status.devices[0].job_id, running.job_id);
    assert!(status.warnings.contains(&"starting: loading".to_owned()));
    assert!(status.warnings.contains(&"fake proofs".to_owned()));
    assert_eq!(unfinished(&engine), 2);
    assert!(engine.metrics_text().contains("cuzk_jobs_accepted_total{kind=\"porep\"} 2"));
    fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metrics_line_is_well_formed() {
    let engine = start(&Fake::new(2));
    run(&engine, "tag=1 parts=2").await;
    run(&engine, "synth-error").await;
    let text = engine.metrics_text();
    let mut family = "";
    let mut families = std::collections::HashSet::new();
    let mut seen = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap();
            assert!(families.insert(family.to_owned()), "{family} comes once");
        } else if !line.starts_with("# TYPE ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(name.starts_with(family), "{line} under {family}");
            assert!(seen.insert(name.to_owned()), "{line} comes once");
        }
    }
    assert!(text.contains("cuzk_jobs_finished_total{kind=\"porep\",outcome=\"completed\"} 1\n"));
    assert!(text.contains("cuzk_jobs_finished_total{kind=\"porep\",outcome=\"failed\"} 1\n"));
    assert!(text.contains("cuzk_phase_seconds_count{phase=\"lock_hold\"} 2\n"));
    assert!(text.contains("cuzk_job_seconds_bucket{kind=\"porep\",le=\"+Inf\"} 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_each_get_their_own_proof() {
    let engine = Engine::start(EngineConfig { synthesis_threads: 2, ..config() }, Fake::new(3));
    let clients: Vec<_> = (0..60_u8)
        .map(|n| {
            let engine = engine.clone();
            // Ids and payloads repeat.
            let (id, tag) = (n % 7, n % 20);
            tokio::spawn(async move {
                let words = format!("tag={tag} parts=3");
                let request = Submission { request: request(&words), ..submission(&format!("r{id}"), "") };
                (tag, engine.prove(request).await.unwrap().1)
            })
        })
        .collect();
    for client in clients {
        let (tag, outcome) = client.await.unwrap();
        // A waiting client is never stopped by another payload.
        assert_eq!((outcome.status, &outcome.proof[..]), (JobStatus::Completed, &[tag; 576][..]));
    }
    assert_eq!(unfinished(&engine), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_partition_is_left_between_its_phases() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    fake.prove.open();
    let job = engine.submit(submission("a", "until-stopped")).await.unwrap();
    fake.prove.arrived(1);
    assert_eq!(engine.cancel(&job.job_id), Ok(true));
    // The only prover is free again, and what it was at came to nothing.
    assert_eq!(run(&engine, "tag=1").await.proof[..], [1; 192]);
    assert_eq!(outcome(&engine, &job.job_id).await.status, JobStatus::Cancelled);
    assert!(engine.metrics_text().contains("outcome=\"dropped\"} 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_goes_on_while_its_proof_is_verified() {
    let fake = Fake::new(1);
    let engine = start(&fake);
    let first = engine.submit(submission("a", "tag=1 hold-verify")).await.unwrap();
    fake.verify.arrived(1);
    // The only prover of the only device makes another job's proof, and what the first held is free but for its proof.
    assert_eq!(run(&engine, "tag=2").await.proof[..], [2; 192]);
    assert_eq!(engine.budget().used_for(Use::Witness), 0);
    assert_eq!(unfinished(&engine), 1, "nothing is returned that is not verified");
    fake.verify.open();
    assert_eq!(outcome(&engine, &first.job_id).await.proof[..], [1; 192]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_reserved_is_given_back() {
    let fake = Fake::new(2);
    let engine = start(&fake);
    for words in ["tag=1 parts=4", "tag=2 parts=2 bad=1 once", "prove-panic", "synth-error"] {
        run(&engine, words).await;
    }
    let budget = engine.budget();
    until(|| budget.used_for(Use::Witness) == 0 && budget.used_for(Use::Queue) == 0).await;
    assert_eq!(budget.used_for(Use::Params), 1000, "the parameters stay");
    engine.evict(SMALL);
    until(|| budget.used() == 0).await;
}
