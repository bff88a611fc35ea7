//! The real thing, end to end: a daemon with development parameters, real C1 outputs sent by clients generated from our
//! own proto over TCP and over a unix socket, and every kind of bad input, after which it still proves.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use cuzk_daemon::{
    backend, client,
    config::{Config, OneOrMany},
    listen::{Endpoint, Target},
    resources::{Plan, Resources},
    run::{self, Bound},
    shutdown,
};
use cuzk_gpu::{
    generate,
    params::{Files, Sidecar, Verdicts},
};
use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, EvictSrsRequest, GetStatusRequest, PreloadSrsRequest, ProofKind,
    ProveRequest, SubmitProofRequest, await_proof_response::Status,
};
use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    porep::PorepTask,
    sample::{ALL, Sample},
};
use serde_json::{Value, json};
use tonic::Code;

const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);

/// Parameters that all test programs of this user share; made once.
fn params() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let cache = backend::cache_folder().expect("the user has a cache folder");
        let folder = generate::development_folder(&cache, CIRCUIT, "cuzk");
        generate::ensure(CIRCUIT, "cuzk", &folder, &|_| ()).expect("parameters can be made");
        folder
    })
}

struct Daemon {
    tcp: Target,
    unix: Target,
}

/// A daemon on the parameters in `folder`, for the rest of the process, on threads of its own.
fn start(folder: &Path, socket: PathBuf) -> Daemon {
    let mut config = Config::default();
    config.srs.param_cache = folder.to_owned();
    config.srs.allow_dev_params = true;
    config.daemon.listen = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 0).into()), Endpoint::Unix(socket)]);
    let plan = Plan::new(&Resources::detect(), &config).expect("this machine has memory");
    let proving = backend::open(&config, &plan).expect("threads can be started");
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        runtime.block_on(async {
            let bound = Bound::bind(&config).expect("the addresses are free");
            let targets: Vec<Target> = bound.endpoints().iter().cloned().map(Target::from).collect();
            sender.send(targets).expect("the test waits");
            let (_trigger, shutdown) = shutdown::manual();
            run::run_daemon(&config, &plan, bound, None, proving, shutdown).await
        })
    });
    let targets = receiver.recv().expect("the daemon starts");
    let [tcp, unix] = <[Target; 2]>::try_from(targets).expect("two addresses");
    Daemon { tcp, unix }
}

/// The daemon that most tests share.
fn daemon() -> &'static Daemon {
    static DAEMON: OnceLock<Daemon> = OnceLock::new();
    DAEMON.get_or_init(|| {
        // Removed by nobody: it must outlive all tests. An empty folder and a socket in /tmp remain.
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        start(params(), folder.join("cuzk.sock"))
    })
}

fn request(sample: &Sample) -> SubmitProofRequest {
    SubmitProofRequest {
        request_id: sample.name.to_owned(),
        proof_kind: ProofKind::PorepSealCommit as i32,
        sector_size: sample.claims.sector_size,
        registered_proof: sample.claims.registered_proof,
        sector_number: sample.claims.sector_number,
        miner_id: sample.claims.miner_id,
        vanilla_proof: sample.c1.into(),
        ..Default::default()
    }
}

/// Proves a sample and checks the proof with the verifying key alone.
async fn prove(target: &Target, request: SubmitProofRequest) -> AwaitProofResponse {
    let mut client = client::connect(target).await.expect("the daemon listens");
    let response = client.prove(ProveRequest { submit: Some(request) }).await.expect("accepted").into_inner();
    response.result.expect("a result")
}

fn assert_valid(sample: &Sample, result: &AwaitProofResponse) {
    assert_eq!(result.status(), Status::Completed, "{}", result.error_message);
    assert_eq!(result.proof.len(), 192);
    let files = Files::of(CIRCUIT, params()).expect("a known circuit");
    let vk = cuzk_gpu::srs::read_verifying_key(&files.vk).expect("a good file");
    let key = bellperson::groth16::prepare_verifying_key(&vk);
    let task = PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
    assert!(task.verify_seal(&key, &result.proof).expect("verification runs"));
    let mut damaged = result.proof.to_vec();
    damaged[100] ^= 1;
    assert!(!task.verify_seal(&key, &damaged).unwrap_or(false), "any proof verifies");
}

#[tokio::test]
async fn a_real_sector_is_proven_over_tcp_and_over_a_unix_socket() {
    let daemon = daemon();
    let result = prove(&daemon.tcp, request(&ALL[0])).await;
    assert_valid(&ALL[0], &result);
    assert_eq!(result.devices, ["cpu"]);
    assert!(result.synthesis_ms > 0 && result.gpu_compute_ms > 0 && result.total_ms >= result.gpu_compute_ms);

    // The same again, elsewhere: the proof that there is already, not another one.
    let again = prove(&daemon.unix, request(&ALL[0])).await;
    assert_eq!((again.job_id, again.proof), (result.job_id, result.proof));

    let result = prove(&daemon.unix, request(&ALL[2])).await;
    assert_valid(&ALL[2], &result);

    let mut client = client::connect(&daemon.tcp).await.expect("the daemon listens");
    let status = client.get_status(GetStatusRequest {}).await.expect("answered").into_inner();
    assert!(status.warnings.iter().any(|w| w.contains("INSECURE")), "{:?}", status.warnings);
    assert_eq!(status.provable_circuits, ["porep-2k"]);
    let srs = status.loaded_srs.iter().find(|srs| srs.circuit_id == "porep-2k").expect("loaded");
    assert!(srs.size_bytes > 1 << 30);
}

#[tokio::test]
async fn an_empty_request_id_is_legal() {
    let request = SubmitProofRequest { request_id: String::new(), ..request(&ALL[3]) };
    let result = prove(&daemon().tcp, request).await;
    assert_valid(&ALL[3], &result);
    assert!(!result.job_id.is_empty());
}

/// Sends a request that must be refused, with this code and all these words in one line; then the daemon must answer.
async fn assert_refused(request: SubmitProofRequest, code: Code, words: &[&str]) {
    let mut client = client::connect(&daemon().tcp).await.expect("the daemon listens");
    let status = client.submit_proof(request).await.expect_err("a bad request was accepted");
    assert_eq!(status.code(), code, "{}", status.message());
    for word in words {
        assert!(status.message().contains(word), "{word:?} is not in {:?}", status.message());
    }
    assert!(!status.message().contains('\n'), "{:?}", status.message());
    client.get_status(GetStatusRequest {}).await.expect("the daemon goes on");
}

fn inner() -> Value {
    let envelope: Value = serde_json::from_slice(ALL[0].c1).expect("JSON");
    let json = STANDARD.decode(envelope["Phase1Out"].as_str().expect("a string")).expect("base64");
    serde_json::from_slice(&json).expect("JSON")
}

/// The first sample with damage done to its inner JSON.
fn damaged(damage: impl FnOnce(&mut Value)) -> SubmitProofRequest {
    let mut json = inner();
    damage(&mut json);
    let phase_1 = STANDARD.encode(serde_json::to_vec(&json).expect("JSON"));
    let envelope = json!({ "SectorNum": 42, "Phase1Out": phase_1, "SectorSize": 2048 });
    SubmitProofRequest { vanilla_proof: serde_json::to_vec(&envelope).expect("JSON").into(), ..request(&ALL[0]) }
}

macro_rules! refused {
    ($($name:ident: $request:expr => $code:ident, $words:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            assert_refused($request, Code::$code, &$words).await;
        })*
    };
}

refused! {
    truncated_json: {
        let c1 = ALL[0].c1;
        SubmitProofRequest { vanilla_proof: (&c1[..c1.len() / 2]).into(), ..request(&ALL[0]) }
    } => InvalidArgument, ["vanilla_proof", "ends too early at byte"];
    wrong_base64: {
        let payload = r#"{"SectorNum":42,"Phase1Out":"!!!!","SectorSize":2048}"#;
        SubmitProofRequest { vanilla_proof: payload.into(), ..request(&ALL[0]) }
    } => InvalidArgument, ["Phase1Out", "base64"];
    no_payload: SubmitProofRequest { vanilla_proof: Default::default(), ..request(&ALL[0]) }
        => InvalidArgument, ["vanilla_proof", "empty"];
    sector_size_that_disagrees: SubmitProofRequest { sector_size: 8 << 20, ..request(&ALL[0]) }
        => InvalidArgument, ["sector_size", "8388608", "2048"];
    registered_proof_that_disagrees: SubmitProofRequest { registered_proof: 10, ..request(&ALL[0]) }
        => InvalidArgument, ["registered_proof", "10 (", "5 ("];
    wrong_miner: SubmitProofRequest { miner_id: 1001, ..request(&ALL[0]) }
        => InvalidArgument, ["replica_id", "miner 1001"];
    wrong_sector_number: SubmitProofRequest { sector_number: 41, ..request(&ALL[0]) }
        => InvalidArgument, ["sector_number", "41", "42"];
    zero_comm_r: damaged(|v| v["comm_r"] = json!(vec![0; 32])) => InvalidArgument, ["comm_r", "all zeros"];
    zero_comm_d: damaged(|v| v["comm_d"] = json!(vec![0; 32])) => InvalidArgument, ["comm_d", "all zeros"];
    zero_seed: damaged(|v| v["seed"] = json!(vec![0; 32])) => InvalidArgument, ["seed", "all zeros"];
    too_many_partitions: damaged(|v| {
        let partitions = v["vanilla_proofs"]["StackedDrg2KiBV1"].as_array_mut().expect("a list");
        partitions.push(partitions[0].clone());
    }) => InvalidArgument, ["2 partitions, expected 1"];
    too_few_challenges: damaged(|v| {
        v["vanilla_proofs"]["StackedDrg2KiBV1"][0].as_array_mut().expect("a list").pop();
    }) => InvalidArgument, ["1 challenges, expected 2"];
    a_wrong_node_in_a_path: damaged(|v| {
        let proof = &mut v["vanilla_proofs"]["StackedDrg2KiBV1"][0][1]["comm_r_last_proof"];
        let byte = &mut proof["data"]["Single"]["path"]["path"][0]["hashes"][0][0];
        *byte = json!(byte.as_u64().expect("a byte") ^ 1);
    }) => InvalidArgument, ["[0][1].comm_r_last_proof", "partition 0, challenge 1"];
    a_value_above_the_modulus: damaged(|v| {
        v["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]["labeling_proofs"][0]["parents"][0] = json!(vec![255; 32]);
    }) => InvalidArgument, ["labeling_proofs[0].parents[0]", "modulus"];
    an_unknown_proof_kind: SubmitProofRequest { proof_kind: 77, ..request(&ALL[0]) }
        => InvalidArgument, ["proof_kind", "77"];
    a_proof_kind_that_is_not_built: SubmitProofRequest {
        proof_kind: ProofKind::WinningPost as i32,
        ..request(&ALL[0])
    } => Unimplemented, ["winning"];
    non_interactive_porep: SubmitProofRequest { registered_proof: 15, ..request(&ALL[0]) }
        => Unimplemented, ["non-interactive"];
}

#[tokio::test]
async fn a_message_of_300_mib_is_refused_and_the_daemon_goes_on() {
    // A client that does not keep to the limit.
    let Target::Tcp(address) = &daemon().tcp else { panic!("a TCP address") };
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let channel = channel.connect().await.expect("the daemon listens");
    let mut client =
        cuzk_proto::v1::proving_engine_client::ProvingEngineClient::new(channel).max_encoding_message_size(usize::MAX);
    let request = SubmitProofRequest { vanilla_proof: vec![b' '; 300 << 20].into(), ..request(&ALL[0]) };
    let status = client.submit_proof(request).await.expect_err("over the limit");
    assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted), "{status:?}");
    assert!(status.message().contains("limits.max_message"), "{}", status.message());
    client.get_status(GetStatusRequest {}).await.expect("the daemon goes on");
}

#[tokio::test]
async fn an_unknown_job_is_not_found() {
    let mut client = client::connect(&daemon().tcp).await.expect("the daemon listens");
    let request = AwaitProofRequest { job_id: "no such job".into(), timeout_ms: 0 };
    assert_eq!(client.await_proof(request).await.expect_err("unknown").code(), Code::NotFound);
}

/// A parameter folder of its own, with the files of the shared one linked into it.
struct Folder {
    dir: tempfile::TempDir,
    files: Files,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let files = Files::of(CIRCUIT, dir.path()).expect("a known circuit");
        let from = Files::of(CIRCUIT, params()).expect("a known circuit");
        std::os::unix::fs::symlink(&from.params, &files.params).expect("links can be made");
        std::fs::copy(&from.vk, &files.vk).expect("copied");
        std::fs::copy(&from.sidecar, &files.sidecar).expect("copied");
        Self { dir, files }
    }

    fn replace_params(&self, write: impl FnOnce(&Path)) {
        std::fs::remove_file(&self.files.params).expect("the link is there");
        write(&self.files.params);
    }

    /// What a daemon on this folder says when it is to load the parameters, and to prove.
    async fn refusals(&self) -> [tonic::Status; 2] {
        let daemon = start(self.dir.path(), self.dir.path().join("s"));
        let mut client = client::connect(&daemon.tcp).await.expect("the daemon listens");
        let preload = client.preload_srs(PreloadSrsRequest { circuit_id: "porep-2k".into() }).await;
        let submit = client.submit_proof(request(&ALL[0])).await;
        client.get_status(GetStatusRequest {}).await.expect("the daemon goes on");
        let submit = match submit {
            Err(status) => status,
            // Files that are there are read by the job only.
            Ok(accepted) => {
                let job_id = accepted.into_inner().job_id;
                let request = AwaitProofRequest { job_id, timeout_ms: 0 };
                let result = client.await_proof(request).await.expect("answered").into_inner();
                assert_eq!(result.status(), Status::Failed);
                tonic::Status::failed_precondition(result.error_message)
            }
        };
        [preload.expect_err("the parameters are bad"), submit]
    }

    async fn assert_refused(&self, words: &[&str]) {
        for status in self.refusals().await {
            assert_eq!(status.code(), Code::FailedPrecondition, "{}", status.message());
            for word in words {
                assert!(status.message().contains(word), "{word:?} is not in {:?}", status.message());
            }
        }
    }
}

#[tokio::test]
async fn missing_parameters() {
    let folder = Folder::new();
    folder.replace_params(|_| ());
    folder.assert_refused(&[".params", "param_cache", "params generate --circuit porep-2k"]).await;
}

#[tokio::test]
async fn truncated_parameters() {
    let folder = Folder::new();
    folder.replace_params(|path| std::fs::write(path, vec![7; 100_000]).expect("written"));
    folder.assert_refused(&[".params", "100000 bytes", "truncated"]).await;
}

#[tokio::test]
async fn an_error_page_in_place_of_parameters() {
    let folder = Folder::new();
    folder.replace_params(|path| std::fs::write(path, "<html>404 Not Found</html>").expect("written"));
    folder.assert_refused(&["error page", "404 Not Found"]).await;
}

#[tokio::test]
async fn a_corrupt_verifying_key() {
    let folder = Folder::new();
    let mut vk = std::fs::read(&folder.files.vk).expect("readable");
    *vk.last_mut().expect("not empty") ^= 1;
    std::fs::write(&folder.files.vk, vk).expect("written");
    folder.assert_refused(&[".vk", "not on the curve"]).await;
}

#[tokio::test]
async fn corrupt_parameters() {
    let folder = Folder::new();
    let from = std::fs::canonicalize(&folder.files.params).expect("a link");
    folder.replace_params(|path| {
        use std::os::unix::fs::FileExt;
        std::fs::copy(from, path).expect("copied");
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("writable");
        file.write_all_at(b"!", 500_000_000).expect("written");
    });
    folder.assert_refused(&[".params", "digest", "corrupt"]).await;
}

#[tokio::test]
async fn parameters_of_another_circuit() {
    use bellperson::{Circuit, ConstraintSystem, SynthesisError, groth16};
    struct Square;
    impl Circuit<blstrs::Scalar> for Square {
        fn synthesize<CS: ConstraintSystem<blstrs::Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let x = cs.alloc(|| "x", || Ok(blstrs::Scalar::from(1)))?;
            cs.enforce(|| "square", |lc| lc + x, |lc| lc + x, |lc| lc + x);
            Ok(())
        }
    }
    let folder = Folder::new();
    let other = groth16::generate_random_parameters::<blstrs::Bls12, _, _>(Square, &mut rand::thread_rng());
    let other = other.expect("a good circuit");
    folder.replace_params(|path| {
        let mut bytes = Vec::new();
        other.write(&mut bytes).expect("written");
        std::fs::write(path, bytes).expect("written");
    });
    let mut vk = Vec::new();
    other.vk.write(&mut vk).expect("written");
    std::fs::write(&folder.files.vk, vk).expect("written");
    let digest = |path: &Path| Verdicts::in_memory().digest(path).expect("readable");
    let sidecar = Sidecar::new(CIRCUIT, "x", 1, digest(&folder.files.params), digest(&folder.files.vk));
    sidecar.write(&folder.files.sidecar).expect("written");

    folder.assert_refused(&["of another circuit", "the circuit needs"]).await;
}

#[tokio::test]
async fn parameters_are_evicted_and_loaded_again() {
    let folder = Folder::new();
    let daemon = start(folder.dir.path(), folder.dir.path().join("s"));
    let mut client = client::connect(&daemon.tcp).await.expect("the daemon listens");
    let preload = || PreloadSrsRequest { circuit_id: "porep-2k".into() };
    let evict = || EvictSrsRequest { circuit_id: "porep-2k".into() };
    assert!(!client.evict_srs(evict()).await.expect("answered").into_inner().was_loaded);
    for _ in 0..2 {
        assert!(!client.preload_srs(preload()).await.expect("loaded").into_inner().already_loaded);
        assert!(client.preload_srs(preload()).await.expect("loaded").into_inner().already_loaded);
        let evicted = client.evict_srs(evict()).await.expect("answered").into_inner();
        assert!(evicted.was_loaded && evicted.freed_bytes > 0);
    }
    let bad = PreloadSrsRequest { circuit_id: "porep-3k".into() };
    assert_eq!(client.preload_srs(bad).await.expect_err("no such circuit").code(), Code::InvalidArgument);
}
