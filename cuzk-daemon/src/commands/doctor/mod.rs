//! `doctor`: looks at everything that can keep proofs from being made, or make them slow, and says what to do.
//!
//! Each file is about one thing: what is `Seen` of it is looked up in one place, and judged by a pure function.
//!
//! * `finding`: what is told
//! * `settings`: the configuration; `access`: certificates and tokens; `network`: addresses
//! * `gpus`: driver, devices, kernels; `params`: parameter files
//! * `disks`, `speed`: folders and what is below them
//! * `host`: limits, control group, huge pages; `clock`

mod access;
mod clock;
mod disks;
mod finding;
mod gpus;
mod host;
mod network;
mod params;
mod settings;
mod speed;

use serde_json::json;

use self::finding::{Finding, Level, table};
use crate::{
    cli::DoctorArgs,
    exit::{Exit, Failure},
};

/// Looks, judges and tells.
pub(super) fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let (config, mut findings) = settings::look(&args.config);
    findings.extend(gpus::judge(&config.gpus, &gpus::look(&config.gpus)));
    findings.extend(params::judge(&params::look(&config)));
    findings.extend(disks::look(&config).iter().flat_map(disks::judge));
    findings.extend(host::judge(&config, &host::look()));
    findings.extend(clock::judge(&clock::look()));
    findings.extend(access::look(&config));
    findings.extend(network::look(&config).iter().flat_map(network::judge));
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (warnings, failures) = (count(Level::Warn), count(Level::Fail));
    if args.json {
        let all: Vec<_> = findings.iter().map(Finding::json).collect();
        println!("{:#}", json!({ "findings": all, "warnings": warnings, "failures": failures }));
    } else {
        print!("{}", table(&findings));
    }
    match failures {
        0 => {
            eprintln!("nothing keeps the daemon from working; warnings: {warnings}");
            Ok(())
        }
        n => Err(Failure::new(Exit::Failure, format!("failures: {n}, warnings: {warnings}"))
            .with_hint("what each line after an arrow says will help")),
    }
}
