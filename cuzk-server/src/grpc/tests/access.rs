//! Tokens and limits, over real sockets.

use std::time::Duration;

use tokio::{io::AsyncReadExt as _, net::TcpStream};
use tonic::{Request, Response, Status};

use super::*;
use crate::access::{Access, Rules, Tokens};

const TOKENS: &str =
    "node submit token-to-submit-proofs\nwatch read token-to-look-around\nops admin token-for-the-operator\n";

fn options(rules: Rules) -> ServeOptions {
    ServeOptions { access: Access::new(rules), ..ServeOptions::default() }
}

async fn guarded() -> Server {
    let rules = Rules { tokens: Some(Tokens::parse(TOKENS).unwrap()), ..Rules::default() };
    Server::start_with(EngineConfig::default(), options(rules)).await
}

fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if !token.is_empty() {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    request
}

/// What each method answers to this token.
async fn codes(client: &mut Client, token: &str) -> [Code; 8] {
    fn code<T>(answer: Result<Response<T>, Status>) -> Code {
        answer.map_or_else(|status| status.code(), |_| Code::Ok)
    }
    let id = || "j-unknown".to_owned();
    [
        code(client.submit_proof(with(token, SubmitProofRequest::default())).await),
        code(client.await_proof(with(token, AwaitProofRequest { job_id: id(), timeout_ms: 1 })).await),
        code(client.prove(with(token, ProveRequest::default())).await),
        code(client.cancel_proof(with(token, CancelProofRequest { job_id: id() })).await),
        code(client.get_status(with(token, GetStatusRequest {})).await),
        code(client.get_metrics(with(token, GetMetricsRequest {})).await),
        code(client.preload_srs(with(token, PreloadSrsRequest { circuit_id: id() })).await),
        code(client.evict_srs(with(token, EvictSrsRequest { circuit_id: id() })).await),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_method_opens_to_its_scope_alone() {
    use Code::{InvalidArgument as Bad, NotFound as Lost, Ok as Good, PermissionDenied as No};
    let server = guarded().await;
    let mut client = server.client().await;
    let all = [Bad, Lost, Bad, Lost, Good, Good, Bad, Bad];
    assert_eq!(codes(&mut client, "").await, [Code::Unauthenticated; 8]);
    assert_eq!(codes(&mut client, "token-of-a-stranger").await, [Code::Unauthenticated; 8]);
    assert_eq!(codes(&mut client, "token-to-submit-proofs").await, [Bad, Lost, Bad, Lost, No, No, No, No]);
    assert_eq!(codes(&mut client, "token-to-look-around").await, [No, No, No, No, Good, Good, No, No]);
    assert_eq!(codes(&mut client, "token-for-the-operator").await, all);
    assert_eq!(codes(&mut server.unix_client().await, "").await, all, "its permissions guard the unix socket");

    let mut health = HealthClient::new(server.channel().await);
    let request = HealthCheckRequest { service: String::new() };
    assert!(health.check(request).await.is_ok(), "a load balancer has no token");
    let mut reflection = ServerReflectionClient::new(server.channel().await);
    let none = tokio_stream::empty::<ServerReflectionRequest>();
    let refused = reflection.server_reflection_info(none).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_told_when_to_come_again() {
    let server = Server::start_with(EngineConfig::default(), options(Rules { rate: 1, ..Rules::default() })).await;
    let mut client = server.client().await;
    let mut refused = None;
    for _ in 0..10 {
        refused = client.get_status(GetStatusRequest {}).await.err().or(refused);
    }
    let refused = refused.expect("ten are more than two seconds' worth");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.metadata().get("grpc-retry-pushback-ms").is_some());
    assert!(server.unix_client().await.get_status(GetStatusRequest {}).await.is_ok(), "another client");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_calls_and_connections_are_bounded() {
    let options = ServeOptions { max_calls: 1, max_connections: 2, ..ServeOptions::default() };
    let server = Server::start_with(EngineConfig::default(), options).await;
    let mut client = server.client().await;
    let job = client.submit_proof(submit("", "tag=1 parts=1 hold-prove")).await.unwrap().into_inner().job_id;
    let mut waiting = server.client().await;
    let waits = tokio::spawn(async move {
        // Until it, and not the question below, has the one place.
        while waiting.await_proof(AwaitProofRequest { job_id: job.clone(), timeout_ms: 0 }).await.is_err() {}
    });
    let refused = loop {
        match client.get_status(GetStatusRequest {}).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");

    let address = server.address.trim_start_matches("http://");
    let mut third = TcpStream::connect(address).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(60), third.read(&mut [0; 1])).await.expect("at once");
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    waits.abort();
    server.fake.prove.open();
}
