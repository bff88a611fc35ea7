//! The two programs, as functions of their arguments. They need no other file than compiled kernels, and not even those
//! where there is NVRTC.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use rand::{RngCore, SeedableRng, rngs::OsRng};
use rand_chacha::ChaCha8Rng;

use super::{BENCHES, CHECKS, Measurement};
use crate::cuda::{
    driver::{DeviceInfo, Driver},
    error::CudaError,
    gpu::Gpu,
    kernels::{Kernels, store},
    prove,
};

/// Options of both programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    /// Only what has one of these in its name.
    filters: Vec<String>,
    seed: Option<u64>,
    device: Option<String>,
    json: bool,
    list: bool,
    lost_context: bool,
}

const USAGE: &str = "options: [FILTER]... [--seed N] [--device NAME] [--json] [--list] [--lost-context]
  FILTER         run only what has this in its name; several: what has any of them
  --seed N       draw the same inputs again
  --device NAME  ordinal, UUID or PCI address; the first device if absent
  --json         a line of JSON for each measurement (gpu-bench)
  --lost-context break the device's context on purpose, and check what follows (gpu-check)
  --list         print the names and run nothing
Kernels are taken from the folder in CUZK_KERNELS or from `kernels` beside the program, else compiled with NVRTC.";

/// `gpu-check`: runs every check, a line each. Fails if one fails.
pub fn check(args: impl Iterator<Item = String>) -> ExitCode {
    run(args, |options| {
        let chosen: Vec<_> = CHECKS.iter().copied().flatten().filter(|check| options.wants(check.name)).collect();
        if options.list {
            chosen.iter().for_each(|check| println!("{}", check.name));
            return Ok(true);
        }
        if options.lost_context {
            let (info, seed) = device(options)?;
            let result = prove::checks::lost_context(info, &mut ChaCha8Rng::seed_from_u64(seed));
            println!(
                "{}",
                result.as_ref().map_or_else(|error| format!("FAILED {error}"), |()| "ok     lost context".into())
            );
            return Ok(result.is_ok());
        }
        let (gpu, seed) = start(options)?;
        let mut failed = 0;
        for check in &chosen {
            let begin = Instant::now();
            let result = (check.run)(&gpu, &mut ChaCha8Rng::seed_from_u64(seed));
            let seconds = begin.elapsed().as_secs_f64();
            match result {
                Ok(()) => println!("ok     {:<44} {seconds:8.3} s", check.name),
                Err(error) => {
                    failed += 1;
                    println!("FAILED {:<44} {seconds:8.3} s  {error}", check.name);
                }
            }
        }
        println!("{} checks, {failed} failed, seed {seed}", chosen.len());
        // A filter that matches nothing has not shown that anything works.
        Ok(failed == 0 && !chosen.is_empty())
    })
}

/// `gpu-bench`: runs every bench, a line for each measurement.
pub fn bench(args: impl Iterator<Item = String>) -> ExitCode {
    run(args, |options| {
        let chosen: Vec<_> = BENCHES.iter().copied().flatten().filter(|bench| options.wants(bench.name)).collect();
        if options.list {
            chosen.iter().for_each(|bench| println!("{}", bench.name));
            return Ok(true);
        }
        let (gpu, seed) = start(options)?;
        if !options.json {
            println!("{}", Measurement::heading());
        }
        let mut failed = 0;
        for bench in &chosen {
            match (bench.run)(&gpu, &mut ChaCha8Rng::seed_from_u64(seed)) {
                Ok(rows) if options.json => rows.iter().for_each(|row| println!("{}", row.to_json())),
                Ok(rows) => rows.iter().for_each(|row| println!("{row}")),
                Err(error) => {
                    failed += 1;
                    eprintln!("FAILED {}: {error}", bench.name);
                }
            }
        }
        Ok(failed == 0 && !chosen.is_empty())
    })
}

fn run(args: impl Iterator<Item = String>, body: impl FnOnce(&Options) -> Result<bool, CudaError>) -> ExitCode {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match body(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn device(options: &Options) -> Result<(DeviceInfo, u64), CudaError> {
    let driver = Driver::load()?;
    let names: Vec<_> = options.device.iter().cloned().collect();
    let devices = driver.select(&names)?;
    let Some(info) = devices.into_iter().next() else {
        return Err(CudaError::NoDevice("the driver shows none".to_owned()));
    };
    let seed = options.seed.unwrap_or_else(|| OsRng.next_u64());
    // On standard error, so that lines of JSON stay alone.
    eprintln!("{info}, driver for CUDA {}, seed {seed}", driver.version());
    Ok((info, seed))
}

fn start(options: &Options) -> Result<(Gpu, u64), CudaError> {
    let (info, seed) = device(options)?;
    let kernels = match beside_the_program() {
        Some(folder) if std::env::var_os(store::VARIABLE).is_none() => {
            Kernels::new(Some(folder), dirs::cache_dir().map(|d| d.join("cuzk/kernels")))
        }
        _ => Kernels::from_environment(),
    };
    Ok((Gpu::open(info, kernels)?, seed))
}

fn beside_the_program() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.join("kernels");
    folder.is_dir().then_some(folder)
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--json" => options.json = true,
                "--list" => options.list = true,
                "--lost-context" => options.lost_context = true,
                "--seed" => {
                    let value = args.next().ok_or("--seed needs a number")?;
                    options.seed = Some(value.parse().map_err(|e| format!("--seed {value:?}: {e}"))?);
                }
                "--device" => options.device = Some(args.next().ok_or("--device needs a name")?),
                other if other.starts_with('-') => return Err(format!("unknown option {other}")),
                _ => options.filters.push(arg),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_in_any_order() {
        let options = parse("fq --seed 7 --json g1 --device GPU-1").expect("a good line");
        let expected = Options {
            filters: vec!["fq".into(), "g1".into()],
            seed: Some(7),
            device: Some("GPU-1".into()),
            json: true,
            list: false,
            lost_context: false,
        };
        assert_eq!(options, expected);
        assert!(options.wants("fq/products") && options.wants("curve/g1") && !options.wants("fr/products"));
        for bad in ["--seed", "--seed x", "--device", "--verbose"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CHECKS.iter().copied().flatten().map(|c| c.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
