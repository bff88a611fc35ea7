//! The life of the daemon: configuration, log, sockets, backend, engine, service; then a signal, a drain, the end.
//!
//! The order is the point. Sockets are bound before anything slow, so that a client that connects early waits instead of
//! giving up, and a second daemon fails before it has loaded anything. Preloading runs beside the service, which
//! answers from the first moment. The supervisor hears READY when jobs can be proven.

use std::{sync::Arc, time::Duration};

use cuzk_server::{DrainReport, Engine, EngineConfig, Lifecycle, Proving, ServeOptions, serve, store::JobStore};
use cuzk_synth::circuit::CircuitId;
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::{
    access::{Guard, exposure_refused, reload, tls},
    backend,
    cli::ConfigArgs,
    config::{self, Config, OTHER_VARIABLES, OneOrMany, Problems, Settings},
    exit::{Exit, Failure},
    listen::{self, BindError, Endpoint, Listener, Permissions, Target, UnixGuard},
    logging,
    notify::{State, notify},
    page::Page,
    resources::{Plan, Resources},
    shutdown::{self, Shutdown, Trigger},
    state,
};

/// A daemon with a checked configuration, a log and a plan; nothing is bound or started yet.
#[derive(Debug)]
pub struct Prepared {
    /// Where the configuration came from, to be read again.
    args: ConfigArgs,
    config: Config,
    plan: Plan,
}

/// A daemon that runs as a task of this process.
#[derive(Debug)]
pub struct InProcess {
    /// Where clients find it.
    pub target: Target,
    trigger: Trigger,
    task: JoinHandle<Result<DrainReport, Failure>>,
}

/// Sockets that are bound, and the files that go with them.
#[derive(Debug)]
pub struct Bound {
    listeners: Vec<cuzk_server::Listener>,
    endpoints: Vec<Endpoint>,
    guard: Guard,
    /// The status page, which answers from now on.
    page: Option<Page>,
    /// Dropped last: they remove the socket files.
    _guards: Vec<UnixGuard>,
}

/// `serve`: runs the daemon until it is told to end.
pub fn serve_command(args: &ConfigArgs) -> Result<(), Failure> {
    backend::serve(prepare(args)?)
}

/// Reads the configuration, starts the log, looks at the machine, and says what came of it.
pub fn prepare(args: &ConfigArgs) -> Result<Prepared, Failure> {
    let overrides = args.overrides().map_err(|problem| Problems(vec![problem]))?;
    let settings = config::load(args.config.as_deref(), overrides)?;
    logging::init(&settings.config.logging)
        .map_err(|e| Failure::new(Exit::Failure, format!("cannot start the log: {e}")))?;
    let resources = Resources::detect();
    let plan = Plan::new(&resources, &settings.config)?;
    announce(&settings, &plan, &resources);
    Ok(Prepared { args: args.clone(), config: settings.config, plan })
}

impl Prepared {
    /// Binds the sockets, opens the backend, and runs the daemon until a signal ends it.
    pub fn run<P: Proving>(
        self,
        open: impl FnOnce(&Config, &Plan) -> Result<Arc<P>, Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let Self { args, config, plan } = self;
        let runtime = runtime(&plan)?;
        let ended = runtime.block_on(async {
            let shutdown =
                shutdown::on_signals().map_err(|e| Failure::new(Exit::Failure, format!("cannot handle signals: {e}")))?;
            let hangup =
                reload::on_hangup().map_err(|e| Failure::new(Exit::Failure, format!("cannot handle signals: {e}")))?;
            let bound = Bound::bind(&config)?;
            let reload = reload::Reload::new(bound.guard.clone(), args, config.clone());
            tokio::spawn(reload.run(hangup));
            notify(&State::Status("opening the job store and the devices".into()));
            // Both may take their time, and a second signal must not have to wait for them.
            let of = config.clone();
            let opening =
                tokio::task::spawn_blocking(move || Ok::<_, Failure>((state::open(&of.store)?, open(&of, &plan)?)));
            let mut stop = shutdown.clone();
            let (store, proving) = tokio::select! {
                biased;
                () = stop.stop() => return Err(Failure::new(Exit::Failure, STOPPED)),
                opened = opening => opened.map_err(|e| Failure::new(Exit::Failure, format!("opening the devices: {e}")))??,
            };
            run_daemon(&config, &plan, bound, store, proving, shutdown).await
        });
        // Blocking calls that are still at work must not hold up the end.
        runtime.shutdown_background();
        ended.map(|report| tracing::info!(cancelled = report.cancelled, suspended = report.suspended, "ended"))
    }
}

impl Bound {
    /// Takes the sockets that the supervisor passed, or else binds every address of the configuration, or none. Must be
    /// called within a runtime.
    pub fn bind(config: &Config) -> Result<Self, BindError> {
        let inherited = listen::inherited().map_err(BindError::Inherited)?;
        let guard = Guard::load(config)?;
        if !inherited.is_empty() {
            let mut bound = Self::of(inherited, guard)?;
            if let Some(exposed) = bound.endpoints.iter().find(|endpoint| endpoint.is_exposed())
                && let Some(why) = exposure_refused(config)
            {
                return Err(BindError::Exposed { endpoint: exposed.clone(), why });
            }
            bound.page = Page::open(config, &bound.guard)?;
            return Ok(bound);
        }
        let permissions = permissions(config);
        let listen = config.daemon.listen.0.iter();
        let listeners: Result<Vec<_>, _> = listen.map(|at| listen::bind(at, &permissions)).collect();
        let mut bound = Self::of(listeners?, guard)?;
        bound.page = Page::open(config, &bound.guard)?;
        Ok(bound)
    }

    fn of(listeners: Vec<Listener>, guard: Guard) -> Result<Self, BindError> {
        let secure = guard.tls.as_ref().map(|tls| tls.acceptor(tls::GRPC));
        let mut bound = Self { listeners: Vec::new(), endpoints: Vec::new(), guard, page: None, _guards: Vec::new() };
        for listener in listeners {
            bound.endpoints.push(listener.endpoint().map_err(BindError::Inherited)?);
            let (listener, guard) = listen::hand_over(listener, secure.clone())?;
            bound.listeners.push(listener);
            bound._guards.extend(guard);
        }
        Ok(bound)
    }

    /// Who may do what, and the certificates: shared with whatever else of this daemon answers requests.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Where the status page is, with its real port, if there is one.
    pub fn page(&self) -> Option<&Endpoint> {
        self.page.as_ref().map(Page::endpoint)
    }

    /// The addresses, with real ports.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }
}

/// Runs an engine on bound sockets until a drain is asked for and done, or a stop is asked for. Without a store its jobs
/// live in memory.
pub async fn run_daemon<P: Proving>(
    config: &Config,
    plan: &Plan,
    bound: Bound,
    store: Option<Arc<dyn JobStore>>,
    proving: Arc<P>,
    shutdown: Shutdown,
) -> Result<DrainReport, Failure> {
    let Bound { listeners, endpoints, guard, page, _guards } = bound;
    let on_stop = match &store {
        Some(_) => "stopped at once: unfinished jobs go on after the next start",
        None => "stopped at once: unfinished jobs are lost",
    };
    let engine = match store {
        Some(store) => Engine::start_with_store(engine_config(config, plan), proving, store)
            .map_err(|e| Failure::new(Exit::Failure, format!("the job store: {e}")))?,
        None => Engine::start(engine_config(config, plan), proving),
    };
    let shown: Vec<_> = endpoints.iter().map(Endpoint::to_string).collect();
    tracing::info!("listening at {}", shown.join(", "));
    if let Some(page) = &page {
        page.show(engine.clone());
        tracing::info!("status page at {page}");
    }

    let (mut drain, mut stop) = (shutdown.clone(), shutdown);
    let draining = async {
        drain.drain().await;
        notify(&State::Stopping);
    };
    let serving = serve(engine.clone(), listeners, serve_options(config, &guard), draining);
    let getting_ready = async {
        preload(&engine, &config.srs.preload.0).await;
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        // Whoever asks twice wants no more waiting, also not for a drain that is about to end.
        biased;
        () = stop.stop() => Err(Failure::new(Exit::Failure, on_stop)),
        served = serving => served.map_err(|e| Failure::new(Exit::Failure, e.to_string())),
        () = getting_ready => unreachable!("it never ends"),
    };
    if let (Ok(_), Some(page)) = (&ended, page) {
        page.close(CLOSE_FOR).await;
    }
    ended
}

/// Starts a daemon as a task of the current runtime, at a free port of the loopback interface and with jobs in memory,
/// whatever `daemon.listen` and `store.kind` say.
pub fn spawn_in_process<P: Proving>(mut config: Config, plan: Plan, proving: Arc<P>) -> Result<InProcess, Failure> {
    config.daemon.listen = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 0).into())]);
    let bound = Bound::bind(&config)?;
    let target = match (Target::from(bound.endpoints()[0].clone()), &bound.guard.tls) {
        (Target::Tcp(authority), Some(_)) => Target::Tls(authority),
        (target, _) => target,
    };
    let (trigger, shutdown) = shutdown::manual();
    let task = tokio::spawn(async move { run_daemon(&config, &plan, bound, None, proving, shutdown).await });
    Ok(InProcess { target, trigger, task })
}

impl InProcess {
    /// Drains it and waits for its end.
    pub async fn stop(self) -> Result<DrainReport, Failure> {
        self.trigger.ask();
        self.task.await.map_err(|e| Failure::new(Exit::Failure, format!("the daemon's task was lost: {e}")))?
    }
}

/// What the configuration makes of unix sockets.
pub fn permissions(config: &Config) -> Permissions {
    let daemon = &config.daemon;
    Permissions { mode: daemon.socket_mode.0, owner: daemon.socket_owner.clone(), group: daemon.socket_group.clone() }
}

/// What the engine is told of the configuration.
pub fn engine_config(config: &Config, plan: &Plan) -> EngineConfig {
    let scheduler = &config.scheduler;
    EngineConfig {
        gpu_workers_per_device: config.gpus.gpu_workers_per_device.get() as usize,
        synthesis_threads: plan.synthesis_workers,
        max_queued_jobs: scheduler.max_queued_jobs.get() as usize,
        memory: plan.memory,
        lookahead: match config.pipeline.lookahead {
            0 => None,
            partitions => Some(partitions as usize),
        },
        attempts: scheduler.attempts.get(),
        group_delay: scheduler.group_delay.duration(),
        affinity: config.gpus.affinity.0.iter().map(|a| (a.device.clone(), a.circuits.clone())).collect(),
        retain_finished: scheduler.retain_finished as usize,
        retain_finished_bytes: scheduler.retain_finished_bytes.bytes(),
        retain_finished_for: scheduler.retain_finished_for.duration(),
        abandon_grace: scheduler.abandon_grace.duration(),
        promote_after: scheduler.promote_after.duration(),
        stage_limit: scheduler.stage_limit.duration(),
        ..EngineConfig::default()
    }
}

/// What the service is told of the configuration.
pub fn serve_options(config: &Config, guard: &Guard) -> ServeOptions {
    let limits = &config.limits;
    let message = config.limits.max_message.bytes();
    ServeOptions {
        // Checked to be below 4 GiB.
        max_message_bytes: message as usize,
        message_limit_remedy: "raise limits.max_message in cuzk.toml, or send less".into(),
        drain_for: config.daemon.drain_timeout.duration(),
        close_for: CLOSE_FOR,
        access: guard.access.clone(),
        max_connections: limits.max_connections.get() as usize,
        max_calls: limits.max_calls.get() as usize,
        body_timeout: limits.body_timeout.duration(),
    }
}

/// Loads what is to be loaded at the start, says where it is, and reports ready. Parameters that cannot be loaded are
/// logged and no reason to end: jobs of other circuits can be proven, and those of this one are told why not.
async fn preload<P: Proving>(engine: &Engine<P>, circuits: &[CircuitId]) {
    for (i, circuit) in circuits.iter().enumerate() {
        let progress = format!("loading {circuit}, {} of {}", i + 1, circuits.len());
        notify(&State::Status(progress.clone()));
        engine.announce(Lifecycle::Starting(progress));
        match engine.preload(*circuit).await {
            Ok(loaded) => {
                tracing::info!(%circuit, seconds = loaded.load_time.as_secs_f64(), "parameters loaded")
            }
            Err(error) => tracing::error!(%circuit, "srs.preload: {error}"),
        }
    }
    engine.announce(Lifecycle::Serving);
    notify(&State::Ready);
    notify(&State::Status("serving".into()));
    tracing::info!("ready");
}

fn announce(settings: &Settings, plan: &Plan, resources: &Resources) {
    tracing::info!("cuzk-daemon {}", env!("CARGO_PKG_VERSION"));
    tracing::info!("configuration: {}", config::summary(settings));
    tracing::info!("resources: {plan}");
    for name in OTHER_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            tracing::info!("environment: {name}={}", value.display());
        }
    }
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    for warning in plan.warnings(resources) {
        tracing::warn!("{warning}");
    }
}

/// The runtime of the gRPC service. Its threads are its own, so that it answers while all others prove.
fn runtime(plan: &Plan) -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(plan.rpc_threads)
        .thread_name("cuzk-rpc")
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Failure, format!("cannot start the runtime: {e}")))
}

/// What a second signal is answered with.
const STOPPED: &str = "stopped at once, as a second signal asked: jobs that no store keeps are lost";

/// How long clients have to close their connections once all jobs have ended.
pub const CLOSE_FOR: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use cuzk_server::memory::Shares;
    use cuzk_synth::circuit::SectorSize;

    use super::*;
    use crate::config::{Affinity, ByteSize, Setting, Span};

    const MEMORY: Shares = Shares { bodies: 1, queue: 2, work: 3 };
    const PLAN: Plan =
        Plan { rpc_threads: 2, compute_threads: 6, synthesis_workers: 4, finish_threads: 6, memory: MEMORY };

    #[test]
    fn the_engine_hears_every_key_that_is_for_it() {
        let mut config = Config::default();
        config.gpus.gpu_workers_per_device = NonZeroU32::new(3).expect("not 0");
        let s = &mut config.scheduler;
        s.max_queued_jobs = NonZeroU32::new(5).expect("not 0");
        s.attempts = NonZeroU32::new(7).expect("not 0");
        s.group_delay = Span::from_secs(15);
        s.retain_finished = 9;
        s.retain_finished_bytes = ByteSize::from_gib(2);
        s.retain_finished_for = Span::from_secs(11);
        s.abandon_grace = Span::from_secs(12);
        s.promote_after = Span::from_secs(13);
        s.stage_limit = Span::from_secs(14);
        config.pipeline.lookahead = 8;
        config.gpus.affinity = OneOrMany(vec![Affinity::from_text("1=porep-32g").expect("legal")]);
        let engine = engine_config(&config, &PLAN);
        assert_eq!((engine.gpu_workers_per_device, engine.synthesis_threads), (3, 4));
        assert_eq!((engine.max_queued_jobs, engine.attempts, engine.lookahead), (5, 7, Some(8)));
        assert_eq!((engine.memory, engine.retain_finished), (MEMORY, 9));
        assert_eq!(engine.retain_finished_bytes, 2 << 30);
        assert_eq!(engine.affinity, [("1".to_owned(), vec![CircuitId::porep(SectorSize::Gib32)])]);
        let spans = [engine.retain_finished_for, engine.abandon_grace, engine.promote_after, engine.stage_limit];
        assert_eq!(spans.map(|d| d.as_secs()), [11, 12, 13, 14]);
        assert_eq!(engine.group_delay.as_secs(), 15);
    }

    #[test]
    fn our_defaults_are_the_engines() {
        let (ours, theirs) = (engine_config(&Config::default(), &PLAN), EngineConfig::default());
        let from_plan = EngineConfig { synthesis_threads: theirs.synthesis_threads, memory: theirs.memory, ..ours };
        assert_eq!(from_plan, theirs);
    }

    #[test]
    fn the_service_names_the_key_of_its_limit() {
        let mut config = Config::default();
        config.limits.max_message = ByteSize::from_gib(1);
        config.daemon.drain_timeout = Span::from_secs(9);
        config.limits.max_calls = NonZeroU32::new(6).expect("not 0");
        let guard = Guard::load(&config).expect("no file is named");
        let options = serve_options(&config, &guard);
        assert_eq!((options.max_calls, options.body_timeout), (6, Duration::from_secs(60)));
        assert_eq!(options.max_message_bytes, 1 << 30);
        assert_eq!(options.drain_for, Duration::from_secs(9));
        assert!(options.message_limit_remedy.contains("limits.max_message"));
    }

    #[tokio::test]
    async fn all_addresses_are_bound_or_none() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let socket = dir.path().join("s");
        let mut config = Config::default();
        config.daemon.listen =
            OneOrMany(vec![Endpoint::Unix(socket.clone()), Endpoint::Tcp(([127, 0, 0, 1], 0).into())]);
        let bound = Bound::bind(&config).expect("free");
        let Endpoint::Tcp(taken) = bound.endpoints()[1] else {
            panic!("the second is TCP");
        };
        assert_ne!(taken.port(), 0);

        let other = dir.path().join("other");
        config.daemon.listen = OneOrMany(vec![Endpoint::Unix(other.clone()), Endpoint::Tcp(taken)]);
        assert!(Bound::bind(&config).is_err());
        assert!(!other.exists(), "the first socket is gone again");
        drop(bound);
        assert!(!socket.exists());
    }
}
