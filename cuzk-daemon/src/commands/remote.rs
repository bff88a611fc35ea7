//! What the commands that talk to a daemon have in common.

use tonic::Request;

use crate::{
    cli::ClientArgs,
    client::{self, QUICK},
    exit::Failure,
};

/// A request that a daemon answers from memory.
pub(super) fn quick<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(QUICK);
    request
}

/// The daemon's picture of itself.
pub(super) async fn status(args: &ClientArgs) -> Result<cuzk_proto::v1::GetStatusResponse, Failure> {
    let mut client = client::open(args).await?;
    let answer = client.get_status(quick(cuzk_proto::v1::GetStatusRequest {})).await;
    Ok(answer.map_err(|status| client::refused("get the status", &args.addr, &status))?.into_inner())
}
