//! What watchers see, over real sockets.

use std::time::Duration;

use cuzk_proto::v1::{
    CancelProofRequest, GetJobRequest, GetStatusRequest, Job, JobState, ListJobsRequest, WatchJobRequest,
    WatchStatusRequest, gpu_status::Health, partition::Stage,
};
use tokio_stream::StreamExt as _;
use tonic::{Code, Streaming};

use super::{
    ServeOptions,
    tests::{Client, Server, submit},
};
use crate::EngineConfig;

async fn start(client: &mut Client, request_id: &str, words: &str) -> String {
    client.submit_proof(submit(request_id, words)).await.unwrap().into_inner().job_id
}

async fn watch(client: &mut Client, job_id: &str) -> Streaming<Job> {
    client.watch_job(WatchJobRequest { job_id: job_id.to_owned() }).await.unwrap().into_inner()
}

/// The first picture that is as wanted.
async fn until(pictures: &mut Streaming<Job>, wanted: impl Fn(&Job) -> bool) -> Job {
    loop {
        let job = pictures.next().await.expect("it comes before the end").unwrap();
        if wanted(&job) {
            return job;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_job_is_seen_to_its_end() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let request = cuzk_proto::v1::SubmitProofRequest {
        miner_id: 1000,
        sector_number: 7,
        ..submit("miner/7", "tag=3 parts=2 hold-prove")
    };
    let job_id = client.submit_proof(request).await.unwrap().into_inner().job_id;
    let mut pictures = watch(&mut client, &job_id).await;
    let proving = until(&mut pictures, |job| job.partitions.iter().any(|p| p.phase == "lock_hold")).await;
    assert_eq!((proving.miner_id, proving.sector_number, proving.request_id.as_str()), (1000, 7, "miner/7"));
    assert_eq!((proving.state(), proving.circuit_id.as_str()), (JobState::JobRunning, "porep-2k"));
    let at = proving.partitions.iter().find(|p| p.stage() == Stage::Proving).unwrap();
    assert_eq!((at.device.as_str(), at.attempt), ("dev-0", 1));
    assert!(at.since_unix_ms > 1_600_000_000_000, "{at:?}");

    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    let gpu = &status.gpus[0];
    assert_eq!((gpu.uuid.as_str(), gpu.health(), gpu.workers), ("dev-0", Health::Available, 1));
    assert!(gpu.busy_workers.iter().any(|w| w.job_id == job_id && w.phase == "lock_hold"), "{gpu:?}");
    let witness = status.memory.as_ref().unwrap().uses.iter().find(|u| u.name == "witness").unwrap();
    assert!(witness.used_bytes > 0);

    server.fake.prove.open();
    let last = until(&mut pictures, |job| job.state() == JobState::JobCompleted).await;
    assert!(pictures.next().await.is_none(), "the end is told once");
    assert_eq!(last.stages.unwrap().proved, 2);
    assert_eq!((last.devices.as_slice(), last.phases[0].name.as_str()), (&["dev-0".to_owned()][..], "lock_hold"));
    assert!(last.ended_unix_ms >= last.started_unix_ms && last.started_unix_ms >= last.accepted_unix_ms);
    // A job that has ended is shown once.
    let again: Vec<_> = watch(&mut client, &job_id).await.collect().await;
    assert_eq!(again.into_iter().map(Result::unwrap).collect::<Vec<_>>(), std::slice::from_ref(&last));
    assert_eq!(client.get_job(GetJobRequest { job_id }).await.unwrap().into_inner(), last);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_at_once_still_ends_for_its_watcher() {
    let config = EngineConfig { retain_finished: 0, ..EngineConfig::default() };
    let server = Server::start_with(config, ServeOptions::default()).await;
    let mut client = server.client().await;
    let job_id = start(&mut client, "a", "tag=1 hold-prove").await;
    let mut pictures = watch(&mut client, &job_id).await;
    server.fake.prove.arrived(1);
    client.cancel_proof(CancelProofRequest { job_id: job_id.clone() }).await.unwrap();
    let last = until(&mut pictures, |job| job.state() == JobState::JobCancelled).await;
    assert_eq!(last.error_message, "cancelled by a client");
    assert!(pictures.next().await.is_none());
    assert_eq!(client.get_job(GetJobRequest { job_id }).await.unwrap_err().code(), Code::NotFound);
    server.fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_bounded_and_say_so() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let held = start(&mut client, "held", "tag=1 hold-prove").await;
    server.fake.prove.arrived(1);
    let cancelled = start(&mut client, "cancelled", "tag=2 hold-prove").await;
    client.cancel_proof(CancelProofRequest { job_id: cancelled.clone() }).await.unwrap();
    let all = client.list_jobs(ListJobsRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.jobs.iter().map(|job| &job.job_id).collect::<Vec<_>>(), [&held, &cancelled]);
    assert!(!all.truncated);
    let one = client.list_jobs(ListJobsRequest { limit: 1, ..ListJobsRequest::default() }).await.unwrap().into_inner();
    assert_eq!((one.jobs.len(), one.truncated), (1, true));
    let states = vec![JobState::JobCancelled.into()];
    let some = client.list_jobs(ListJobsRequest { states, ..ListJobsRequest::default() }).await.unwrap().into_inner();
    assert_eq!(some.jobs.iter().map(|job| &job.job_id).collect::<Vec<_>>(), [&cancelled]);
    let wrong = ListJobsRequest { states: vec![99], ..ListJobsRequest::default() };
    assert_eq!(client.list_jobs(wrong).await.unwrap_err().code(), Code::InvalidArgument);
    for unknown in ["", "nonsense"] {
        let asked = client.watch_job(WatchJobRequest { job_id: unknown.to_owned() }).await;
        assert_eq!(asked.unwrap_err().code(), Code::NotFound);
    }
    server.fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_the_daemon_ends_with_its_drain() {
    let mut server = Server::start().await;
    let mut client = server.client().await;
    let job_id = start(&mut client, "a", "tag=1 hold-prove").await;
    server.fake.prove.arrived(1);
    let mut pictures = client.watch_status(WatchStatusRequest { jobs: 10 }).await.unwrap().into_inner();
    let first = pictures.next().await.unwrap().unwrap();
    assert_eq!(first.jobs[0].job_id, job_id);
    assert_eq!(first.status.unwrap().state, "serving");
    server.begin_stop();
    let mut draining = loop {
        let picture = pictures.next().await.unwrap().unwrap();
        if picture.status.as_ref().unwrap().state == "draining" {
            break picture;
        }
    };
    assert_eq!(draining.jobs[0].state(), JobState::JobRunning);
    server.fake.prove.open();
    while let Some(picture) = pictures.next().await {
        draining = picture.unwrap();
    }
    assert_eq!(draining.jobs[0].state(), JobState::JobCompleted, "the last picture shows the end");
    assert_eq!(server.served.await.unwrap().unwrap().cancelled, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_or_sleeps_costs_one_picture() {
    let server = Server::start().await;
    let mut client = server.client().await;
    start(&mut client, "a", "tag=1 hold-prove").await;
    server.fake.prove.arrived(1);
    let before = server.engine.watchers();
    let gone = client.watch_status(WatchStatusRequest { jobs: 0 }).await.unwrap().into_inner();
    let sleeping = client.watch_status(WatchStatusRequest { jobs: 0 }).await.unwrap().into_inner();
    assert_eq!(server.engine.watchers(), before + 2);
    drop(gone);
    // Its task ends although nothing changes that it could be told of.
    while server.engine.watchers() > before + 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(sleeping);
    while server.engine.watchers() > before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.fake.prove.open();
}

/// The heart of a slow reader's bound: while nobody reads, no picture is made beyond the one that waits.
#[tokio::test]
async fn no_picture_is_made_ahead_of_its_reader() {
    let fake = crate::engine::testing::Fake::new(1);
    let engine = crate::Engine::start(EngineConfig::default(), fake);
    let mut pictures = super::streams::of_engine(engine.clone(), engine.watch(), 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    for _ in 0..100 {
        engine.announce(crate::Lifecycle::Starting("one".to_owned()));
        engine.announce(crate::Lifecycle::Serving);
    }
    let first = pictures.next().await.unwrap().unwrap();
    // Made before all those changes, or after them; the next is made after it was read, and shows the latest.
    let next = pictures.next().await.unwrap().unwrap();
    assert!(next.revision > first.revision);
    assert_eq!(next.status.unwrap().state, "serving");
}
