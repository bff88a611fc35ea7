//! What the log of a whole daemon says of a job: little, and nothing that a client sent as payload.

mod pretended;

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use cuzk_daemon::{client, config::Config, resources::Plan, run};
use cuzk_proto::v1::{ProofKind, ProveRequest, SubmitProofRequest};
use cuzk_server::{
    Attempt, DeviceInfo, PartitionProof, PhaseTimings, ProofRequest, Proved, Proving, ProvingError, Refusal,
    memory::Shares,
};
use tracing_subscriber::EnvFilter;

const PARTITIONS: usize = 10;
const PAYLOAD: &[u8] = b"payload-that-no-log-may-show";
/// In each byte of a proof.
const PROOF: u8 = 0xa7;

/// Every partition fails once, and is proven at the second attempt.
struct Pretender(Mutex<Vec<usize>>);

impl Proving for Pretender {
    type Task = ();
    type Assignment = usize;
    type Params = ();

    fn admit(&self, _: &ProofRequest) -> Result<(), Refusal> {
        Ok(())
    }

    pretended::one_circuit!(());

    fn partitions(&self, (): &()) -> usize {
        PARTITIONS
    }

    fn synthesize(&self, (): &(), partition: usize, _: &Attempt) -> Result<usize, ProvingError> {
        Ok(partition)
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        pretended::devices(None)
    }

    fn prove(&self, _: usize, (): &(), partition: usize, _: &Attempt) -> Result<Proved, ProvingError> {
        let mut failed = self.0.lock().expect("unpoisoned");
        if !failed.contains(&partition) {
            failed.push(partition);
            return Err(ProvingError::Device("a launch failed".into()));
        }
        let mut timings = PhaseTimings::default();
        timings.add(PhaseTimings::LOCK_HOLD, std::time::Duration::from_millis(1));
        Ok(Proved { proof: [PROOF; 192], timings })
    }

    fn verify_partition(&self, (): &(), _: usize, (): &(), _: &PartitionProof) -> Result<bool, String> {
        Ok(true)
    }

    fn verify_whole(&self, (): &(), (): &(), _: &[u8]) -> Result<bool, String> {
        Ok(true)
    }
}

const PLAN: Plan = Plan {
    rpc_threads: 2,
    compute_threads: 2,
    synthesis_workers: 2,
    finish_threads: 1,
    memory: Shares { bodies: 256 << 20, queue: 256 << 20, work: 512 << 20 },
};

/// All lines, for a test to read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_five_lines_and_its_payload_none() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("debug"))
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only test of this program");

    let daemon =
        run::spawn_in_process(Config::default(), PLAN, Arc::new(Pretender(Mutex::default()))).expect("started");
    let mut client = client::connect(&daemon.target).await.expect("it listens");
    let submit = SubmitProofRequest {
        request_id: "two\nlines \u{1b}[31m and a colour".to_owned(),
        proof_kind: ProofKind::PorepSealCommit.into(),
        sector_size: 2048,
        vanilla_proof: PAYLOAD.into(),
        ..SubmitProofRequest::default()
    };
    let answer = client.prove(ProveRequest { submit: Some(submit) }).await.expect("proven").into_inner();
    let result = answer.result.expect("a result");
    assert_eq!(result.proof[..], [PROOF; 192 * PARTITIONS]);
    daemon.stop().await.expect("drained");

    let text = String::from_utf8(lines.0.lock().expect("unpoisoned").clone()).expect("text");
    let of_job: Vec<&str> = text.lines().filter(|line| line.contains(&result.job_id)).collect();
    let at = |level: &str| of_job.iter().filter(|line| line.contains(level)).count();
    assert!((3..=5).contains(&at(" INFO ")), "{text}");
    assert_eq!(at(" WARN "), 2, "ten partitions failed, two are told loudly");
    assert!(at(" DEBUG ") >= PARTITIONS, "the rest can be had: {text}");
    for secret in [&String::from_utf8_lossy(PAYLOAD)[..], &hex::encode(PAYLOAD)[..], &hex::encode([PROOF; 8])[..]] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(!text.contains('\u{1b}') && text.contains("two\\\\nlines"), "what a client wrote is escaped: {text}");
}
