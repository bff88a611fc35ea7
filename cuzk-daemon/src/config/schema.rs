//! Every key of `cuzk.toml`, written once: table, name, type, default and a sentence for the operator.
//!
//! The macro makes of each entry a documented struct field and a row of [`KEYS`]. Reading, checking, printing,
//! environment variables, flags and suggestions all go by that table; a new key is one entry here and one in
//! `config/cuzk.toml` (a test insists on it).

use std::{num::NonZeroU32, path::PathBuf};

use cuzk_gpu::cuda::plan::BG2;
use cuzk_synth::{circuit::CircuitId, r1cs::Check};
use toml::Value;

use super::{
    gpu::PointChecks,
    setting::{Inert, OneOrMany, Setting},
    types::{
        Affinity, DamagedStore, DeviceName, GpuPolicy, LogFormat, LogLevel, MemoryBudget, SocketMode, StoreKind,
        StorePath,
    },
    units::{ByteSize, Span},
};
use crate::{fetch::mirror::Mirror, listen::Endpoint};

/// One configuration key.
pub struct Key {
    /// The TOML table it stands in.
    pub table: &'static str,
    /// Its name in that table.
    pub name: &'static str,
    /// What it means, as the operator reads it.
    pub doc: &'static str,
    /// What a value looks like.
    pub expects: &'static str,
    /// Why it has no effect, where it has none.
    pub inert: Option<&'static str>,
    /// Sets it from TOML; the error is the reason why not.
    pub set: fn(&mut Config, &Value) -> Result<(), String>,
    /// Sets it from the text of a flag or a variable.
    pub set_text: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value, as TOML.
    pub get: fn(&Config) -> Value,
}

macro_rules! schema {
    ($(
        $(#[doc = $table_doc:literal])+
        $table:ident: $Table:ident {
            $( $(#[doc = $doc:literal])+ $name:ident: $Type:ty = $default:expr, )+
        }
    )+) => {
        /// The whole configuration, a struct a table.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {
            $( $(#[doc = $table_doc])+ pub $table: $Table, )+
        }

        $(
            $(#[doc = $table_doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Table {
                $( $(#[doc = $doc])+ pub $name: $Type, )+
            }

            impl Default for $Table {
                fn default() -> Self {
                    Self { $( $name: $default, )+ }
                }
            }
        )+

        /// All keys, in the order of the reference file.
        pub static KEYS: &[Key] = &[$($(
            Key {
                table: stringify!($table),
                name: stringify!($name),
                doc: concat!($($doc),+),
                expects: <$Type as Setting>::EXPECTS,
                inert: <$Type as Setting>::INERT,
                set: |config, value| {
                    config.$table.$name = <$Type as Setting>::from_toml(value)?;
                    Ok(())
                },
                set_text: |config, text| {
                    config.$table.$name = <$Type as Setting>::from_text(text)?;
                    Ok(())
                },
                get: |config| config.$table.$name.to_toml(),
            },
        )+)+];
    };
}

schema! {
    /// Where the daemon listens and how it stops.
    daemon: Daemon {
        /// Addresses to listen at, one or a list of "IP:port" and "unix:///path".
        listen: OneOrMany<Endpoint> = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 9820).into())]),
        /// Whether a TCP address that other machines can reach is allowed without TLS and tokens (or client certificates).
        allow_insecure: bool = false,
        /// Permission bits of the unix sockets.
        socket_mode: SocketMode = SocketMode(0o660),
        /// User, by name or id, to whom the unix sockets are given; the daemon's own if empty.
        socket_owner: Option<String> = None,
        /// Group, by name or id, to which the unix sockets are given; the daemon's own if empty.
        socket_group: Option<String> = None,
        /// How long running jobs may take to finish after SIGTERM; keep it below the unit's TimeoutStopSec.
        drain_timeout: Span = Span::from_secs(300),
    }

    /// The status page and the metrics, over HTTP.
    http: Http {
        /// Address of the status page, metrics and health checks: "IP:port" or "unix:///path"; nowhere if empty.
        listen: Option<Endpoint> = None,
    }

    /// Certificates of the TCP listeners.
    tls: TlsFiles {
        /// The daemon's certificate, followed by those between it and its authority (PEM); with it all TCP listeners speak TLS.
        cert: Option<PathBuf> = None,
        /// The certificate's private key (PEM).
        key: Option<PathBuf> = None,
        /// Certificates (PEM) of which one must have signed the certificate that each client then has to show.
        client_ca: Option<PathBuf> = None,
    }

    /// Who is asked for a token.
    auth: Auth {
        /// The file of tokens, a line each: "name scope[,scope] token"; none if empty, and nobody is asked.
        tokens: Option<PathBuf> = None,
        /// Whether clients at unix sockets need a token too.
        unix: bool = false,
    }

    /// The proving parameters (SRS).
    srs: Srs {
        /// Directory of the parameter files; without this key FIL_PROOFS_PARAMETER_CACHE names it.
        param_cache: PathBuf = PathBuf::from("/var/tmp/filecoin-proof-parameters"),
        /// Where `params fetch` asks for parameter files: folders' URLs, or patterns with {file} or {cid}, in order.
        mirrors: OneOrMany<Mirror> = OneOrMany(Vec::new()),
        /// Whether parameters made on this machine are used; never set this where real sectors are proven.
        allow_dev_params: bool = false,
        /// What is checked of each point that is loaded to a GPU: "off", that it is on its "curve", or in its "subgroup".
        check_points: PointChecks = PointChecks::Curve,
        /// Circuits whose parameters are loaded at the start, such as "porep-32g".
        preload: OneOrMany<CircuitId> = OneOrMany(Vec::new()),
    }

    /// Host memory.
    memory: Memory {
        /// Host memory to plan with: "auto" takes what the machine or its control group has, less the safety margin.
        total_budget: MemoryBudget = MemoryBudget::Auto,
        /// What "auto" leaves to the operating system and other programs.
        safety_margin: ByteSize = ByteSize::from_gib(5),
    }

    /// The devices that prove.
    gpus: Gpus {
        /// GPUs to use, by index, PCI address or UUID; an empty list means all.
        devices: OneOrMany<DeviceName> = OneOrMany(Vec::new()),
        /// CPU threads for the part of a proof that is computed beside the GPU; 0 means as many as fit.
        gpu_threads: u32 = 0,
        /// Partitions worked on at once for each device; 2 hides the CPU part of one behind the kernels of the other.
        gpu_workers_per_device: NonZeroU32 = NonZeroU32::new(2).expect("2 is not 0"),
        /// The most memory of each GPU to use: "auto" is all that is free, or a size.
        vram_limit: MemoryBudget = MemoryBudget::Auto,
        /// Memory of each GPU that is left alone below the limit, for the driver's own needs.
        vram_reserve: ByteSize = ByteSize::from_mib(512),
        /// How long the kernels of a partition may take before their GPU counts as stuck.
        kernel_watchdog: Span = Span::from_secs(60),
        /// Where the sum over G2 is computed: on the "cpu" beside the kernels, on the "gpu", or "auto" by measured times.
        b_g2_msm: BG2 = BG2::Cpu,
        /// Devices that take certain circuits only, such as "0=porep-32g"; devices that are not named take all.
        affinity: OneOrMany<Affinity> = OneOrMany(Vec::new()),
        /// Whether a GPU is "required", to "prefer", or used "never".
        policy: GpuPolicy = GpuPolicy::Prefer,
    }

    /// The queue of jobs.
    scheduler: Scheduler {
        /// Unfinished jobs that may wait at once; further ones are refused with RESOURCE_EXHAUSTED.
        max_queued_jobs: NonZeroU32 = NonZeroU32::new(64).expect("64 is not 0"),
        /// Payload bytes that all unfinished jobs may hold together; further jobs are refused with RESOURCE_EXHAUSTED.
        max_queued_bytes: ByteSize = ByteSize::from_gib(4),
        /// Finished jobs kept for clients that ask again.
        retain_finished: u32 = 4096,
        /// Bytes of finished jobs that are kept; one of 32 GiB takes about 2.5 KiB.
        retain_finished_bytes: ByteSize = ByteSize::from_mib(64),
        /// How long finished jobs are kept.
        retain_finished_for: Span = Span::from_secs(7 * 24 * 3600),
        /// How long a job goes on after the last client that waited for it in Prove has gone.
        abandon_grace: Span = Span::from_secs(60),
        /// After each such time a waiting job rises by one priority, up to HIGH.
        promote_after: Span = Span::from_secs(30 * 60),
        /// How long one step of one 32 GiB partition may take before it is given up; smaller circuits have less time.
        stage_limit: Span = Span::from_secs(30 * 60),
        /// Attempts at one partition before its job fails.
        attempts: NonZeroU32 = NonZeroU32::new(3).expect("3 is not 0"),
        /// How long jobs of one priority may be taken out of order so that parameters need not be exchanged in memory.
        group_delay: Span = Span::from_secs(120),
        /// Accepted and without effect: partitions are not proven in batches of several sectors.
        max_batch_size: Inert<u32> = Inert(1),
        /// Accepted and without effect: no partition waits for a batch to fill.
        max_batch_wait_ms: Inert<u32> = Inert(0),
        /// Accepted and without effect: order is by priority, then by arrival.
        sort_by_type: Inert<bool> = Inert(false),
    }

    /// Where accepted jobs are kept, so that they survive a crash.
    store: Store {
        /// "disk" keeps accepted jobs and finished proofs through a restart, "memory" does not.
        kind: StoreKind = StoreKind::Disk,
        /// The folder of the store on disk, for this daemon alone: "auto" or an absolute path.
        path: StorePath = StorePath::Auto,
        /// What to do with a store on disk that is damaged: "refuse" to start, or "move_aside" and begin an empty one.
        if_damaged: DamagedStore = DamagedStore::Refuse,
    }

    /// The CPU side of proving.
    synthesis: Synthesis {
        /// CPU threads for synthesis; 0 means as many as this process may use cores.
        threads: u32 = 0,
        /// Partitions synthesized at once; 0 means as many as there are threads, for each keeps one busy.
        workers: u32 = 0,
        /// How much of a witness is checked against the constraints before it is proven: "off", "sampled" or "full".
        check: Check = Check::Sampled,
    }

    /// The part of a proof that is computed beside the device.
    finish: Finish {
        /// CPU threads for it; 0 means gpus.gpu_threads.
        threads: u32 = 0,
    }

    /// What is made ready ahead of the devices.
    pipeline: Pipeline {
        /// Partitions ready ahead of each device; 0 means one for each of its workers.
        lookahead: u32 = 0,
    }

    /// What a client may send.
    limits: Limits {
        /// Largest gRPC message, in and out.
        max_message: ByteSize = ByteSize::from_mib(256),
        /// Connections at once, of each address that is listened at; further ones are closed.
        max_connections: NonZeroU32 = NonZeroU32::new(1024).expect("1024 is not 0"),
        /// Unfinished calls at once, health checks aside; further ones are refused with RESOURCE_EXHAUSTED.
        max_calls: NonZeroU32 = NonZeroU32::new(4096).expect("4096 is not 0"),
        /// Requests a second of one client (token, certificate, address or user); 0 is no limit.
        rate: u32 = 1000,
        /// How long a request may bring nothing before it is given up.
        body_timeout: Span = Span::from_secs(60),
    }

    /// The log, written to standard error.
    logging: Logging {
        /// Level of cuzk's own lines (libraries stay at "warn"), with directives such as "info,cuzk_timing=debug".
        level: LogLevel = LogLevel::default(),
        /// "text" for people, "json" for one object a line.
        format: LogFormat = LogFormat::Text,
        /// A file for when each phase of each partition ran, as a trace for Perfetto or Chrome; none if empty.
        timeline: Option<PathBuf> = None,
    }
}

impl Key {
    /// `table.name`, as flags and messages write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// The environment variable that overrides it.
    pub fn variable(&self) -> String {
        format!("CUZK_{}_{}", self.table, self.name).to_ascii_uppercase()
    }

    /// Where its row stands in [`KEYS`].
    pub fn index(&self) -> usize {
        let found = KEYS.iter().position(|key| std::ptr::eq(key, self));
        found.expect("keys exist only as rows of KEYS")
    }
}

/// The key of that table and name.
pub(super) fn find(table: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.table == table && key.name == name)
}

/// The tables, each once, in the order of the reference file.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables: Vec<_> = KEYS.iter().map(|key| key.table).collect();
    tables.dedup();
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_back_from_toml_and_every_key_is_told_apart() {
        let mut seen = std::collections::HashSet::new();
        for key in KEYS {
            let mut config = Config::default();
            (key.set)(&mut config, &(key.get)(&Config::default())).expect("a default is a legal value");
            assert_eq!(config, Config::default(), "{}", key.path());
            assert!(seen.insert(key.variable()), "{} is there twice", key.variable());
            assert!(std::ptr::eq(&KEYS[key.index()], key));
        }
    }

    #[test]
    fn a_key_sets_its_own_field_only() {
        let key = find("scheduler", "retain_finished").expect("in the table");
        let mut config = Config::default();
        (key.set_text)(&mut config, "7").expect("a number");
        let mut expected = Config::default();
        expected.scheduler.retain_finished = 7;
        assert_eq!(config, expected);
    }
}
