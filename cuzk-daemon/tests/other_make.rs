//! The program's client commands against a daemon of another make, which knows the methods of the public protocol only.

use std::process::Command;

use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, CancelProofRequest, CancelProofResponse, EvictSrsRequest, EvictSrsResponse,
    GetJobRequest, GetMetricsRequest, GetMetricsResponse, GetStatusRequest, GetStatusResponse, GetTimelineRequest,
    GetTimelineResponse, Job, ListJobsRequest, ListJobsResponse, PreloadSrsRequest, PreloadSrsResponse, ProveRequest,
    ProveResponse, SubmitProofRequest, SubmitProofResponse, WatchJobRequest, WatchStatusRequest, WatchStatusResponse,
    await_proof_response::Status as Ended,
    proving_engine_server::{ProvingEngine, ProvingEngineServer},
};
use tokio_stream::{Empty, wrappers::TcpListenerStream};
use tonic::{Request, Response, Status, transport::Server};

struct OtherMake;

type Answer<T> = Result<Response<T>, Status>;

fn unimplemented<T>() -> Answer<T> {
    Err(Status::unimplemented("no such method"))
}

#[tonic::async_trait]
impl ProvingEngine for OtherMake {
    async fn submit_proof(&self, _: Request<SubmitProofRequest>) -> Answer<SubmitProofResponse> {
        Ok(Response::new(SubmitProofResponse { job_id: "other-1".to_owned(), ..SubmitProofResponse::default() }))
    }

    async fn await_proof(&self, request: Request<AwaitProofRequest>) -> Answer<AwaitProofResponse> {
        let job_id = request.into_inner().job_id;
        let status = Ended::Completed.into();
        Ok(Response::new(AwaitProofResponse { job_id, status, proof: vec![7; 192].into(), ..Default::default() }))
    }

    async fn prove(&self, _: Request<ProveRequest>) -> Answer<ProveResponse> {
        unimplemented()
    }

    async fn cancel_proof(&self, _: Request<CancelProofRequest>) -> Answer<CancelProofResponse> {
        unimplemented()
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        Ok(Response::new(GetStatusResponse { total_proofs_completed: 3, ..GetStatusResponse::default() }))
    }

    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Answer<GetMetricsResponse> {
        unimplemented()
    }

    async fn preload_srs(&self, _: Request<PreloadSrsRequest>) -> Answer<PreloadSrsResponse> {
        unimplemented()
    }

    async fn evict_srs(&self, _: Request<EvictSrsRequest>) -> Answer<EvictSrsResponse> {
        unimplemented()
    }

    async fn list_jobs(&self, _: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        unimplemented()
    }

    async fn get_job(&self, _: Request<GetJobRequest>) -> Answer<Job> {
        unimplemented()
    }

    async fn get_timeline(&self, _: Request<GetTimelineRequest>) -> Answer<GetTimelineResponse> {
        unimplemented()
    }

    type WatchJobStream = Empty<Result<Job, Status>>;

    async fn watch_job(&self, _: Request<WatchJobRequest>) -> Answer<Self::WatchJobStream> {
        unimplemented()
    }

    type WatchStatusStream = Empty<Result<WatchStatusResponse, Status>>;

    async fn watch_status(&self, _: Request<WatchStatusRequest>) -> Answer<Self::WatchStatusStream> {
        unimplemented()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prove_and_status_work_and_the_rest_says_what_is_missing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = Server::builder().add_service(ProvingEngineServer::new(OtherMake));
    let serving = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let c1 = dir.path().join("c1.json");
    std::fs::write(&c1, r#"{"registered_proof":"StackedDrg2KiBV1_1"}"#).expect("writable");
    let c1 = c1.to_str().expect("UTF-8").to_owned();

    let cuzk = move |words: Vec<String>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"));
        command.args(words).env_clear().env("CUZK_ADDR", &address);
        async { tokio::task::spawn_blocking(move || command.output()).await.expect("not cancelled").expect("starts") }
    };
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut prove = words("prove --miner 1000 --sector 7 --hex --c1");
    prove.push(c1);
    let proved = cuzk(prove).await;
    assert_eq!(proved.status.code(), Some(0), "{proved:?}");
    assert_eq!(String::from_utf8_lossy(&proved.stdout).trim(), "07".repeat(192));
    let status = cuzk(words("status")).await;
    assert!(String::from_utf8_lossy(&status.stdout).contains("3 completed, 0 failed"), "{status:?}");
    for line in ["watch", "jobs list", "jobs show other-1"] {
        let refused = cuzk(words(line)).await;
        assert_eq!(refused.status.code(), Some(4), "{line}: {refused:?}");
        assert!(refused.stdout.is_empty(), "{line}");
    }
    serving.abort();
}
