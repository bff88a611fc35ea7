//! `srs`: the parameters in a running daemon's memory.

use std::{pin::pin, time::Duration};

use cuzk_proto::v1::{EvictSrsRequest, EvictSrsResponse, GetStatusRequest, PreloadSrsRequest, PreloadSrsResponse};
use indicatif::{ProgressBar, ProgressStyle};

use super::{json, remote, text};
use crate::{
    cli::{SrsArgs, SrsCommand, SrsListArgs},
    client,
    exit::Failure,
};

/// Lists, loads or releases.
pub(super) async fn srs(command: &SrsCommand) -> Result<(), Failure> {
    match command {
        SrsCommand::List(args) => list(args).await,
        SrsCommand::Preload(args) => preload(args).await,
        SrsCommand::Evict(args) => evict(args).await,
    }
}

async fn list(args: &SrsListArgs) -> Result<(), Failure> {
    let status = remote::status(&args.client).await?;
    match args.json {
        true => println!("{:#}", serde_json::Value::from(json::srs(&status.loaded_srs))),
        false => print!("{}", text::srs(&status)),
    }
    Ok(())
}

async fn preload(args: &SrsArgs) -> Result<(), Failure> {
    let client = client::open(&args.client).await?;
    let mut loader = client.clone();
    // It takes seconds to minutes, so it has no deadline of ours.
    let request = PreloadSrsRequest { circuit_id: args.circuit.to_string() };
    let mut loading = pin!(loader.preload_srs(request));
    let bar = if args.quiet { ProgressBar::hidden() } else { percent_bar(&args.circuit.to_string()) };
    let answer = loop {
        tokio::select! {
            answer = &mut loading => break answer,
            () = tokio::time::sleep(LOOK_EVERY) => {
                // Progress is a courtesy: if it cannot be had, the wait goes on.
                if let Ok(status) = client.clone().get_status(remote::quick(GetStatusRequest {})).await {
                    let mut loads = status.get_ref().loaded_srs.iter().filter(|srs| srs.loading);
                    let of_it = loads.find(|srs| srs.circuit_id == args.circuit.to_string());
                    bar.set_position(of_it.map_or(0, |srs| u64::from(srs.loaded_percent)));
                }
            }
        }
    };
    bar.finish_and_clear();
    let doing = format!("load the parameters of {}", args.circuit);
    let answer = answer.map_err(|status| client::refused(&doing, &args.client.addr, &status))?;
    println!("{}", preloaded_line(&args.circuit.to_string(), answer.get_ref()));
    Ok(())
}

async fn evict(args: &SrsArgs) -> Result<(), Failure> {
    let request = EvictSrsRequest { circuit_id: args.circuit.to_string() };
    let answer = client::open(&args.client).await?.evict_srs(remote::quick(request)).await;
    let doing = format!("release the parameters of {}", args.circuit);
    let answer = answer.map_err(|status| client::refused(&doing, &args.client.addr, &status))?;
    println!("{}", evicted_line(&args.circuit.to_string(), answer.get_ref()));
    Ok(())
}

fn percent_bar(circuit: &str) -> ProgressBar {
    let bar = ProgressBar::new(100).with_message(format!("loading the parameters of {circuit}"));
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %").expect("a legal template"));
    bar
}

fn preloaded_line(circuit: &str, answer: &PreloadSrsResponse) -> String {
    match answer.already_loaded {
        true => format!("{circuit} was loaded already"),
        false => format!("{circuit} loaded in {}", text::millis(answer.load_time_ms)),
    }
}

fn evicted_line(circuit: &str, answer: &EvictSrsResponse) -> String {
    match (answer.was_loaded, answer.in_use) {
        (false, _) => format!("{circuit} was not loaded"),
        (true, 0) => format!("{circuit} released: {}", text::bytes(answer.freed_bytes)),
        (true, jobs) => format!("{circuit} goes when the last of {jobs} jobs that hold it ends"),
    }
}

/// How often the progress of a load is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eviction_says_what_became_of_the_memory() {
        let line = |was_loaded, freed_bytes, in_use| {
            evicted_line("porep-2k", &EvictSrsResponse { was_loaded, freed_bytes, in_use })
        };
        assert_eq!(line(false, 0, 0), "porep-2k was not loaded");
        assert_eq!(line(true, 1 << 30, 0), "porep-2k released: 1.0 GiB");
        assert_eq!(line(true, 0, 2), "porep-2k goes when the last of 2 jobs that hold it ends");
    }

    #[test]
    fn a_preload_says_whether_there_was_anything_to_do() {
        let line = |already_loaded| preloaded_line("porep-2k", &PreloadSrsResponse { already_loaded, load_time_ms: 5 });
        assert_eq!([line(true), line(false)], ["porep-2k was loaded already", "porep-2k loaded in 5ms"]);
    }
}
