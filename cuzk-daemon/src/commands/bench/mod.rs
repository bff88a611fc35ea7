//! `bench`: drives a running daemon and tells what it can do.
//!
//! * `inputs`: requests, made before the clock starts
//! * `drive`: sends them, waits, and looks at the daemon meanwhile
//! * `verify`: the proofs, once the clock has stopped
//! * `stats`, `times`: figures; `report`, `json`, `plot` on `svg`: text, JSON and picture (all pure)

mod drive;
mod inputs;
mod json;
mod plot;
mod report;
mod stats;
mod svg;
mod times;
mod verify;

use std::{fs, path::Path, sync::Arc};

use indicatif::{ProgressBar, ProgressStyle};

use self::{
    drive::Course,
    report::{About, Report},
    verify::Verified,
};
use super::remote;
use crate::{
    cli::BenchArgs,
    client,
    exit::{Exit, Failure},
};

/// Measures, prints, and writes what is asked for. Fails if a proof fails or is not valid.
pub(super) async fn bench(args: &BenchArgs) -> Result<(), Failure> {
    // Whoever is not there is told before inputs are made.
    let version = remote::status(&args.client).await?.version;
    let bar = if args.quiet { ProgressBar::hidden() } else { bar(u64::from(args.proofs)) };
    bar.set_message("making inputs");
    let inputs = Arc::new(inputs::inputs(args, args.proofs as usize + 1)?);
    let course = Course {
        client: client::open(&args.client).await?,
        target: args.client.addr.clone(),
        inputs: inputs.clone(),
        proofs: args.proofs as usize,
        concurrency: args.concurrency as usize,
    };
    let measured = drive::drive(&course, &bar).await;
    bar.finish_and_clear();
    let measured = measured?;
    let verified = verify::verify(args.circuit, &args.param_cache, &inputs, &measured.proofs);
    let about = About {
        circuit: args.circuit.to_string(),
        daemon: args.client.addr.to_string(),
        version,
        concurrency: args.concurrency as usize,
        inputs: inputs.len(),
    };
    let report = Report::new(measured, verified, about);
    print!("{}", report.text());
    if let Some(path) = &args.json {
        write(path, &format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = &args.timeline {
        write(path, &plot::svg(&report))?;
    }
    match &report.verified {
        Verified::Checked { invalid, .. } if !invalid.is_empty() => {
            Err(Failure::new(Exit::Failure, format!("{} proofs are not valid", invalid.len())))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::io("write", path, e))
}

fn bar(proofs: u64) -> ProgressBar {
    let bar = ProgressBar::new(proofs);
    let style = "{spinner} {msg} {wide_bar} {pos} of {len}, {elapsed}";
    bar.set_style(ProgressStyle::with_template(style).expect("a legal template"));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
