//! `cancel`: stops a job.

use cuzk_proto::v1::CancelProofRequest;
use tonic::Request;

use crate::{
    cli::CancelArgs,
    client::{self, QUICK},
    exit::Failure,
};

/// Stops a job and says whether it was still unfinished.
pub(super) async fn cancel(args: &CancelArgs) -> Result<(), Failure> {
    let target = &args.client.addr;
    let mut client = client::open(&args.client).await?;
    let mut request = Request::new(CancelProofRequest { job_id: args.job.clone() });
    request.set_timeout(QUICK);
    let answer = client
        .cancel_proof(request)
        .await
        .map_err(|status| client::refused(&format!("cancel {:?}", args.job), target, &status))?;
    match answer.into_inner().was_running {
        true => println!("cancelled {}", args.job),
        false => println!("{} had ended already", args.job),
    }
    Ok(())
}
