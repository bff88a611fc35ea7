//! `prove`: sends a C1 output, shows how far it is, fetches the proof.

use std::{fs::Permissions, io::Write, os::unix::fs::PermissionsExt, path::Path, pin::pin, time::Duration};

use cuzk_proto::v1::{
    AwaitProofResponse, ProofKind, SubmitProofRequest, SubmitProofResponse, WatchJobRequest,
    await_proof_response::Status,
};

use super::{
    c1::{self, Facts},
    follow::Follow,
    remote,
};
use crate::{
    cli::ProveArgs,
    client::{self, Client, MAX_MESSAGE, one_line},
    exit::{Exit, Failure},
};

/// Proves one sector.
pub(super) async fn prove(args: &ProveArgs) -> Result<(), Failure> {
    let target = &args.client.addr;
    let payload = std::fs::read(&args.c1).map_err(|e| Failure::io("read", &args.c1, e))?;
    let request = request(args, payload)?;
    let mut client = client::open(&args.client).await?;
    let accepted = client
        .submit_proof(request)
        .await
        .map_err(|status| client::refused("submit the proof", target, &status))?
        .into_inner();
    report(args, &accepted_line(&accepted));
    let result = await_result(&client, args, &accepted.job_id).await?;
    let proof = outcome(&result)?;
    report(args, &timings_line(&result));
    if let Some(path) = &args.out {
        write_atomically(path, proof).map_err(|e| Failure::io("write", path, e))?;
    }
    if args.hex {
        println!("{}", hex::encode(proof));
    }
    Ok(())
}

/// The request for a C1 file: what the flags do not say is taken from the file.
fn request(args: &ProveArgs, payload: Vec<u8>) -> Result<SubmitProofRequest, Failure> {
    // Room for the other fields.
    if payload.len() > MAX_MESSAGE - 4096 {
        return Err(Failure::new(
            Exit::Refused,
            format!("{}: {} bytes are more than a request can carry ({MAX_MESSAGE})", args.c1.display(), payload.len()),
        ));
    }
    let Facts { proof, sector_number } = c1::facts(&payload)?;
    let Some(sector_number) = args.sector.or(sector_number) else {
        return Err(Failure::new(
            Exit::Usage,
            format!("{} does not name its sector (it has no envelope)", args.c1.display()),
        )
        .with_hint("give the sector number with --sector"));
    };
    Ok(SubmitProofRequest {
        request_id: args.request_id.clone(),
        proof_kind: ProofKind::PorepSealCommit as i32,
        sector_size: proof.size.bytes(),
        registered_proof: args.registered_proof.unwrap_or(proof.number),
        priority: cuzk_proto::v1::Priority::from(args.priority) as i32,
        vanilla_proof: payload.into(),
        sector_number,
        miner_id: args.miner,
        ..Default::default()
    })
}

/// Waits until the job ends, and shows how far it is.
async fn await_result(client: &Client, args: &ProveArgs, job_id: &str) -> Result<AwaitProofResponse, Failure> {
    let mut following = pin!(follow(client.clone(), args, job_id));
    let mut fetching = pin!(remote::await_proof(client.clone(), &args.client.addr, job_id));
    let mut followed = false;
    let result = loop {
        tokio::select! {
            result = &mut fetching => break result,
            () = &mut following, if !followed => followed = true,
            _ = tokio::signal::ctrl_c() => break Err(interrupted(args, job_id)),
        }
    };
    if result.is_ok() && !followed {
        // For the last picture. Progress is a courtesy: the proof does not wait for it.
        let _ = tokio::time::timeout(LAST_PICTURE, following).await;
    }
    result
}

/// Follows the job to its end, if the daemon lets it be followed.
async fn follow(mut client: Client, args: &ProveArgs, job_id: &str) {
    let mut shown = Follow::new(args.quiet);
    if matches!(shown, Follow::Quiet) {
        return;
    }
    // A daemon of another make answers UNIMPLEMENTED.
    let Ok(answer) = client.watch_job(WatchJobRequest { job_id: job_id.to_owned() }).await else { return };
    let mut pictures = answer.into_inner();
    while let Ok(Some(job)) = pictures.message().await {
        shown.show(&job);
    }
    shown.end();
}

/// Somebody pressed Ctrl-C. The job was submitted, not only waited for, so it goes on.
fn interrupted(args: &ProveArgs, job_id: &str) -> Failure {
    let name = match args.request_id.as_str() {
        "" => "without --request-id",
        _ => "with the same --request-id",
    };
    Failure::new(Exit::Failure, format!("interrupted: job {job_id} goes on"))
        .with_hint(format!("the same command again, {name}, fetches its proof; `cuzk-daemon cancel {job_id}` stops it"))
}

/// The proof, or why there is none.
pub(super) fn outcome(result: &AwaitProofResponse) -> Result<&[u8], Failure> {
    let message = one_line(&result.error_message);
    let fail = |text: String| Err(Failure::new(Exit::Failure, text));
    match result.status() {
        Status::Completed if result.proof.is_empty() => {
            fail(format!("job {} completed without a proof", result.job_id))
        }
        Status::Completed => Ok(&result.proof),
        Status::Failed => fail(format!("job {} failed: {message}", result.job_id)),
        Status::Cancelled => fail(format!("job {} was cancelled: {message}", result.job_id)),
        Status::Unknown | Status::Timeout => {
            fail(format!("job {} ended in an unknown state: {message}", result.job_id))
        }
    }
}

fn report(args: &ProveArgs, line: &str) {
    if !args.quiet {
        eprintln!("{line}");
    }
}

fn accepted_line(accepted: &SubmitProofResponse) -> String {
    match accepted.queue_position {
        0 => format!("job {} accepted", accepted.job_id),
        ahead => format!("job {} accepted, {ahead} ahead of it", accepted.job_id),
    }
}

fn timings_line(result: &AwaitProofResponse) -> String {
    format!(
        "job {} completed in {} ms (queue {}, parameters {}, synthesis {}, device {}): {} bytes",
        result.job_id,
        result.total_ms,
        result.queue_wait_ms,
        result.srs_load_ms,
        result.synthesis_ms,
        result.gpu_compute_ms,
        result.proof.len()
    )
}

/// All or nothing: a side file, synced, then renamed, so that no reader ever sees half a proof.
fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // A proof is no secret: the mode of an ordinary file, less the umask.
    let mut file = tempfile::Builder::new()
        .prefix(".cuzk-proof")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(directory)?.sync_all()
}

/// How long the last picture of a job may take.
const LAST_PICTURE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cuzk_proto::v1::Priority;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(line: &str) -> ProveArgs {
        let words = format!("cuzk-daemon prove --c1 c1.json --miner 1000 --hex {line}");
        match Cli::try_parse_from(words.split_whitespace()).map(Cli::into_command) {
            Ok(Command::Prove(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    const BARE: &[u8] = br#"{"registered_proof":"StackedDrg32GiBV1_1"}"#;

    #[test]
    fn the_file_says_what_the_flags_do_not() {
        let request = request(&args("--sector 7 --priority high --request-id r"), BARE.to_vec()).expect("enough");
        assert_eq!(request.registered_proof, 8);
        assert_eq!(request.sector_size, 32 << 30);
        assert_eq!((request.miner_id, request.sector_number), (1000, 7));
        assert_eq!(request.priority(), Priority::High);
        assert_eq!(request.proof_kind(), ProofKind::PorepSealCommit);
        assert_eq!(request.request_id, "r");
        assert_eq!(&request.vanilla_proof[..], BARE);
    }

    #[test]
    fn flags_win_over_the_file() {
        let request = request(&args("--sector 7 --registered-proof 13"), BARE.to_vec()).expect("enough");
        // The daemon, not the client, judges the disagreement.
        assert_eq!(request.registered_proof, 13);
    }

    #[test]
    fn a_sector_must_be_known() {
        let failure = request(&args(""), BARE.to_vec()).expect_err("nobody says");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.to_string().contains("--sector"));
    }

    #[test]
    fn only_a_completed_job_has_a_proof() {
        let result = |status: Status, proof: &'static [u8]| AwaitProofResponse {
            job_id: "j".into(),
            status: status as i32,
            proof: proof.into(),
            error_message: "why".into(),
            ..Default::default()
        };
        assert_eq!(outcome(&result(Status::Completed, b"p")).expect("a proof"), b"p");
        assert!(outcome(&result(Status::Completed, b"")).is_err());
        for status in [Status::Failed, Status::Cancelled, Status::Unknown, Status::Timeout] {
            let failure = outcome(&result(status, b"p")).expect_err("no proof");
            assert_eq!(failure.exit, Exit::Failure);
            assert!(failure.to_string().contains("why"));
        }
    }

    #[test]
    fn who_interrupts_is_told_how_to_get_the_proof_and_how_to_stop_the_job() {
        let text = interrupted(&args("--request-id r"), "s-1").to_string();
        assert!(text.contains("job s-1 goes on") && text.contains("with the same --request-id"), "{text}");
        assert!(text.contains("cancel s-1"), "{text}");
        assert!(interrupted(&args(""), "s-1").to_string().contains("without --request-id"));
    }

    #[test]
    fn a_proof_replaces_a_file_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("proof");
        write_atomically(&path, b"first").expect("writable");
        write_atomically(&path, b"second").expect("writable");
        assert_eq!(std::fs::read(&path).expect("there"), b"second");
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 1);
        assert!(write_atomically(&dir.path().join("no/such/proof"), b"x").is_err());
    }
}
