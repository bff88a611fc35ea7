//! `jobs`: what a running daemon works at and has worked at.

use cuzk_proto::v1::{GetJobRequest, JobState, ListJobsRequest};

use super::{json, remote, text};
use crate::{
    cli::{JobsCommand, JobsListArgs, JobsShowArgs},
    client,
    exit::Failure,
};

/// Lists or shows.
pub(super) async fn jobs(command: &JobsCommand) -> Result<(), Failure> {
    match command {
        JobsCommand::List(args) => list(args).await,
        JobsCommand::Show(args) => show(args).await,
    }
}

async fn list(args: &JobsListArgs) -> Result<(), Failure> {
    let states = args.state.iter().map(|state| JobState::from(*state).into()).collect();
    let request = ListJobsRequest { states, limit: args.limit, ..ListJobsRequest::default() };
    let answer = client::open(&args.client).await?.list_jobs(remote::quick(request)).await;
    let answer = answer.map_err(|status| client::refused("list jobs", &args.client.addr, &status))?.into_inner();
    if args.json {
        println!("{:#}", serde_json::Value::from(answer.jobs.iter().map(json::job).collect::<Vec<_>>()));
    } else {
        print!("{}", text::jobs(&answer.jobs, text::now_ms()));
    }
    if answer.truncated {
        eprintln!("there are more than {}: see --limit and --state", answer.jobs.len());
    }
    Ok(())
}

async fn show(args: &JobsShowArgs) -> Result<(), Failure> {
    let request = GetJobRequest { job_id: args.job.clone() };
    let answer = client::open(&args.client).await?.get_job(remote::quick(request)).await;
    let doing = format!("show {:?}", args.job);
    let job = answer.map_err(|status| client::refused(&doing, &args.client.addr, &status))?.into_inner();
    match args.json {
        true => println!("{:#}", json::job(&job)),
        false => print!("{}", text::job(&job, text::now_ms())),
    }
    Ok(())
}
