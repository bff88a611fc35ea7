//! The service over real sockets, with the generated client.

mod access;

use std::{path::PathBuf, sync::Arc};

use cuzk_proto::v1::{
    AwaitProofRequest, CancelProofRequest, EvictSrsRequest, GetMetricsRequest, GetStatusRequest, PreloadSrsRequest,
    ProofKind, ProveRequest, SubmitProofRequest, await_proof_response::Status as Ended,
    proving_engine_client::ProvingEngineClient,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_stream::StreamExt as _;
use tonic::{
    Code,
    transport::{Channel, Endpoint, Uri},
};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use super::{ServeError, ServeOptions, serve};
use crate::{
    EngineConfig,
    engine::{DrainReport, Engine, testing::Fake},
    memory::Shares,
};

/// A server on a TCP and a unix socket.
pub(super) struct Server {
    pub(super) fake: Arc<Fake>,
    pub(super) engine: Engine<Fake>,
    address: String,
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    pub(super) served: JoinHandle<Result<DrainReport, ServeError>>,
    _directory: tempfile::TempDir,
}

pub(super) type Client = ProvingEngineClient<Channel>;

impl Server {
    pub(super) async fn start() -> Self {
        Self::start_with(EngineConfig::default(), ServeOptions::default()).await
    }

    pub(super) async fn start_with(config: EngineConfig, options: ServeOptions) -> Self {
        let fake = Fake::new(1);
        let engine = Engine::start(config, fake.clone());
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("cuzk.sock");
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", tcp.local_addr().unwrap());
        let listeners = vec![tcp.into(), UnixListener::bind(&socket).unwrap().into()];
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { drop(stopped.await) };
        let served = tokio::spawn(serve(engine.clone(), listeners, options, shutdown));
        Self { fake, engine, address, socket, stop: Some(stop), served, _directory: directory }
    }

    async fn channel(&self) -> Channel {
        Endpoint::new(self.address.clone()).unwrap().connect().await.unwrap()
    }

    pub(super) async fn client(&self) -> Client {
        ProvingEngineClient::new(self.channel().await).max_decoding_message_size(256 << 20)
    }

    async fn unix_client(&self) -> Client {
        let socket = self.socket.clone();
        let connect = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        ProvingEngineClient::new(endpoint.connect_with_connector(connect).await.unwrap())
    }

    pub(super) fn begin_stop(&mut self) {
        self.stop.take().expect("once").send(()).expect("it serves");
    }
}

pub(super) fn submit(request_id: &str, words: &str) -> SubmitProofRequest {
    SubmitProofRequest {
        request_id: request_id.to_owned(),
        proof_kind: ProofKind::PorepSealCommit.into(),
        sector_size: 2048,
        vanilla_proof: words.to_owned().into(),
        ..SubmitProofRequest::default()
    }
}

fn prove(request_id: &str, words: &str) -> ProveRequest {
    ProveRequest { submit: Some(submit(request_id, words)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_job_over_tcp_and_unix() {
    let server = Server::start().await;
    for (n, mut client) in [server.client().await, server.unix_client().await].into_iter().enumerate() {
        let words = format!("tag={} parts=10", n + 1);
        let job = client.submit_proof(submit("[miner 1] 7", &words)).await.unwrap().into_inner();
        assert_eq!(job.assigned_gpu, "dev-0");
        let await_request = AwaitProofRequest { job_id: job.job_id.clone(), timeout_ms: 0 };
        let done = client.await_proof(await_request.clone()).await.unwrap().into_inner();
        assert_eq!((done.status(), &done.proof[..]), (Ended::Completed, &[n as u8 + 1; 1920][..]));
        assert_eq!((done.job_id.clone(), done.devices.clone()), (job.job_id.clone(), vec!["dev-0".to_owned()]));
        assert_eq!(done.gpu_compute_ms, 70);
        // Awaiting again costs nothing and brings the same.
        assert_eq!(client.await_proof(await_request).await.unwrap().into_inner(), done);
        let cancel = CancelProofRequest { job_id: job.job_id };
        assert!(!client.cancel_proof(cancel).await.unwrap().into_inner().was_running);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prove_answers_with_the_job_id_and_the_failure() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let done = client.prove(prove("", "tag=3")).await.unwrap().into_inner().result.unwrap();
    assert_eq!((done.status(), &done.proof[..]), (Ended::Completed, &[3; 192][..]));
    assert!(!done.job_id.is_empty());
    let failed = client.prove(prove("", "synth-panic")).await.unwrap().into_inner().result.unwrap();
    assert_eq!(failed.status(), Ended::Failed, "no RPC error");
    assert!(failed.error_message.ends_with("synthesis panicked: index out of bounds"), "{}", failed.error_message);
    assert!(failed.proof.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_has_its_code_and_names_the_field() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let with = |change: fn(&mut SubmitProofRequest)| {
        let mut request = submit("a", "");
        change(&mut request);
        request
    };
    let cases = [
        (with(|r| r.proof_kind = 0), Code::InvalidArgument, "proof_kind: "),
        (with(|r| r.proof_kind = 17), Code::InvalidArgument, "proof_kind: 17"),
        (with(|r| r.proof_kind = 4), Code::Unimplemented, "winning"),
        (with(|r| r.priority = 9), Code::InvalidArgument, "priority: 9"),
        (with(|r| r.sector_size = 3), Code::InvalidArgument, "sector_size: 3 bytes"),
        (with(|r| r.sector_size = 64 << 30), Code::FailedPrecondition, "/params/porep-64g.params"),
        (with(|r| r.vanilla_proof = "invalid".into()), Code::InvalidArgument, "vanilla_proof: JSON"),
        (with(|r| r.vanilla_proof = "admit-panic".into()), Code::Internal, "parser fell over"),
    ];
    for (request, code, text) in cases {
        let refused = client.submit_proof(request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.message().contains(text), "{refused}");
    }
    let refused = client.prove(ProveRequest { submit: None }).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, "submit: is not given"));
    let unknown = AwaitProofRequest { job_id: "lost\n".to_owned(), timeout_ms: 0 };
    assert_eq!(client.await_proof(unknown).await.unwrap_err().code(), Code::NotFound);
    let unknown = CancelProofRequest { job_id: String::new() };
    assert_eq!(client.cancel_proof(unknown).await.unwrap_err().code(), Code::NotFound);
    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert!(status.queues.iter().all(|q| q.pending + q.in_progress == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_loaded_and_released_on_request() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let preload = |circuit: &str| PreloadSrsRequest { circuit_id: circuit.to_owned() };
    let evict = |circuit: &str| EvictSrsRequest { circuit_id: circuit.to_owned() };
    assert!(!client.preload_srs(preload("porep-2k")).await.unwrap().into_inner().already_loaded);
    assert!(client.preload_srs(preload("porep-2k")).await.unwrap().into_inner().already_loaded);
    let loaded = client.get_status(GetStatusRequest {}).await.unwrap().into_inner().loaded_srs;
    assert_eq!((loaded[0].circuit_id.as_str(), loaded[0].size_bytes, loaded[0].ref_count), ("porep-2k", 1000, 0));
    let evicted = client.evict_srs(evict("porep-2k")).await.unwrap().into_inner();
    assert_eq!((evicted.was_loaded, evicted.freed_bytes), (true, 1000));
    assert!(!client.evict_srs(evict("porep-2k")).await.unwrap().into_inner().was_loaded);
    assert_eq!(client.preload_srs(preload("porep-3k")).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(client.evict_srs(evict("")).await.unwrap_err().code(), Code::InvalidArgument);
    let absent = client.preload_srs(preload("porep-512m")).await.unwrap_err();
    assert_eq!(absent.code(), Code::FailedPrecondition);
    assert!(absent.message().contains("/params/porep-512m.params is missing"), "{absent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_answers_while_the_prover_is_stuck() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let job = client.submit_proof(submit("a", "parts=3 hold-prove")).await.unwrap().into_inner();
    server.fake.prove.arrived(1);
    client.submit_proof(submit("b", "tag=1")).await.unwrap();
    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.queues.iter().map(|q| q.pending + q.in_progress).sum::<u32>(), 2);
    assert_eq!(
        status.queues.iter().map(|q| q.proof_kind.as_str()).collect::<Vec<_>>(),
        ["POREP_SEAL_COMMIT", "SNAP_DEALS_UPDATE", "WINDOW_POST_PARTITION", "WINNING_POST"]
    );
    let gpu = &status.gpus[0];
    assert_eq!((&gpu.current_job_id, gpu.current_proof_kind.as_str()), (&job.job_id, "POREP_SEAL_COMMIT"));
    assert_eq!((gpu.vram_total_bytes, gpu.vram_free_bytes), (100, 50));
    assert_eq!((status.state.as_str(), status.warnings), ("serving", vec!["fake proofs".to_owned()]));
    assert_eq!(status.provable_circuits, ["porep-2k", "porep-8m", "porep-32g"]);
    let metrics = client.get_metrics(GetMetricsRequest {}).await.unwrap().into_inner().prometheus_text;
    assert!(metrics.starts_with("# HELP "));
    let waited = AwaitProofRequest { job_id: job.job_id.clone(), timeout_ms: 1 };
    assert_eq!(client.await_proof(waited).await.unwrap().into_inner().status(), Ended::Timeout);
    let cancel = CancelProofRequest { job_id: job.job_id.clone() };
    assert!(client.cancel_proof(cancel).await.unwrap().into_inner().was_running);
    let cancelled = AwaitProofRequest { job_id: job.job_id, timeout_ms: 0 };
    assert_eq!(client.await_proof(cancelled).await.unwrap().into_inner().status(), Ended::Cancelled);
    server.fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_is_not_waited_for() {
    let config = EngineConfig { abandon_grace: std::time::Duration::ZERO, ..EngineConfig::default() };
    let server = Server::start_with(config, ServeOptions::default()).await;
    let mut client = server.client().await;
    let mut watcher = server.client().await;
    let call = tokio::spawn(async move { client.prove(prove("a", "hold-prove")).await.map(|_| ()) });
    server.fake.prove.arrived(1);
    let status = watcher.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    let job_id = status.gpus[0].current_job_id.clone();
    call.abort();
    // Only a job without waiters ends here: the prover is still held.
    while server.engine.status().queues.iter().any(|(_, pending, running)| pending + running > 0) {
        tokio::task::yield_now().await;
    }
    let ended = watcher.await_proof(AwaitProofRequest { job_id, timeout_ms: 0 }).await.unwrap().into_inner();
    assert_eq!(ended.status(), Ended::Cancelled);
    assert!(ended.error_message.starts_with("abandoned"), "{}", ended.error_message);
    server.fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_of_a_call_is_honoured() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let job = client.submit_proof(submit("a", "hold-prove")).await.unwrap().into_inner();
    let mut request = tonic::Request::new(AwaitProofRequest { job_id: job.job_id, timeout_ms: 0 });
    // Only the header: the client itself must not be the one that gives up.
    request.metadata_mut().insert("grpc-timeout", "1m".parse().unwrap());
    let late = client.await_proof(request).await.unwrap_err();
    assert!(matches!(late.code(), Code::Cancelled | Code::DeadlineExceeded), "{late}");
    server.fake.prove.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_message_is_taken_and_one_over_the_limit_explained() {
    let options =
        ServeOptions { message_limit_remedy: "raise [grpc] max_message".to_owned(), ..ServeOptions::default() };
    let server = Server::start_with(EngineConfig::default(), options).await;
    let mut client = server.client().await;
    let padded = |bytes: usize| {
        let mut payload = b"tag=6".to_vec();
        payload.resize(bytes, 0);
        SubmitProofRequest { vanilla_proof: payload.into(), ..submit("a", "") }
    };
    let full = ProveRequest { submit: Some(padded(256 << 20)) };
    let done = client.prove(full).await.unwrap().into_inner().result.unwrap();
    assert_eq!((done.status(), &done.proof[..]), (Ended::Completed, &[6; 192][..]), "{}", done.error_message);
    let refused = client.submit_proof(padded(300 << 20)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let limit = format!("the limit is {} bytes; raise [grpc] max_message", 257 << 20);
    assert!(refused.message().contains(&limit), "{refused}");
    assert!(client.get_status(GetStatusRequest {}).await.is_ok(), "the same connection goes on");
    let next = server.client().await.prove(prove("b", "tag=2")).await.unwrap().into_inner();
    assert_eq!(next.result.unwrap().proof[..], [2; 192]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_messages_share_a_small_budget() {
    let memory = Shares { bodies: 2 << 20, ..EngineConfig::default().memory };
    let config = EngineConfig { memory, ..EngineConfig::default() };
    let server = Server::start_with(config, ServeOptions::default()).await;
    let client = server.client().await;
    let calls: Vec<_> = (1..=12_u8)
        .map(|n| {
            let mut client = client.clone();
            let mut payload = format!("tag={n}").into_bytes();
            payload.resize(1_500_000, 0);
            let request = SubmitProofRequest { vanilla_proof: payload.into(), ..submit(&n.to_string(), "") };
            tokio::spawn(async move { client.prove(ProveRequest { submit: Some(request) }).await })
        })
        .collect();
    for (n, call) in (1..).zip(calls) {
        let result = call.await.unwrap().unwrap().into_inner().result.unwrap();
        assert_eq!(result.proof[..], [n; 192]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_answers_with_a_retry_hint() {
    let config = EngineConfig { max_queued_jobs: 1, ..EngineConfig::default() };
    let server = Server::start_with(config, ServeOptions::default()).await;
    let mut client = server.client().await;
    client.submit_proof(submit("a", "hold-synth")).await.unwrap();
    server.fake.synth.arrived(1);
    client.submit_proof(submit("b", "")).await.unwrap();
    let full = client.submit_proof(submit("c", "")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(full.message().contains("retry in 10 s"), "{full}");
    assert_eq!(full.metadata().get("grpc-retry-pushback-ms").unwrap(), "10000");
    server.fake.synth.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_says_not_serving_finishes_and_closes() {
    let mut server = Server::start().await;
    let mut client = server.client().await;
    let mut health = HealthClient::new(server.channel().await);
    let check = |service: &str| HealthCheckRequest { service: service.to_owned() };
    let mut watch = health.watch(check("cuzk.v1.ProvingEngine")).await.unwrap().into_inner();
    while watch.next().await.unwrap().unwrap().status() != ServingStatus::Serving {}
    assert_eq!(health.check(check("")).await.unwrap().into_inner().status(), ServingStatus::Serving);
    let unknown = health.check(check("other.Service")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    let job = client.submit_proof(submit("a", "tag=1 hold-prove")).await.unwrap().into_inner();
    server.fake.prove.arrived(1);
    server.begin_stop();
    while watch.next().await.unwrap().unwrap().status() != ServingStatus::NotServing {}
    drop(watch);
    assert_eq!(health.check(check("")).await.unwrap().into_inner().status(), ServingStatus::NotServing);
    let refused = client.submit_proof(submit("b", "")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let status = server.client().await.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.state, "draining", "new connections are still answered");
    let waiting = tokio::spawn({
        let (mut client, job_id) = (client.clone(), job.job_id);
        async move { client.await_proof(AwaitProofRequest { job_id, timeout_ms: 0 }).await }
    });
    while server.engine.waiting_clients() == 0 {
        tokio::task::yield_now().await;
    }
    server.fake.prove.open();
    assert_eq!(waiting.await.unwrap().unwrap().into_inner().proof[..], [1; 192]);
    let report = server.served.await.unwrap().unwrap();
    assert_eq!(report.cancelled, 0);
    assert!(Endpoint::new(server.address).unwrap().connect().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_describes_the_service() {
    let server = Server::start().await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let ask = |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let questions = tokio_stream::iter([
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("cuzk.v1.ProvingEngine".to_owned())),
    ]);
    let mut answers = client.server_reflection_info(questions).await.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) = answers.next().await.unwrap().unwrap().message_response
    else {
        panic!("not a list of services");
    };
    let names: Vec<&str> = list.service.iter().map(|s| s.name.as_str()).collect();
    assert!(names.contains(&"cuzk.v1.ProvingEngine") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
    let Some(MessageResponse::FileDescriptorResponse(files)) = answers.next().await.unwrap().unwrap().message_response
    else {
        panic!("not a file");
    };
    assert!(!files.file_descriptor_proto.is_empty());
}

#[tokio::test]
async fn there_must_be_something_to_listen_on() {
    let engine = Engine::start(EngineConfig::default(), Fake::new(1));
    let refused = serve(engine, Vec::new(), ServeOptions::default(), std::future::pending()).await;
    assert!(matches!(refused, Err(ServeError::NoListener)));
}
