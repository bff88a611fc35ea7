//! `demo`: proves a bundled sector with a daemon inside this process, over gRPC, and has the proof verified by the
//! upstream library.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cuzk_gpu::generate;
use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, GetMetricsRequest, ProofKind, SubmitProofRequest,
    await_proof_response::Status,
};
use cuzk_synth::{
    c1::{envelope, model},
    circuit::{CircuitId, SectorSize},
    porep::prover_id,
    registered::SealProof,
    sample::{self, Sample},
};

use super::{params::generate_failed, progress::GenerateBar};
use crate::{
    backend,
    cli::{DEFAULT_SEED, DemoArgs},
    client,
    config::Config,
    exit::{Exit, Failure},
    resources::{Plan, Resources},
    run,
};

const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);

/// The variable by which the upstream library finds verifying keys. It is read once, when the first is needed.
const UPSTREAM_CACHE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// Makes development parameters if there are none, proves, verifies, and says how long it took.
pub(super) fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let sample = &sample::ALL[0];
    let folder = folder(args)?;
    // SAFETY: the command has started no thread yet, so nobody reads the environment meanwhile.
    unsafe { std::env::set_var(UPSTREAM_CACHE, &folder) };

    println!("A 2 KiB sector's PoRep C2 (sample {}), proven by a daemon in this process.\n", sample.name);
    let begin = Instant::now();
    let made = {
        let bar = GenerateBar::new();
        generate::ensure(CIRCUIT, DEFAULT_SEED, &folder, &|progress| bar.report(progress))
    }
    .map_err(|e| generate_failed(&e))?;
    row(if made { "development parameters made" } else { "development parameters found" }, begin.elapsed());

    let proven = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Failure, format!("cannot start the runtime: {e}")))?
        .block_on(prove(sample, &folder))?;
    show(&proven);

    let begin = Instant::now();
    let valid = verify(sample, &proven.result.proof)?;
    row("upstream verify_seal", begin.elapsed());
    let proof = hex::encode(&proven.result.proof);
    println!("\nproof    {} bytes, {}…{}", proof.len() / 2, &proof[..16], &proof[proof.len() - 16..]);
    println!("address  {} (stopped again)", proven.address);
    println!("verdict  {}", if valid { "VALID" } else { "INVALID" });
    println!("\nThe parameters are insecure ones, made from the seed {DEFAULT_SEED:?}: no network accepts this proof.");
    println!("They stay in {}.", folder.display());
    match valid {
        true => Ok(()),
        false => Err(Failure::new(Exit::Failure, "the upstream library rejects the proof")),
    }
}

/// What came back over gRPC.
struct Proven {
    address: String,
    result: AwaitProofResponse,
    /// Phases of the one partition, by name.
    phases: Vec<(String, Duration)>,
}

fn folder(args: &DemoArgs) -> Result<PathBuf, Failure> {
    let folder = match (&args.dir, backend::cache_folder()) {
        (Some(dir), _) => dir.clone(),
        (None, Some(cache)) => generate::development_folder(&cache, CIRCUIT, DEFAULT_SEED),
        (None, None) => {
            let text = "this user has no cache directory";
            return Err(Failure::new(Exit::Usage, text).with_hint("name a directory for the parameters with --dir"));
        }
    };
    std::path::absolute(&folder).map_err(|e| Failure::io("find", &folder, e))
}

/// Starts the daemon, sends the sample, waits for its proof, stops the daemon.
async fn prove(sample: &Sample, folder: &Path) -> Result<Proven, Failure> {
    let mut config = Config::default();
    config.srs.param_cache = folder.to_owned();
    config.srs.allow_dev_params = true;
    let plan = Plan::new(&Resources::detect(), &config)?;
    let proving = backend::open(&config, &plan)?;
    let daemon = run::spawn_in_process(config, plan, proving)?;

    let target = &daemon.target;
    let mut client = client::connect(target).await?;
    let request = SubmitProofRequest {
        request_id: format!("demo {}", sample.name),
        proof_kind: ProofKind::PorepSealCommit as i32,
        sector_size: sample.claims.sector_size,
        registered_proof: sample.claims.registered_proof,
        sector_number: sample.claims.sector_number,
        miner_id: sample.claims.miner_id,
        vanilla_proof: sample.c1.into(),
        ..Default::default()
    };
    let submitted = client.submit_proof(request).await;
    let job_id = submitted.map_err(|status| client::refused("submit the proof", target, &status))?.into_inner().job_id;
    let awaited = client.await_proof(AwaitProofRequest { job_id, timeout_ms: 0 }).await;
    let result = awaited.map_err(|status| client::refused("await the proof", target, &status))?.into_inner();
    if result.status() != Status::Completed {
        return Err(Failure::new(
            Exit::Failure,
            format!("the proof failed: {}", client::one_line(&result.error_message)),
        ));
    }
    let metrics = client.get_metrics(GetMetricsRequest {}).await;
    let metrics = metrics.map_err(|status| client::refused("read the metrics", target, &status))?.into_inner();
    let (address, phases) = (target.to_string(), phases(&metrics.prometheus_text));
    daemon.stop().await?;
    Ok(Proven { address, result, phases })
}

/// The sums of the phase histogram, which after one partition are that partition's phases.
fn phases(metrics: &str) -> Vec<(String, Duration)> {
    let phase = |line: &str| {
        let (_, rest) = line.strip_prefix("cuzk_phase_seconds_sum{")?.split_once("phase=\"")?;
        let (name, rest) = rest.split_once("\"}")?;
        let seconds: f64 = rest.trim().parse().ok()?;
        Some((name.to_owned(), Duration::try_from_secs_f64(seconds).ok()?))
    };
    metrics.lines().filter_map(phase).collect()
}

fn show(proven: &Proven) {
    let result = &proven.result;
    let ms = Duration::from_millis;
    row("waiting in the queue", ms(result.queue_wait_ms));
    row("loading parameters", ms(result.srs_load_ms));
    row("synthesis", ms(result.synthesis_ms));
    row("holding the device", ms(result.gpu_compute_ms));
    for (name, duration) in &proven.phases {
        if !SUMMED.contains(&name.as_str()) {
            row(&format!("  {name}"), *duration);
        }
    }
    row("job, from acceptance to proof", ms(result.total_ms));
}

/// Phases that have a line of their own.
const SUMMED: [&str; 4] = ["lock_hold", "lock_wait", "synthesis", "params_load"];

fn row(what: &str, duration: Duration) {
    println!("{what:<32} {:>9.3} s", duration.as_secs_f64());
}

/// Asks the upstream library, which knows nothing of this daemon but the verifying key.
fn verify(sample: &Sample, proof: &[u8]) -> Result<bool, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::new(Exit::Failure, format!("cannot verify the proof: {e}"));
    let json = envelope::unwrap(sample.c1).map_err(|e| failed(&e))?.json;
    let c1 = model::parse(&json).map_err(|e| failed(&e))?;
    let seal = SealProof::from_number(sample.claims.registered_proof).ok_or_else(|| failed(&"no such seal proof"))?;
    filecoin_proofs_api::seal::verify_seal(
        seal.upstream(),
        c1.comm_r.0,
        c1.comm_d.0,
        prover_id(sample.claims.miner_id),
        sample.claims.sector_number.into(),
        c1.ticket.0,
        c1.seed.0,
        proof,
    )
    .map_err(|e| failed(&format!("{e:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read_from_the_metrics() {
        let text = "# HELP cuzk_phase_seconds x\n\
                    cuzk_phase_seconds_bucket{circuit=\"a\",device=\"b\",phase=\"stage\",le=\"1\"} 1\n\
                    cuzk_phase_seconds_sum{circuit=\"a\",device=\"b\",phase=\"stage\"} 0.25\n\
                    cuzk_phase_seconds_sum{circuit=\"a\",device=\"b\",phase=\"msm_h\"} 2\n\
                    cuzk_phase_seconds_count{circuit=\"a\",device=\"b\",phase=\"stage\"} 1\n";
        let expected = [("stage", 250), ("msm_h", 2000)];
        assert_eq!(phases(text), expected.map(|(name, ms)| (name.to_owned(), Duration::from_millis(ms))));
    }
}
