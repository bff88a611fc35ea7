//! `params fetch`: downloads the parameter files that are missing or wrong.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use cuzk_gpu::params::{Files, Sidecar, Verdicts};
use cuzk_synth::circuit::CircuitId;
use tokio::signal::unix::{SignalKind, signal};

use super::{config::load, download::Download, params::porep_circuits};
use crate::{
    backend,
    cli::FetchArgs,
    disk::free_bytes,
    exit::{Exit, Failure},
    fetch::{
        course::Pace,
        http::{Http, HttpOptions},
        mirror::Mirror,
        part::FolderLock,
        transfer::{FetchError, World, fetch as transfer},
        wanted::{self, Wanted},
    },
};

/// Runs the command; a signal ends it, and what is here by then stays.
pub(super) fn fetch(args: &FetchArgs) -> Result<(), Failure> {
    let order = Order::new(args)?;
    let failed = |e: io::Error| Failure::new(Exit::Failure, format!("cannot handle signals: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let ended = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate()).map_err(failed)?, signal(SignalKind::interrupt()).map_err(failed)?);
        let stopped = Failure::new(Exit::TryLater, "stopped by a signal; the same command goes on from here");
        tokio::select! {
            ended = tokio::task::spawn_blocking(move || order.carry_out()) => {
                ended.map_err(|e| Failure::new(Exit::Failure, format!("the download was lost: {e}")))?
            }
            _ = terminate.recv() => Err(stopped),
            _ = interrupt.recv() => Err(stopped),
        }
    });
    // The download may be waiting for the network; every byte that it has written is in its part.
    runtime.shutdown_background();
    ended
}

/// What is to be fetched, from where, to where.
struct Order {
    folder: PathBuf,
    mirrors: Vec<Mirror>,
    circuits: Vec<CircuitId>,
    http: Http,
}

impl Order {
    fn new(args: &FetchArgs) -> Result<Self, Failure> {
        let config = load(&args.config)?.config;
        let mirrors = if args.mirror.is_empty() { config.srs.mirrors.0 } else { args.mirror.clone() };
        if mirrors.is_empty() {
            return Err(Failure::new(Exit::Usage, "no mirror is named, and none is built in").with_hint(SOURCES));
        }
        if let (false, Some(plain)) = (args.allow_http, mirrors.iter().find(|mirror| !mirror.is_encrypted())) {
            let text = format!("the mirror {plain} is not encrypted");
            return Err(Failure::new(Exit::Usage, text).with_hint(
                "use https, or give --allow-http: digests show every change, but others see and can delay what is fetched",
            ));
        }
        let options = HttpOptions { allow_http: args.allow_http, silence: SILENCE };
        let http = Http::new(options, |name| std::env::var(name).ok());
        let http = http.map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
        let circuits = if args.all { porep_circuits().collect() } else { args.circuit.clone() };
        Ok(Self { folder: config.srs.param_cache, mirrors, circuits, http })
    }

    fn carry_out(&self) -> Result<(), Failure> {
        let folder = &self.folder;
        fs::create_dir_all(folder).map_err(|e| Failure::io("make", folder, e))?;
        let lock = FolderLock::take(folder).map_err(|e| Failure::io("lock", folder, e))?;
        let _lock = lock.ok_or_else(|| {
            Failure::new(Exit::TryLater, format!("another `params fetch` works in {}", folder.display()))
        })?;
        let verdicts = backend::verdicts();
        for &circuit in &self.circuits {
            let wanted = wanted::of_circuit(circuit).map_err(|e| Failure::new(Exit::Refused, e.to_string()))?;
            refuse_development(circuit, folder)?;
            for wanted in &wanted {
                self.bring(circuit, wanted, &verdicts)?;
            }
        }
        Ok(())
    }

    /// Sees to it that a file is here.
    fn bring(&self, circuit: CircuitId, wanted: &Wanted, verdicts: &Verdicts) -> Result<(), Failure> {
        let path = self.folder.join(&wanted.name);
        let name = format!("{circuit} {}", kind(&path));
        if path.exists() {
            println!("{name}: checking {}", path.display());
            let found = verdicts.digest(&path).map_err(|e| Failure::io("read", &path, e))?;
            if found == wanted.digest {
                println!("{name}: here and good");
                return Ok(());
            }
            println!("{name}: WRONG (digest {found}, not {}): it is replaced", wanted.digest);
        }
        let download = Download::new(&name);
        let world = World {
            http: &self.http,
            mirrors: &self.mirrors,
            pace: Pace::default(),
            free: &free_bytes,
            pause: &thread::sleep,
            report: &|report| download.report(report),
        };
        let placed = transfer(wanted, &self.folder, &world);
        drop(download);
        let path = placed.map_err(failure)?;
        // Its digest was computed while it came: the daemon need not read it again.
        verdicts.insert(&path, wanted.digest).map_err(|e| Failure::io("look at", &path, e))?;
        println!("{name}: here and good");
        Ok(())
    }
}

/// What tells a circuit's files apart; their whole names fill more than a line.
fn kind(path: &Path) -> &'static str {
    match path.extension().is_some_and(|extension| extension == "vk") {
        true => "verifying key",
        false => "parameters",
    }
}

/// Official files beside the note that they are for development would be taken for such.
fn refuse_development(circuit: CircuitId, folder: &Path) -> Result<(), Failure> {
    let files = Files::of(circuit, folder).map_err(|e| Failure::new(Exit::Refused, e.to_string()))?;
    match Sidecar::read(&files.sidecar) {
        Ok(None) => Ok(()),
        _ => {
            let text =
                format!("{} says that {circuit} has development parameters in this folder", files.sidecar.display());
            Err(Failure::new(Exit::Failure, text).with_hint(
                "fetch into another folder (--param-cache), or delete that file and the circuit's parameters",
            ))
        }
    }
}

fn failure(error: FetchError) -> Failure {
    let exit = match &error {
        FetchError::Mirrors { passing: true, .. } => Exit::TryLater,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        FetchError::Mirrors { .. } => failure.with_hint("name further mirrors with --mirror or in srs.mirrors"),
        FetchError::NoRoom { .. } | FetchError::Disk { .. } => failure,
    }
}

/// How long a mirror may bring nothing.
const SILENCE: Duration = Duration::from_secs(60);

const SOURCES: &str = "give --mirror or set srs.mirrors: the network publishes its files on IPFS, where any gateway has them \
    (https://GATEWAY/ipfs/{cid}); a folder of a web server with copies will do as well (https://HOST/FOLDER/)";
