//! What the commands that talk to a daemon have in common.

use std::time::Duration;

use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, GetStatusRequest, GetStatusResponse, await_proof_response::Status,
};
use tonic::Request;

use crate::{
    cli::ClientArgs,
    client::{self, Client, QUICK},
    exit::Failure,
    listen::Target,
};

/// A request that a daemon answers from memory.
pub(super) fn quick<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(QUICK);
    request
}

/// The daemon's picture of itself.
pub(super) async fn status(args: &ClientArgs) -> Result<GetStatusResponse, Failure> {
    let mut client = client::open(args).await?;
    let answer = client.get_status(quick(GetStatusRequest {})).await;
    Ok(answer.map_err(|status| client::refused("get the status", &args.addr, &status))?.into_inner())
}

/// Waits for the end of a job in short calls, over and over: proxies cut connections that are quiet for minutes.
pub(super) async fn await_proof(
    mut client: Client,
    target: &Target,
    job_id: &str,
) -> Result<AwaitProofResponse, Failure> {
    loop {
        let mut request =
            Request::new(AwaitProofRequest { job_id: job_id.to_owned(), timeout_ms: POLL.as_millis() as u64 });
        request.set_timeout(POLL + QUICK);
        let result = client
            .await_proof(request)
            .await
            .map_err(|status| client::refused(&format!("await job {job_id}"), target, &status))?
            .into_inner();
        if result.status() != Status::Timeout {
            return Ok(result);
        }
    }
}

/// How long one AwaitProof waits: well below the minute after which proxies cut a quiet connection.
const POLL: Duration = Duration::from_secs(10);
